"""The API over a real socket: a client that says nothing is hung up on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nephila.control.bounds import Bounds
from nephila.control.server import Binding, listening, serve_desk
from nephila.node.desk import desk_beside

HASTY = Bounds(head_s=0.2)


def test_a_silent_client_is_hung_up_on(out: Path) -> None:
    """C2: by the server as it is built; `tests/unit/control` has the rules."""

    async def go() -> bytes:
        binding = Binding("127.0.0.1", 0)
        listener = listening(binding)
        async with desk_beside(out) as desk:
            serving = asyncio.create_task(serve_desk(desk, listener, binding, HASTY))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            try:
                return await reader.read()
            except ConnectionResetError:
                return b""
            finally:
                writer.close()
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
                listener.close()

    assert asyncio.run(asyncio.wait_for(go(), 60)) == b""
