"""One try at one name server: both address types asked at once over UDP, over TCP where an answer does not fit.

Each try has a socket of its own, connected to the server: the kernel picks a random port and drops what comes from
elsewhere, and with a random id per question a blind forger has 32 bits to guess. Datagrams that do not belong to a
question are ignored, not believed; after a few of them somebody is guessing, and the questions that are open are asked
over TCP, where guessing is hopeless.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from .dns_message import RecordType, Reply, ReplyCode, ask, read_reply
from .dns_system import NameServer

GRACE_S = 0.05
"""When one type has brought addresses, the other gets so much longer (RFC 8305 3, Resolution Delay)."""

RESEND_S = 0.5
"""What was not answered by then is asked again, and again after twice the time: datagrams get lost, above all where
hundreds of names are asked at once, and to sit out the whole try costs a host seconds."""
MAX_FORGED = 16
"""Datagrams that answer no question of ours before UDP is given up for this try. A late answer or two is common."""

Replies = dict[RecordType, Reply]


class _Questions(asyncio.DatagramProtocol):
    """Collects the replies to some questions."""

    def __init__(self, questions: dict[RecordType, bytes], replies: Replies) -> None:
        self._open = dict(questions)
        self._loop = asyncio.get_running_loop()
        self._grace: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None
        self.forged = 0
        self.replies = replies
        self.done: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._send(cast("asyncio.DatagramTransport", transport), RESEND_S)

    def _send(self, sender: asyncio.DatagramTransport, wait_s: float) -> None:
        for question in self._open.values():
            sender.sendto(question)
        self._again = self._loop.call_later(wait_s, self._send, sender, 2 * wait_s)

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:  # noqa: ARG002 - a connected socket
        for kind, question in self._open.items():
            reply = read_reply(data, question)
            if reply is not None:
                self.replies[kind] = reply
                del self._open[kind]
                break
        else:
            self.forged += 1
        if self.forged > MAX_FORGED:
            self._finish()
        if not self._open or any(reply.code == ReplyCode.NO_SUCH_NAME for reply in self.replies.values()):
            self._finish()
        elif self._grace is None and any(reply.addresses for reply in self.replies.values()):
            self._grace = self._loop.call_later(GRACE_S, self._finish)

    def error_received(self, exc: Exception) -> None:  # noqa: ARG002 - refused is all that it can mean
        self._finish()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - closed by us
        self._finish()

    def _finish(self) -> None:
        for timer in (self._grace, self._again):
            if timer is not None:
                timer.cancel()
        if not self.done.done():
            self.done.set_result(None)


async def query(server: NameServer, name: str, draw_id: Callable[[], int], timeout_s: float) -> Replies:
    """Ask one server for A and AAAA; the replies that came in time, none when it does not answer.

    One that did not fit, and could not be had over TCP either, is among them, and says that it is truncated.
    """
    questions = {kind: ask(draw_id(), name, kind) for kind in (RecordType.A, RecordType.AAAA)}
    replies: Replies = {}
    with suppress(OSError):  # time is up, no route to that server, no descriptor left: what came by then is all
        async with asyncio.timeout(timeout_s):
            forged = await _ask_datagrams(server, questions, replies)
            for kind, question in questions.items():
                reply = replies.get(kind)
                if (reply is None and forged) or (reply is not None and reply.truncated):
                    whole = await _ask_stream(server, question)
                    if whole is not None:
                        replies[kind] = whole
    return replies


async def _ask_datagrams(server: NameServer, questions: dict[RecordType, bytes], replies: Replies) -> bool:
    """Gather the replies as they come; whether somebody is guessing."""
    protocol = _Questions(questions, replies)
    wire = socket.socket(socket.AF_INET6 if ":" in server[0] else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        wire.setblocking(False)
        wire.connect(server)
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: protocol, sock=wire)
    except BaseException:
        wire.close()
        raise
    try:
        await protocol.done
    finally:
        transport.close()
    return protocol.forged > MAX_FORGED


async def _ask_stream(server: NameServer, question: bytes) -> Reply | None:
    """The same question over TCP, each message behind its length (RFC 1035 4.2.2)."""
    reader, writer = await asyncio.open_connection(*server)
    try:
        writer.write(len(question).to_bytes(2) + question)
        size = int.from_bytes(await reader.readexactly(2))
        return read_reply(await reader.readexactly(size), question)
    except asyncio.IncompleteReadError:
        return None
    finally:
        writer.close()
