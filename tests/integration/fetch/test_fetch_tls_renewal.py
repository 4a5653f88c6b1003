"""What openssl's own server can do to an open connection: new keys, a new handshake."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from nephila.fetch import SocketDialer

Run = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def openssl() -> None:
    """A machine that lacks it is told, not passed over."""
    assert shutil.which("openssl"), "install the command openssl (Debian, Ubuntu: apt install openssl)"


class Listening(asyncio.Protocol):
    """Gathers what comes."""

    def __init__(self) -> None:
        self.received = b""
        self.more = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.more.set()

    async def until(self, words: bytes) -> None:
        async with asyncio.timeout(10):
            while words not in self.received:
                self.more.clear()
                await self.more.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.parametrize(("version", "command"), [("-tls1_2", b"r\n"), ("-tls1_3", b"k\n"), ("-tls1_3", b"K\n")])
def test_a_connection_goes_on_when_the_server_renews_its_keys(
    run: Run, authority: trustme.CA, tmp_path: Path, version: str, command: bytes
) -> None:
    """H1: renegotiation in TLS 1.2, key updates in TLS 1.3 (asked of one side and of both); both ways afterwards."""
    issued = authority.issue_cert("a.test")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(client)

    async def main() -> None:
        port, heard = free_port(), Listening()
        server = await asyncio.create_subprocess_exec(
            *("openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", tmp_path / "server.pem", version),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            await server.stdout.readuntil(b"ACCEPT\n")
            transport = await SocketDialer().open(lambda: heard, "127.0.0.1", port, tls=client, server_name="a.test")
            transport.write(b"before\n")
            await server.stdout.readuntil(b"before\n")
            for number in range(3):
                server.stdin.write(command)
                await asyncio.sleep(0.2)  # s_server reads a command alone, or takes it for text
                server.stdin.write(b"server %d\n" % number)
                await heard.until(b"server %d\n" % number)
                transport.write(b"client %d\n" % number)
                await asyncio.wait_for(server.stdout.readuntil(b"client %d\n" % number), 10)
            transport.close()
        finally:
            server.kill()
            await server.communicate()

    run(main())
