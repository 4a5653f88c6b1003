"""The benches as they are called: in a process of their own, with what they print."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    """`nephila bench`, to its end."""
    command = [sys.executable, "-m", "nephila", "bench", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def document(*words: str) -> dict[str, Any]:
    """What a bench that succeeds prints with --json."""
    done = bench(*words)
    assert done.returncode == 0, done.stderr
    assert f"Measured with Python {platform.python_version()} (" in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
