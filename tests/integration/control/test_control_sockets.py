"""The API over a real socket: where it listens; a client that says nothing is hung up on."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from nephila.control.access import Role, Token, digest_of
from nephila.control.bounds import Bounds
from nephila.control.server import Binding, listening, serve_desk, url_of
from nephila.model.errors import UsageError
from nephila.node.desk import desk_beside

HASTY = Bounds(head_s=0.2)


TOKENS = (Token("me", Role.WRITE, digest_of("x" * 32)),)


@pytest.mark.parametrize("host", ["192.0.2.7", "fe80::1", f"{'a' * 80}.test"])
def test_an_address_of_somebody_else_is_told_with_what_to_give(host: str) -> None:
    """C2, C4: another port would not help."""
    with pytest.raises(UsageError, match="is no address of this machine") as raised:
        listening(Binding(host, 0, TOKENS))
    assert "127.0.0.1" in raised.value.hint


@pytest.mark.parametrize("host", ["", "192.0.2.7", "127.0.0.1:80", "http://127.0.0.1", "a b", "nonsense.invalid"])
def test_without_a_token_nothing_is_looked_up(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C2: and nothing is said of it but that it is not loopback."""
    monkeypatch.setattr("socket.getaddrinfo", None)
    with pytest.raises(UsageError, match=r"and .* is not its loopback address") as raised:
        listening(Binding(host, 0))
    assert "--token-file" in raised.value.hint
    assert "127.0.0.1" in raised.value.hint


def test_a_port_that_is_taken_is_told_with_what_to_do() -> None:
    """C4: here another port helps."""
    with closing(listening(Binding("127.0.0.1", 0))) as first:
        port = first.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 cannot be used") as raised:
            listening(Binding("127.0.0.1", port))
    assert raised.value.hint == "choose another port"


def test_an_address_may_stand_in_brackets_as_in_a_url() -> None:
    """C2: and the URL has them once."""
    with closing(listening(Binding("[::1]", 0))) as listener:
        assert url_of(listener, "[::1]") == url_of(listener, "::1") == f"http://[::1]:{listener.getsockname()[1]}"


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
