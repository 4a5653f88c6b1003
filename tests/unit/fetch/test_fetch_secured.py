"""TLS over a transport in memory: the far end is the ssl module's own server, driven by hand."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any

import pytest
import trustme

from nephila.fetch.secured import HANDSHAKE_BYTES, SEALED_BYTES, SecuredTransport


class Below(asyncio.Transport):
    """The transport under the layer; what is written to it waits for the far end."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: asyncio.BaseProtocol | None = None
        self.written = bytearray()
        self.writes = 0
        self.closing = self.aborted = self.paused = False

    def write(self, data: Any) -> None:
        self.written += data
        self.writes += 1

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            assert isinstance(self.protocol, asyncio.Protocol)
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return "below" if name == "peername" else default


class Above(asyncio.Protocol):
    """Remembers what it is told, in order."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.received = bytearray()
        self.transport: Any = None
        self.pause_at = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.heard.append("made")

    def data_received(self, data: bytes) -> None:
        assert data
        self.received += data
        if 0 <= self.pause_at <= len(self.received):
            self.transport.pause_reading()

    def eof_received(self) -> None:
        self.heard.append("eof")

    def connection_lost(self, exc: Exception | None) -> None:
        self.heard.append(("lost", exc))

    def pause_writing(self) -> None:
        self.heard.append("full")

    def resume_writing(self) -> None:
        self.heard.append("empty")


class Line:
    """A layer and the server at its far end."""

    def __init__(self, authority: trustme.CA, name: str = "a.test", version: ssl.TLSVersion | None = None) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("a.test").configure_cert(context)
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authority.configure_trust(trusting)
        if version is not None:
            trusting.maximum_version = version
        self.sent, self.got = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = context.wrap_bio(self.got, self.sent, server_side=True)
        self.above, self.below = Above(), Below()
        self.layer = SecuredTransport(self.above, trusting, name)
        self.below.protocol = self.layer
        self.layer.connection_made(self.below)

    def exchange(self) -> bytes:
        """Carry what the layer wrote to the server and let it go on with its handshake; what it answers."""
        self.got.write(bytes(self.below.written))
        self.below.written.clear()
        with suppress(ssl.SSLWantReadError):
            self.server.do_handshake()
        return self.sent.read()

    async def open(self) -> None:
        """A whole handshake."""
        waiting = asyncio.ensure_future(self.layer.secured())
        while not waiting.done():
            if data := self.exchange():
                self.layer.data_received(data)
            await asyncio.sleep(0)
        await waiting
        await asyncio.sleep(0)
        self.layer.data_received(self.exchange() or self.say(b""))

    def say(self, data: bytes) -> bytes:
        """The server's words, encrypted."""
        for start in range(0, len(data), 16_384):
            self.server.write(data[start : start + 16_384])
        return self.sent.read()

    def heard_by_server(self) -> bytes:
        """What the layer sent, decrypted."""
        self.got.write(bytes(self.below.written))
        self.below.written.clear()
        heard = b""
        try:
            while data := self.server.read(65_536):
                heard += data
        except ssl.SSLWantReadError:
            pass
        return heard


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("portion", [1, 7, 1000, SEALED_BYTES, 1_000_000])
def test_bytes_arrive_in_order_however_they_are_cut(
    authority: trustme.CA, version: ssl.TLSVersion, portion: int
) -> None:
    """H1: records over any boundaries of what is read from the wire."""
    text = bytes(range(256)) * (20 if portion < 10 else 400)

    async def main() -> None:
        line = Line(authority, version=version)
        await line.open()
        line.layer.write(b"question")
        assert line.heard_by_server() == b"question"
        sealed = line.say(text)
        for start in range(0, len(sealed), portion):
            line.layer.data_received(sealed[start : start + portion])
        assert bytes(line.above.received) == text
        assert line.above.heard == ["made"]
        assert line.layer.get_extra_info("peername") == "below"
        assert line.layer.get_extra_info("ssl_object").version() == version.name.replace("_", ".", 1)

    asyncio.run(main())


def test_the_handshake_ends_in_the_same_packet_as_the_first_request(authority: trustme.CA) -> None:
    """Q1: whoever waits for the handshake writes first; one write, not two."""

    async def main() -> None:
        line = Line(authority)

        async def ask() -> None:
            await line.layer.secured()
            line.layer.write(b"question")

        asking = asyncio.ensure_future(ask())
        await asyncio.sleep(0)
        line.layer.data_received(line.exchange())
        before = line.below.writes
        await asking
        await asyncio.sleep(0)
        assert line.below.writes == before + 1
        line.exchange()
        assert line.heard_by_server() == b"question"

    asyncio.run(main())


def test_nothing_is_handed_on_while_reading_is_paused_and_nothing_is_lost(authority: trustme.CA) -> None:
    """Q5: back-pressure reaches the transport below; what was here already waits."""
    text = b"x" * 100_000

    async def main() -> None:
        line = Line(authority)
        await line.open()
        line.above.pause_at = 20_000
        line.layer.data_received(line.say(text) + _goodbye(line))
        assert 20_000 <= len(line.above.received) <= 20_000 + 16_384
        assert (line.below.paused, line.layer.is_reading()) == (True, False)
        before = len(line.above.received)
        await asyncio.sleep(0)
        assert len(line.above.received) == before
        line.above.pause_at = -1
        line.layer.resume_reading()
        assert (line.below.paused, line.layer.is_reading()) == (False, True)
        assert len(line.above.received) == before, "not from within the call that resumes"
        await asyncio.sleep(0)
        assert bytes(line.above.received) == text
        await asyncio.sleep(0)
        assert line.above.heard == ["made", "eof", ("lost", None)]

    asyncio.run(main())


def _goodbye(line: Line) -> bytes:
    with suppress(ssl.SSLWantReadError):
        line.server.unwrap()
    return line.sent.read()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("announced", [True, False])
def test_the_end_is_told_once_whether_or_not_it_was_announced(
    authority: trustme.CA, version: ssl.TLSVersion, announced: bool
) -> None:
    """H1, H5: many servers close without close_notify; whether the answer is whole is for HTTP to say."""

    async def main() -> None:
        line = Line(authority, version=version)
        await line.open()
        line.layer.data_received(line.say(b"all") + (_goodbye(line) if announced else b""))
        line.layer.eof_received()
        await asyncio.sleep(0)
        assert bytes(line.above.received) == b"all"
        assert line.above.heard == ["made", "eof", ("lost", None)]
        assert line.layer.is_closing()
        line.layer.write(b"too late")
        line.layer.close()
        line.layer.abort()

    asyncio.run(main())


def test_an_end_in_the_middle_of_a_record_is_an_end(authority: trustme.CA) -> None:
    """H5: what was whole is handed on, the torn record is not."""

    async def main() -> None:
        line = Line(authority)
        await line.open()
        line.layer.data_received(line.say(b"whole") + line.say(b"torn")[:-3])
        line.layer.eof_received()
        await asyncio.sleep(0)
        assert bytes(line.above.received) == b"whole"
        assert line.above.heard == ["made", "eof", ("lost", None)]

    asyncio.run(main())


def test_what_cannot_be_decrypted_breaks_the_connection(authority: trustme.CA) -> None:
    """H5, Q5: with the reason, and with an alert to the server."""

    async def main() -> None:
        line = Line(authority)
        await line.open()
        sealed = bytearray(line.say(b"secret"))
        sealed[-1] ^= 1
        line.layer.data_received(bytes(sealed))
        await asyncio.sleep(0)
        assert line.below.aborted
        assert line.below.written, "the alert"
        assert not line.above.received
        (_, (_, error)) = line.above.heard
        assert isinstance(error, ssl.SSLError)
        line.layer.data_received(b"more")
        line.layer.resume_reading()

    asyncio.run(main())


def test_closing_says_goodbye_and_does_not_wait(authority: trustme.CA) -> None:
    """H1: close_notify is sent; what comes afterwards is nobody's."""

    async def main() -> None:
        line = Line(authority)
        await line.open()
        line.layer.close()
        assert line.below.closing
        line.got.write(bytes(line.below.written))
        assert line.server.read(10) == b"", "a clean end, as the server sees it"
        line.layer.data_received(line.say(b"late"))
        await asyncio.sleep(0)
        assert not line.above.received
        assert line.above.heard == ["made", ("lost", None)]

    asyncio.run(main())


@pytest.mark.parametrize("waited", [True, False])
@pytest.mark.parametrize("how", ["garbage", "eof", "lost", "reset", "name"])
def test_a_handshake_that_fails_says_why_and_leaves_nothing_open(authority: trustme.CA, how: str, waited: bool) -> None:
    """H1, H5: it may fail before anybody waits for it; the protocol above never learns of such a connection."""

    async def main() -> None:
        line = Line(authority, "b.test" if how == "name" else "a.test")
        waiting = asyncio.ensure_future(line.layer.secured())
        if waited:
            await asyncio.sleep(0)
        match how:
            case "garbage":
                line.layer.data_received(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3000)
            case "eof":
                line.layer.eof_received()
            case "lost":
                line.layer.connection_lost(None)
            case "reset":
                line.layer.connection_lost(ConnectionResetError(104, "Connection reset by peer"))
            case _:
                line.layer.data_received(line.exchange())
                assert line.below.written, "the alert"
        expected = {"reset": ConnectionResetError, "name": ssl.SSLCertVerificationError, "garbage": ssl.SSLError}
        with pytest.raises(expected.get(how, ssl.SSLEOFError)):
            await waiting
        await asyncio.sleep(0)
        assert line.layer.is_closing()
        assert line.above.heard == []

    asyncio.run(main())


def test_a_handshake_that_is_given_up_closes_the_connection(authority: trustme.CA) -> None:
    """H2: cancelled in the middle; an answer that comes all the same changes nothing."""

    async def main() -> None:
        line = Line(authority)
        waiting = asyncio.ensure_future(line.layer.secured())
        await asyncio.sleep(0)
        answer = line.exchange()
        waiting.cancel()
        line.layer.data_received(answer)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0)
        assert line.below.aborted
        assert line.above.heard == []

    asyncio.run(main())


def test_words_wait_while_the_ssl_module_must_read_first(authority: trustme.CA) -> None:
    """H1: nothing that was written is lost, and the order stays."""

    class Reluctant:
        """Takes three bytes a call, and none while it is told to read first."""

        def __init__(self, tls: Any) -> None:
            self.tls, self.reading = tls, True

        def write(self, data: bytes) -> int:
            if self.reading:
                raise ssl.SSLWantReadError
            taken: int = self.tls.write(data[:3])
            return taken

        def read(self, count: int) -> Any:
            self.reading = False
            return self.tls.read(count)

    async def main() -> None:
        line = Line(authority)
        await line.open()
        line.layer._tls = Reluctant(line.layer._tls)  # type: ignore[assignment]
        line.layer.write(b"first ")
        line.layer.write(b"second")
        assert line.layer.get_write_buffer_size() == 12
        assert line.heard_by_server() == b""
        line.layer.data_received(line.say(b"go on"))
        assert line.heard_by_server() == b"first second"

    asyncio.run(main())


def test_a_full_transport_below_is_told_above(authority: trustme.CA) -> None:
    """H1: whoever writes much can wait."""

    async def main() -> None:
        line = Line(authority)
        line.layer.pause_writing()
        await line.open()
        line.layer.pause_writing()
        line.layer.resume_writing()
        assert line.above.heard == ["made", "full", "empty"]
        assert line.layer.get_protocol() is line.above

    asyncio.run(main())


def test_a_protocol_that_aborts_in_the_middle_hears_no_more(authority: trustme.CA) -> None:
    """H7: what is not wanted is not read."""

    async def main() -> None:
        line = Line(authority)
        await line.open()

        class Enough(Above):
            def data_received(self, data: bytes) -> None:
                super().data_received(data)
                line.layer.abort()

        other = Enough()
        line.layer.set_protocol(other)
        line.layer.data_received(line.say(b"x" * 100_000))
        await asyncio.sleep(0)
        assert len(other.received) == 16_384
        assert other.heard == [("lost", None)]

    asyncio.run(main())


def test_a_handshake_without_end_is_broken_off(authority: trustme.CA) -> None:
    """Q5: hello requests are ignored by everybody, so a server could send them for ever."""

    async def main() -> None:
        line = Line(authority)
        waiting = asyncio.create_task(line.layer.secured())
        await asyncio.sleep(0)
        records = b"\x16\x03\x03\x00\x04\x00\x00\x00\x00" * 1_000
        for _ in range(HANDSHAKE_BYTES // len(records) + 1):
            line.layer.data_received(records)
        with pytest.raises(ssl.SSLError, match="no end of it"):
            await waiting

    asyncio.run(main())


def test_records_that_hold_next_to_nothing_break_the_connection(authority: trustme.CA) -> None:
    """Q5: each costs as much as a full one."""

    async def main() -> None:
        line = Line(authority)
        await line.open()
        tiny = b"".join(line.say(b"x") for _ in range(2_000))
        for _ in range(40):
            line.layer.data_received(tiny)
            tiny = b"".join(line.say(b"x") for _ in range(2_000))
        await asyncio.sleep(0)
        (told,) = [heard for heard in line.above.heard if isinstance(heard, tuple) and heard[0] == "lost"]
        assert "next to nothing" in str(told[1])

    asyncio.run(main())
