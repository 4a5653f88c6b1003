"""Interpreters that ignore what is meant for whoever started them, and import from where they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nephila.engines.interpreter import heedless, running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_ignored_before_packages_are_looked_for(tmp_path: Path, number: signal.Signals) -> None:
    """C4, N3: `site` runs what it finds; one that is interrupted there shows a traceback."""
    (tmp_path / "sitecustomize.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n", encoding="utf-8")
    words = heedless("import nephila, sys\nprint(sys.argv[1])")
    done = subprocess.run(
        [*words, "worker"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "worker\n", "")


def test_what_somebody_has_left_where_one_stands_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """N3: an installed command imports nothing from there, and neither do the processes that it starts."""
    (tmp_path / "ctypes.py").write_text("raise SystemExit('run from here')\n", encoding="utf-8")
    (tmp_path / "calendar.py").write_text("raise SystemExit('run from here')\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    monkeypatch.chdir(tmp_path)
    for words, said in (
        (heedless("import ctypes\nprint('Python')"), "Python"),
        ([*running("calendar"), "2026"], "2026"),
    ):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert said in done.stdout


def test_who_imports_from_where_he_stands_starts_processes_that_do(tmp_path: Path) -> None:
    """E1, N3: as `python -m` and `python -c` do; a plugin may lie there."""
    (tmp_path / "nephila_of_mine.py").write_text("print('mine')\n", encoding="utf-8")
    program = """
import subprocess
from nephila.engines.interpreter import heedless, running
subprocess.run(heedless("import nephila_of_mine"), check=True)
subprocess.run(running("nephila_of_mine"), check=True)
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "mine\nmine\n", "")
