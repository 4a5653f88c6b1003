"""A plugin's own process: takes calls over a socket, one after the other, and answers each with plain values.

A message is a length of four bytes and so many bytes. Calls are pickled, as they come from the crawl; answers are
msgpack of plain values (`answers`), as the crawl must not believe more than that. The first message is the plugin.

It dies with the crawl, whatever it is doing, and ignores the signals of the terminal: the crawl ends it in time.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import signal
import socket
import struct
from multiprocessing import spawn
from typing import Any, TypeAlias

import msgspec

from nephila.model.errors import UsageError

from .answers import BadAnswerError, Plain, plain
from .points import CLOSE, Point

FRAME = struct.Struct(">I")
LONGEST_MESSAGE = 200_000_000
"""A body of the largest allowed size, and then some."""
LONGEST_COMPLAINT = 500
_PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""

preparing = False
"""Whether the main program is being imported here only to find a plugin in it: nothing may be begun by it."""

Call: TypeAlias = tuple[str, tuple[Any, ...], int]
"""Method, arguments, and of how many links it is asked."""
Told: TypeAlias = tuple[str, Plain]
"""``ok`` and the answer, or ``raised`` or ``nonsense`` and a sentence."""


class Confines:
    """What a plugin's process may take of the machine."""

    def __init__(self, memory_bytes: int, *, sealed: bool = False) -> None:
        """`sealed`: it writes no file, starts no process and is told no secret; for what reads hostile documents."""
        self._memory_bytes = memory_bytes
        self.sealed = sealed

    def apply(self) -> None:
        """For this process, for good."""
        if self._memory_bytes:
            resource.setrlimit(resource.RLIMIT_AS, (self._memory_bytes, self._memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.sealed:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def live(crawl: int, descriptor: int) -> None:
    """The life of a plugin's process."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != crawl:
        return  # it was faster
    with socket.socket(fileno=descriptor) as connection:
        preparation = _received(connection)
        if preparation is None:
            return
        told: Told = ("ok", None)
        plugin: object = None
        try:
            data, confines, pickled = pickle.loads(preparation)  # noqa: S301 - it comes from the crawl
            _prepare(data)
            plugin = pickle.loads(pickled)  # noqa: S301 - as above
            confines.apply()
        except BaseException as error:  # noqa: BLE001 - told to the crawl
            told = ("raised", complaint(error))
        _send(connection, told)
        if told[0] == "ok":
            _serve(connection, plugin)


def refuse_while_preparing() -> None:
    """Raise `UsageError` where a program without a guard would begin everything once more in a plugin's process."""
    if preparing:
        raise UsageError(
            "the program begins a crawl when it is imported", hint='put it under `if __name__ == "__main__":`'
        )


def _prepare(data: dict[str, Any]) -> None:
    global preparing  # noqa: PLW0603 - of this process, for the length of an import
    preparing = True
    try:
        spawn.prepare(data)
    finally:
        preparing = False


def _serve(connection: socket.socket, plugin: object) -> None:
    while (message := _received(connection)) is not None:
        method, arguments, asked = pickle.loads(message)  # noqa: S301 - it comes from the crawl
        del message
        _send(connection, _told(plugin, method, arguments, asked))


def _told(plugin: object, method: str, arguments: tuple[Any, ...], asked: int) -> Told:
    try:
        answer = getattr(plugin, method)(*arguments)
        return "ok", None if method == CLOSE else plain(Point(method), answer, asked)
    except BadAnswerError as error:
        return "nonsense", str(error)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told to the crawl
        return "raised", complaint(error)


def complaint(error: BaseException) -> str:
    """What was raised, as one line."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return " ".join(text.split())[:LONGEST_COMPLAINT].encode("utf-8", "replace").decode()


def _received(connection: socket.socket) -> bytes | None:
    """The next message; None when the crawl has left."""
    head = _exactly(connection, FRAME.size)
    return None if head is None else _exactly(connection, FRAME.unpack(head)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    buffer = bytearray(size)
    view, filled = memoryview(buffer), 0
    while filled < size:
        count = connection.recv_into(view[filled:])
        if not count:
            return None
        filled += count
    return bytes(buffer)


def _send(connection: socket.socket, told: Told) -> None:
    data = msgspec.msgpack.encode(told)
    connection.sendall(FRAME.pack(len(data)) + data)
