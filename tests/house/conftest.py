"""A checkout in miniature: the real bootstrap around a package that only says how it was called."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ECHO = """
import json, os, sys
print(json.dumps({"arguments": sys.argv[1:], "pid": os.getpid(), "python": sys.executable, "path": sys.path}))
"""


def make_checkout(directory: Path) -> Path:
    """Lay out what `./nephila` needs, with requirements that ask for nothing."""
    (directory / "requirements").mkdir(parents=True)
    for name in ("run.txt", "build.txt", "test.txt"):
        (directory / "requirements" / name).write_text("# nothing is needed\n", encoding="utf-8")
    package = directory / "src" / "nephila"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(ECHO, encoding="utf-8")
    shutil.copytree(ROOT / "tools", directory / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "nephila", directory / "nephila")
    return directory


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fresh one, not set up, with a space in its path."""
    return make_checkout(tmp_path / "my checkout")


@pytest.fixture
def clean_environment(tmp_path: Path) -> dict[str, str]:
    """Nothing but a path, an empty home and an index that nobody listens at."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://127.0.0.1:1/simple",
        "PIP_RETRIES": "1",
    }


@pytest.fixture
def start(tmp_path: Path, clean_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command without network, and without the settings of whoever runs the tests."""

    def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in command],
            env={**clean_environment, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run
