"""Many short commands, each in a process of its own that is forked from one which has everything imported already.

Through the real entry point, with arguments, environment, working directory, streams and exit code of its own, and to
the interpreter's own end: only the start-up is spared, half a second of computing each time. What takes long by itself
(`crawl`, `worker`, `serve`) is started as people start it, and tests/house/test_house_imports.py proves that commands
find what they import.

The process listens to its standard input, a socket: an order comes with four descriptors, its own line for the answer
and the three streams. When the line is cut, the command is killed; when the socket is, the process ends.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from leashed import leashed

Result = subprocess.CompletedProcess[str]

LONG = ("crawl", "worker", "serve", "demo", "sim", "bench", "test", "setup")
"""Commands that are not begun here: they start processes of their own, or run until somebody ends them."""
AT_THE_START = ("PYTHON", "LC_", "LANG", "LD_")
"""Variables that an interpreter reads once, at its start."""
PACKAGES = ("nephila.cli", "nephila.node", "nephila.node.fleet")
ORDER_BYTES = 1 << 17


def can_fork(arguments: Sequence[str | Path], environ: Mapping[str, str]) -> bool:
    """Whether a command is a short one, in an environment that makes no other interpreter of ours."""
    changed = {name for name in environ.keys() | os.environ.keys() if environ.get(name) != os.environ.get(name)}
    return str(arguments[0]) not in LONG and not any(name.startswith(AT_THE_START) for name in changed)


def run_one(
    arguments: Sequence[str | Path],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: Path = Path(os.devnull),
    timeout: float = 120,
) -> Result:
    """Run the crawler with these arguments to its end. Raises `TimeoutExpired` as `subprocess.run` does."""
    words = list(map(str, arguments))
    order = {"arguments": words, "environ": dict(environ or os.environ), "cwd": str(cwd or Path.cwd())}
    ours, theirs = socket.socketpair()
    with ours, theirs, stdin.open("rb") as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        descriptors = [theirs.fileno(), given.fileno(), out.fileno(), err.fileno()]
        socket.send_fds(_starter(), [json.dumps(order).encode()], descriptors)
        theirs.close()
        ours.settimeout(timeout)
        try:
            told = ours.recv(16)
        except TimeoutError:
            raise subprocess.TimeoutExpired(words, timeout) from None
        assert told, "the process that starts commands has died"
        out.seek(0)
        err.seek(0)
        return Result(words, int(told), out.read().decode(), err.read().decode())


def run_forked(commands: Sequence[Sequence[str | Path]], *, cwd: Path, stdin: Path = Path(os.devnull)) -> list[Result]:
    """Run the crawler with each of these arguments, one after the other."""
    return [run_one(command, cwd=cwd, stdin=stdin) for command in commands]


@cache
def _starter() -> socket.socket:
    """The process, by the socket that it listens to; it ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * ORDER_BYTES)
    with theirs:
        process = subprocess.Popen(leashed([sys.executable, __file__]), stdin=theirs)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# In the process that starts commands


def _serve(orders: socket.socket) -> list[str]:
    """Fork a process for each order; comes back in such a process, with the arguments of its command."""
    for package in PACKAGES:
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who keeps a command is waited for by nobody
    while True:
        data, descriptors, *_ = socket.recv_fds(orders, ORDER_BYTES, 4)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            orders.close()
            pid = os.fork()
            if pid == 0:
                return _become(json.loads(data), descriptors)
            _keep(pid, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(pid: int, descriptors: Sequence[int]) -> None:
    """Tell how a command has ended, and end it where nobody wants to know any more."""
    line, *streams = descriptors
    for descriptor in streams:
        os.close(descriptor)
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, line], [], [])
    if ended not in ready:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with socket.socket(fileno=line) as answer:
        if ended in ready:
            answer.sendall(str(code).encode())
    os._exit(0)


def _become(order: Mapping[str, object], descriptors: Sequence[int]) -> list[str]:
    """Take on streams, environment and place of a command."""
    line, *streams = descriptors
    os.close(line)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, environ, cwd = order["arguments"], order["environ"], order["cwd"]
    assert isinstance(arguments, list)
    assert isinstance(environ, dict)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(str(cwd))
    time.tzset()
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)  # type: ignore[misc] # noqa: SIM115
    return arguments


if __name__ == "__main__":
    sys.argv[1:] = _serve(socket.socket(fileno=0))
    runpy.run_module("nephila", run_name="__main__", alter_sys=True)
