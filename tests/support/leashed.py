"""Servers on a leash: a process that a test has started ends with the tests, even where these are killed with -9.

Nothing of ours runs then that could end it; the kernel does, by the signal that a process can ask to be sent when its
parent dies (prctl, PR_SET_PDEATHSIG). `setpriv` asks for it and becomes the command: the pid is the server's own.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Sequence


def leashed(command: Sequence[str]) -> list[str]:
    """The command, on a leash.

    Not in a thread: the kernel takes the end of the thread that has started a process for that of its parent. Nor where
    there is no such signal.
    """
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if setpriv is None or threading.current_thread() is not threading.main_thread():
        return list(command)
    return [setpriv, "--pdeathsig", "KILL", *command]
