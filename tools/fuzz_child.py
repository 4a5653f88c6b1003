"""One target in a process of its own, as `tools/fuzz` starts it: atheris in front, the target behind.

    python tools/fuzz_child.py TARGET [libFuzzer's options and directories]

Our modules are instrumented while they are imported, so the targets must not be imported before. Every input is timed
as well: one that takes far longer than its length allows is a finding like a crash.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALLOWED_NS, ALLOWED_NS_PER_BYTE = 100_000_000, 60_000
"""CPU time of one input, instrumented: some twenty times what an ordinary one takes."""


class TooSlowError(Exception):
    """An input took more time than its length allows, three times in a row."""


def timed(check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The check, with a limit on its time."""

    def run(data: bytes) -> None:
        allowed = ALLOWED_NS + ALLOWED_NS_PER_BYTE * len(data)
        for _ in range(3):
            begun = time.thread_time_ns()
            check(data)
            took = time.thread_time_ns() - begun
            if took <= allowed:
                return
        raise TooSlowError(f"{took / 1e6:.0f} ms for {len(data)} bytes")

    return run


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer has had enough; it ends the process itself."""
    atheris = importlib.import_module("atheris")
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]
    with atheris.instrument_imports(include=["nephila"], enable_loader_override=False):
        targets = importlib.import_module("fuzzing").TARGETS
    atheris.Setup([sys.argv[0], *arguments[1:]], timed(targets[arguments[0]].check))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
