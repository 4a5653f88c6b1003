"""`tools/native.py`: the optional extension is built where it can be, and its absence is no failure."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import native

ROOT = Path(__file__).parents[2]
Start = Callable[..., "subprocess.CompletedProcess[str]"]


def imported(directory: Path, code: str, **variables: str) -> str:
    """What an interpreter prints that finds the extension in a directory."""
    environment = {**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT / 'src'}", **variables}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return found.stdout.strip()


def test_what_is_built_can_be_imported(tmp_path: Path) -> None:
    built = native.build(ROOT, tmp_path)
    assert built.parent == tmp_path
    assert imported(tmp_path, "import nephila_native; print(nephila_native.__file__)") == str(built)


def test_the_extension_can_be_switched_off() -> None:
    code = "from nephila.native import AVAILABLE; print(AVAILABLE)"
    assert imported(ROOT, code, NEPHILA_NATIVE="0") == "False"
    assert imported(ROOT, code) == "True"


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(native.NotBuiltError, match="no C compiler"):
        native.build(ROOT, tmp_path)


def test_a_compiler_that_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "part.c").write_text("int this is no C;\n", encoding="utf-8")
    with pytest.raises(native.NotBuiltError, match="refused"):
        native.build(tmp_path, tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "native"]


def test_a_fresh_checkout_without_a_compiler_starts_all_the_same(checkout: Path, start: Start) -> None:
    """The set-up says in one line that it goes without, and the program runs."""
    (checkout / "native").mkdir()
    (checkout / "native" / "part.c").write_text("int this is no C;\n", encoding="utf-8")
    first = start(checkout / "nephila", "--version")
    assert first.returncode == 0, first.stderr
    assert "was not built" in first.stderr
    assert "works without it" in first.stderr
    second = start(checkout / "nephila", "--version")
    assert (second.returncode, second.stderr) == (0, "")


def test_a_changed_source_is_compiled_anew(checkout: Path, start: Start) -> None:
    (checkout / "native").mkdir()
    source = checkout / "native" / "part.c"
    source.write_text(
        "#include <Python.h>\nPyMODINIT_FUNC PyInit_nephila_native(void) { return NULL; }\n", encoding="utf-8"
    )
    assert start(checkout / "nephila").returncode == 0
    (built,) = checkout.glob(".venv/lib/python*/site-packages/nephila_native*")
    before = built.stat().st_mtime_ns
    assert start(checkout / "nephila").stderr == ""
    source.write_text(source.read_text(encoding="utf-8") + "/* more */\n", encoding="utf-8")
    assert start(checkout / "nephila").returncode == 0
    assert built.stat().st_mtime_ns > before
