"""TLS before a server whose build has none: bytes are handed on, decrypted."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator


class SecuredFront:
    """Listens on a port of its own. With `asked` it answers the request for TLS as PostgreSQL does, else at once."""

    def __init__(self, behind: int, context: ssl.SSLContext, *, asked: bool = False) -> None:
        self._behind = behind
        self._context = context
        self._asked = asked
        self.secured = 0
        """Connections that came encrypted."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ends = [writer]
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if self._asked:
                    await reader.readexactly(8)
                    writer.write(b"S")
                    await writer.start_tls(self._context)
                self.secured += 1
                theirs, ours = await asyncio.open_connection("127.0.0.1", self._behind)
                open_ends.append(ours)
                await asyncio.gather(_hand_on(reader, ours), _hand_on(theirs, writer))
        finally:
            for end in open_ends:
                end.transport.abort()

    @contextlib.contextmanager
    def running(self) -> Iterator[int]:
        """Its port, until the end of the block."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=None if self._asked else self._context)
        begun = asyncio.run_coroutine_threadsafe(start, loop).result()
        try:
            yield int(begun.sockets[0].getsockname()[1])
        finally:
            asyncio.run_coroutine_threadsafe(_end(begun), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
