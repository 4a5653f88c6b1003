"""Interpreters that ignore what is meant for whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from nephila.engines.interpreter import heedless


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
