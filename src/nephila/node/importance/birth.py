"""The process that computes ranks beside a crawl: how it is started, and what it does (R3).

A new interpreter, since the crawl's own must not wait for it: not for a lock of the interpreter, and not for memory. It
gives way to whoever wants the processor, is the first to go where memory runs short, ignores Ctrl-C (its crawl answers
that), and dies with the process that started it, by whatever that dies. Whatever is cut off is done the next time:
every file that it writes is moved into its place whole.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path

from nephila.engines.interpreter import heedless, in_a_sentence
from nephila.model.errors import MemoryShortageError, NephilaError

_PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""
_NICENESS = 10
_FIRST_TO_GO = "500"
"""/proc/self/oom_score_adj: 0 is what the crawl has, 1000 the most."""

_PROGRAM = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl({death}, signal.SIGKILL, 0, 0, 0)
if os.getppid() != {parent}:
    sys.exit()  # it was faster
from nephila.node.importance.birth import live
live(sys.argv[2])
"""


async def bear(out: Path) -> Process:
    """Start it for a crawl directory. What it says on standard error is why it failed."""
    program = _PROGRAM.format(death=_PR_SET_PDEATHSIG, parent=os.getpid())
    return await asyncio.create_subprocess_exec(
        *heedless(program, in_a_sentence("")), "nephila-ranker", str(out), stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    )


def live(out: str) -> None:
    """Its life: compute the ranks of a crawl directory, unless somebody is doing so."""
    os.nice(_NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    from .premises import importance_of  # noqa: PLC0415 - after it has stepped back

    try:
        importance_of(Path(out))
    except (NephilaError, MemoryError) as error:
        print(error if isinstance(error, NephilaError) else MemoryShortageError(), file=sys.stderr)  # noqa: T201 - how it tells
        sys.exit(1)
