from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from nephila.testing.loop import run_virtual
from nephila.testing.web.pipe import PipeTransport


class End(asyncio.Protocol):
    """Writes down what happens to it, with the time."""

    def __init__(self, keep_open: bool = False) -> None:
        self.events: list[tuple[str, object]] = []
        self.data = b""
        self.keep_open = keep_open

    def note(self, name: str, value: object = None) -> None:
        self.events.append((name, value))

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.note("data", (round(asyncio.get_running_loop().time(), 6), len(data)))

    def eof_received(self) -> bool:
        self.note("eof")
        return self.keep_open

    def connection_lost(self, exc: Exception | None) -> None:
        self.note("lost", type(exc).__name__ if exc else None)

    def pause_writing(self) -> None:
        self.note("pause")

    def resume_writing(self) -> None:
        self.note("resume")

    def names(self) -> list[str]:
        return [name for name, _ in self.events]


class Pair:
    """Two ends of one connection."""

    def __init__(self, segment_bytes: int = 1000, keep_open: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self.left, self.right = End(keep_open), End(keep_open)
        self.near, self.far = (
            PipeTransport(loop, latency_s=0.1, segment_bytes=segment_bytes, extra={"peername": ("x", 1)})
            for _ in range(2)
        )
        self.near.attach(self.far, self.left)
        self.far.attach(self.near, self.right)


def on_a_pair(test: Callable[[Pair], Awaitable[None]], **options: int) -> None:
    async def run() -> None:
        await test(Pair(**options))

    run_virtual(run)


def test_data_arrives_after_the_latency_in_order_and_in_segments() -> None:
    async def test(pair: Pair) -> None:
        pair.near.write(b"a" * 1500)
        pair.near.writelines([b"b", bytearray(b"c"), memoryview(b"d")])
        await asyncio.sleep(1)
        assert pair.right.data == b"a" * 1500 + b"bcd"
        assert pair.right.events == [("data", (0.1, 1000)), ("data", (0.1, 500)), ("data", (0.1, 3))]

    on_a_pair(test)


def test_many_segments_of_one_instant_keep_their_order() -> None:
    async def test(pair: Pair) -> None:
        sent = bytes(range(256)) * 20
        pair.near.write(sent)
        await asyncio.sleep(1)
        assert pair.right.data == sent

    on_a_pair(test, segment_bytes=1)


def test_close_flushes_and_tells_both_sides() -> None:
    async def test(pair: Pair) -> None:
        pair.near.write(b"x" * 300_000)
        pair.near.close()
        assert pair.near.is_closing()
        pair.near.write(b"too late")
        await asyncio.sleep(10)
        assert len(pair.right.data) == 300_000
        assert pair.right.names()[-2:] == ["eof", "lost"]
        assert pair.right.events[-1] == ("lost", None)
        assert pair.left.events[-1] == ("lost", None)
        assert pair.left.names().count("lost") == 1

    on_a_pair(test, segment_bytes=16_384)


def test_abort_resets_the_far_end_and_throws_away_what_is_unsent() -> None:
    async def test(pair: Pair) -> None:
        pair.near.write(b"x" * 1_000_000)
        pair.near.abort()
        await asyncio.sleep(1)
        assert pair.left.events[-1] == ("lost", None)
        assert pair.right.events[-1] == ("lost", "ConnectionResetError")
        assert len(pair.right.data) < 1_000_000
        assert pair.far.is_closing()

    on_a_pair(test, segment_bytes=16_384)


def test_writing_to_who_has_left_is_answered_by_a_reset() -> None:
    async def test(pair: Pair) -> None:
        pair.far.abort()
        pair.near.write(b"hello")
        await asyncio.sleep(1)
        assert pair.left.events == [("lost", "ConnectionResetError")]
        pair.near.abort()
        pair.near.close()
        await asyncio.sleep(1)
        assert pair.left.names() == ["lost"]

    on_a_pair(test)


def test_a_paused_reader_gets_nothing_and_everything_afterwards() -> None:
    async def test(pair: Pair) -> None:
        pair.far.pause_reading()
        assert not pair.far.is_reading()
        pair.near.write(b"abc")
        pair.near.close()
        await asyncio.sleep(5)
        assert pair.right.events == []
        pair.far.resume_reading()
        await asyncio.sleep(1)
        assert pair.right.data == b"abc"
        assert pair.right.names() == ["data", "eof", "lost"]

    on_a_pair(test)


def test_a_reader_may_pause_while_it_is_being_fed() -> None:
    async def test(pair: Pair) -> None:
        pair.right.data_received = lambda data: (pair.far.pause_reading(), pair.right.note("data", len(data)))  # type: ignore[method-assign,assignment]
        pair.near.write(b"x" * 5000)
        await asyncio.sleep(1)
        assert pair.right.events == [("data", 1000)]
        pair.far.resume_reading()
        await asyncio.sleep(1)
        assert pair.right.events == [("data", 1000)] * 2

    on_a_pair(test)


def test_the_writer_is_told_to_pause_and_to_resume() -> None:
    async def test(pair: Pair) -> None:
        pair.far.pause_reading()
        pair.near.write(b"x" * 256 * 1024)
        assert (pair.left.names(), pair.near.get_write_buffer_size()) == ([], 0)
        pair.near.write(b"x" * 100_000)
        assert pair.left.names() == ["pause"]
        assert pair.near.get_write_buffer_size() == 100_000
        await asyncio.sleep(1)
        pair.far.resume_reading()
        await asyncio.sleep(1)
        assert pair.left.names() == ["pause", "resume"]
        assert len(pair.right.data) == 256 * 1024 + 100_000

    on_a_pair(test, segment_bytes=16_384)


def test_the_marks_can_be_set() -> None:
    async def test(pair: Pair) -> None:
        pair.near.set_write_buffer_limits(high=10)
        assert pair.near.get_write_buffer_limits() == (2, 10)
        pair.near.set_write_buffer_limits(low=5)
        assert pair.near.get_write_buffer_limits() == (5, 20)
        with pytest.raises(ValueError, match="must be"):
            pair.near.set_write_buffer_limits(high=1, low=2)

    on_a_pair(test)


def test_one_direction_can_be_closed() -> None:
    async def run() -> None:
        pair = Pair(keep_open=True)
        assert pair.near.can_write_eof()
        pair.near.write(b"question")
        pair.near.write_eof()
        with pytest.raises(RuntimeError, match="after write_eof"):
            pair.near.write(b"more")
        await asyncio.sleep(1)
        assert pair.right.names() == ["data", "eof"]
        pair.far.write(b"answer")
        pair.far.close()
        await asyncio.sleep(1)
        assert pair.left.data == b"answer"
        assert pair.left.names() == ["data", "eof"]
        pair.near.close()
        await asyncio.sleep(1)
        assert pair.left.names() == ["data", "eof", "lost"]

    run_virtual(run)


def test_the_protocol_can_be_changed_and_the_peer_is_known() -> None:
    async def test(pair: Pair) -> None:
        heir = End()
        pair.far.set_protocol(heir)
        assert pair.far.get_protocol() is heir
        pair.near.write(b"for you")
        await asyncio.sleep(1)
        assert heir.data == b"for you"
        assert pair.near.get_extra_info("peername") == ("x", 1)
        assert pair.near.get_extra_info("socket") is None

    on_a_pair(test)
