"""New interpreters for processes of ours that somebody else answers for.

Ctrl-C reaches every process of a terminal, and so does its closing (SIGHUP); a service manager's SIGTERM reaches every
process of a service. The process that was started by the user answers; those that it starts ignore them. They must do
so before Python looks for its packages (`site`): that takes longer than the rest of its start, and a Ctrl-C in it would
show a traceback.

They import from where this one does. Left to itself, an interpreter that is given a program in words, or a module by
its name, imports from the directory that one stands in first: a file `socket.py` that somebody has left there would be
run, though the command that was typed never looks there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from nephila.model.errors import SHORTAGE_BYTES

_FIRST = """
import _signal
_signal.signal(_signal.SIGINT, _signal.SIG_IGN)
_signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
_signal.signal(_signal.SIGHUP, _signal.SIG_IGN)
"""
_PACKAGES = """
import site
site.main()
"""


_TELLING = """
import sys
def tell(kind, error, _):
    why = f"{{kind.__name__}}: {{error}}"
    try:
        short = kind is MemoryError or not bytearray({probe})
    except MemoryError:
        short = True
    print({who!r} + ("there is not enough memory" if short else why), file=sys.stderr)
sys.excepthook = tell
"""


def in_a_sentence(who: str) -> str:
    """What `heedless` runs first so that whatever breaks the process is told in one sentence, which begins so."""
    return _TELLING.format(who=who, probe=SHORTAGE_BYTES)


def heedless(program: str, first: str = "") -> list[str]:
    """The words that start an interpreter like this one, which ignores these signals and runs `program`.

    `first` is run before it looks for packages.
    """
    return [sys.executable, "-S", *_safely(), "-c", _FIRST + first + _PACKAGES + program]


def running(module: str) -> list[str]:
    """The words that start an interpreter like this one, which runs a module of ours."""
    return [sys.executable, *_safely(), "-m", module]


def _safely() -> list[str]:
    """What keeps the present directory out of the imports, unless this program imports from there as well."""
    return [] if not sys.flags.safe_path and any(map(_is_here, sys.path)) else ["-P"]


def _is_here(entry: str) -> bool:
    """Whether a place of imports is the present directory, which may be gone."""
    try:
        return not entry or Path(entry).samefile(".")
    except OSError:
        return False
