"""One worker as its supervisor sees it: a process, and what it says."""

from __future__ import annotations

import asyncio
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Callable
from typing import TypeAlias

from .birth import bear
from .messages import Channel, Ended, FromWorker, Pong, ToWorker, supervisors_end

Hear: TypeAlias = "Callable[[Child, FromWorker], None]"


class Child:
    """A worker process. `gone` is done when it is surely dead, and has said all it will ever say."""

    def __init__(self, number: int, process: Process, channel: Channel[ToWorker, FromWorker], hear: Hear) -> None:
        self.number = number
        self._process = process
        self._channel = channel
        self._hear = hear
        self.ended: Ended | None = None
        """Its last words; None when it died without any."""
        self.answered = 0
        """The last ping that it answered while it was working on nothing."""
        self.has_spoken = False
        self.heard_at = asyncio.get_running_loop().time()
        """When it was started, or said something last: one that works does so every fraction of a second."""
        self.gone = asyncio.create_task(self._follow(), name=f"worker-{number}")

    @classmethod
    async def start(cls, number: int, lock: int, addresses: int, hear: Hear) -> Child:
        """Start a worker; it waits for its orders."""
        ours, its = socket.socketpair()
        with its:
            process = await bear(number, its, lock, addresses)
        return cls(number, process, await supervisors_end(ours), hear)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def send(self, message: ToWorker) -> None:
        """Tell it something."""
        self._channel.send(message)

    def kill(self) -> None:
        """End it at once; `gone` tells when it has."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)

    async def _follow(self) -> int:
        """Hear what it says until it has nothing more to say; its exit code, negative for a signal."""
        while (message := await self._channel.receive()) is not None:
            self.heard_at, self.has_spoken = asyncio.get_running_loop().time(), True
            match message:
                case Ended():
                    self.ended = message
                case Pong(sequence, held):
                    self.answered = sequence if not held else 0
                case _:
                    pass
            self._hear(self, message)
        code = await self._process.wait()
        await self._channel.close()
        return code


def death_of(code: int) -> str:
    """An exit code for people."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
