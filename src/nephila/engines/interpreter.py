"""New interpreters for processes of ours that somebody else answers for.

Ctrl-C reaches every process of a terminal, and so does its closing (SIGHUP); a service manager's SIGTERM reaches every
process of a service. The process that was started by the user answers; those that it starts ignore them. They must do
so before Python looks for its packages (`site`): that takes longer than the rest of its start, and a Ctrl-C in it would
show a traceback.
"""

from __future__ import annotations

import sys

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


def heedless(program: str, first: str = "") -> list[str]:
    """The words that start an interpreter like this one, which ignores these signals and runs `program`.

    `first` is run before it looks for packages.
    """
    safely = ["-P"] if sys.flags.safe_path else []
    return [sys.executable, "-S", *safely, "-c", _FIRST + first + _PACKAGES + program]
