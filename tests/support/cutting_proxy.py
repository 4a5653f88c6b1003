"""A proxy between a client and a server that cuts connections: where a test says, or after so many answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random


class CuttingProxy:
    """Forwards to a port of loopback. A cut may lose the question, or the answer to what was done."""

    def __init__(self, port: int, random: Random | None = None, share: float = 0.0) -> None:
        self._target, self._random, self._share = port, random, share
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.cuts = 0
        self.lose_next_answer = False
        self.lose_next_question = False
        self.away = False
        """Whether new connections are cut at once."""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self.away:
            writer.transport.abort()
            return
        self._tasks.add(task)
        inner: asyncio.StreamWriter | None = None
        try:
            answers, inner = await asyncio.open_connection("127.0.0.1", self._target)
            ways = [
                asyncio.create_task(self._carry(reader, inner, question=True)),
                asyncio.create_task(self._carry(answers, writer, question=False)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for end in (writer, inner):
                if end is not None:
                    end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, question: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 20):
                if self._cuts_now(question=question):
                    self.cuts += 1
                    return
                writer.write(data)
                await writer.drain()

    def _cuts_now(self, *, question: bool) -> bool:
        if question and self.lose_next_question:
            self.lose_next_question = False
            return True
        if not question and self.lose_next_answer:
            self.lose_next_answer = False
            return True
        return self._random is not None and self._random.random() < self._share
