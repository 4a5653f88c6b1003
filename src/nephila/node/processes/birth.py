"""How a worker process comes into the world: what it inherits, what it ignores, with whom it dies.

A worker is a new interpreter, not a fork: LMDB environments, threads and event loops must not be carried over one. It
inherits three descriptors: its end of the channel, the lock on the crawl directory, and the table of addresses.

It is the supervisor that answers Ctrl-C and SIGTERM; workers ignore both from the start (`engines/interpreter.py`).

A worker dies with its supervisor, whatever it is doing, so that its leases may be reaped at once then. That, too, is
arranged before anything of ours is imported: importing takes a second, and a worker holds the directory's lock, which
whoever starts the crawl again must get.
"""

from __future__ import annotations

import asyncio
import os
import socket
from asyncio.subprocess import DEVNULL, Process

from nephila.engines.interpreter import heedless, in_a_sentence

_PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""

_PROGRAM = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl({death}, signal.SIGKILL, 0, 0, 0)
if os.getppid() != {supervisor}:
    sys.exit()  # it was faster
from nephila.node.processes.birth import live
live({channel}, {addresses})
"""


async def bear(number: int, connection: socket.socket, lock: int, addresses: int) -> Process:
    """Start a worker that has these. Its number is for people who look at a list of processes."""
    program = _PROGRAM.format(
        death=_PR_SET_PDEATHSIG, supervisor=os.getpid(), channel=connection.fileno(), addresses=addresses
    )
    return await asyncio.create_subprocess_exec(
        *(*heedless(program, in_a_sentence("nephila: a worker: ")), f"nephila-worker-{number}"),
        stdin=DEVNULL,
        stdout=DEVNULL,
        pass_fds=(connection.fileno(), lock, addresses),
    )


def live(channel: int, addresses: int) -> None:
    """A worker's life."""
    import uvloop  # noqa: PLC0415 - the supervisor has no use for it here

    from nephila.node.collector import calm_collector  # noqa: PLC0415 - as above
    from nephila.node.memory import threads  # noqa: PLC0415 - as above

    from .messages import workers_end  # noqa: PLC0415 - as above
    from .worker import work  # noqa: PLC0415 - as above

    async def whole() -> None:
        await work(await workers_end(socket.socket(fileno=channel)), addresses)

    calm_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, threads(runner.get_loop()):
        runner.run(whole())
