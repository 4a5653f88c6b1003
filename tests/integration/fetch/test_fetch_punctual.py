"""A busy loop: requests leave when they are written, and an answer has come when it came."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import trustme

from nephila.fetch.arrivals import MOST_AT_ONCE, Arrivals, plain_readable, plain_received
from nephila.model.exchange import Fetched, FetchRequest

Run = Callable[[Any], Any]
BUSY_S = 0.2
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"


@dataclass
class Apart:
    """A server in threads of its own: it does not stand still when the loop does."""

    root: str = ""
    after_s: float = 0.0
    asked_at: list[float] = field(default_factory=list)

    def serve(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        with suppress(OSError):  # it is closed
            while True:
                plain, _ = listening.accept()
                threading.Thread(target=self._answer, args=(plain, tls), daemon=True).start()

    def _answer(self, plain: socket.socket, tls: ssl.SSLContext | None) -> None:
        with suppress(OSError), plain if tls is None else tls.wrap_socket(plain, server_side=True) as one:
            while one.recv(65_536):
                self.asked_at.append(time.monotonic())
                time.sleep(self.after_s)
                one.sendall(ANSWER)


@contextmanager
def served_apart(host: str, tls: ssl.SSLContext | None = None) -> Iterator[Apart]:
    """A server that answers each request at once."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        scheme = "http" if tls is None else "https"
        seen = Apart(f"{scheme}://{host}:{listening.getsockname()[1]}")
        thread = threading.Thread(target=seen.serve, args=(listening, tls), daemon=True)
        thread.start()
        yield seen
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, authority: trustme.CA) -> Iterator[Apart]:
    tls = None
    if request.param == "https":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("a.test").configure_cert(tls)
    with served_apart("a.test", tls) as seen:
        yield seen


def test_a_request_leaves_when_it_is_written(run: Run, stand: Any, authority: trustme.CA, server: Apart) -> None:
    """Q2: what else the turn of the loop has to do comes after it, not before."""

    async def play() -> float:
        fetcher = stand.fetcher(authority=authority.cert_pem.bytes())
        await fetcher.fetch(FetchRequest(f"{server.root}/first"))
        asking = asyncio.create_task(fetcher.fetch(FetchRequest(f"{server.root}/second")))
        asyncio.get_running_loop().call_soon(time.sleep, BUSY_S)
        began = time.monotonic()
        await asking
        await fetcher.close()
        return began

    began = run(play())
    assert server.asked_at[1] - began < BUSY_S / 2


def test_an_answer_has_come_when_it_came_not_when_somebody_read_it(
    run: Run, stand: Any, authority: trustme.CA, server: Apart
) -> None:
    """P1, Q2: a host's rest begins then, and what the answer took is the server's time alone.

    It comes while the first of two others is being looked at, and is read after both.
    """
    order: list[str] = []
    busy_from: list[float] = []

    async def play(other: Apart) -> tuple[Fetched, int]:
        fetcher = stand.fetcher(authority=authority.cert_pem.bytes())
        fetcher.call_before_answers(lambda: None)
        await asyncio.gather(*(fetcher.fetch(FetchRequest(f"{one.root}/first")) for one in (server, other)))
        await fetcher.fetch(FetchRequest(other.root.replace("b.test", "c.test")))
        server.after_s, other.after_s = 0.03, 0.01

        async def look_long(root: str) -> None:
            await fetcher.fetch(FetchRequest(root))
            order.append("other")
            busy_from.append(time.time() * 1000)
            time.sleep(BUSY_S)  # noqa: ASYNC251 - a loop that has much to do

        async def look() -> tuple[Fetched, int]:
            answer = await fetcher.fetch(FetchRequest(f"{server.root}/second"))
            order.append("this")
            return answer, int(time.time() * 1000)

        found, *_ = await asyncio.gather(
            look(), look_long(other.root), look_long(other.root.replace("b.test", "c.test"))
        )
        await fetcher.close()
        return found

    with served_apart("b.test") as other:
        answer, looked_at = run(play(other))
    assert order == ["other", "other", "this"]
    assert answer.ended_at <= busy_from[1] + 1
    assert looked_at - answer.ended_at >= BUSY_S * 1000 - 1
    assert answer.ended_at - answer.sent_at == pytest.approx(answer.elapsed_ms, abs=2)


def test_something_is_called_before_each_answer_is_handed_on(run: Run, stand: Any) -> None:
    """Q2: by the loop, not inside of a task; in between are those who wait for their moment."""
    order: list[str] = []

    async def play() -> None:
        fetcher = stand.fetcher()

        def between() -> None:
            assert asyncio.current_task() is None
            order.append("between")

        async def ask(port: int, name: str) -> None:
            await fetcher.fetch(FetchRequest(f"http://{name}.test:{port}/"))
            order.append(name)

        fetcher.call_before_answers(between)
        async with stand.listening(stand.answering(ANSWER)) as one:
            await asyncio.gather(*(ask(one.port, name) for name in ("a", "b", "c")))
            await fetcher.close()

    run(play())
    assert order[::2] == ["between"] * 3
    assert sorted(order[1::2]) == ["a", "b", "c"]


class Wire(asyncio.Transport):
    """A transport with a socket, or without one."""

    def __init__(self, one: socket.socket | None) -> None:
        super().__init__({"socket": one})


class Clock:
    """Shows what it is told to."""

    now_ms = 1_000

    def steady_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return self.now_ms

    def boot_id(self) -> str:
        return "boot"


@pytest.fixture(params=["fast", "plain"])
def arrivals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Arrivals, Clock]]:
    """Arrivals, looked for in C and in Python."""
    if request.param == "plain":
        monkeypatch.setattr("nephila.fetch.arrivals.readable", plain_readable)
        monkeypatch.setattr("nephila.fetch.arrivals.received", plain_received)
    clock = Clock()
    made = Arrivals(clock)
    yield made, clock
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a TCP connection."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as here,
        listening.accept()[0] as there,
    ):
        yield here, there


def await_bytes(here: socket.socket) -> None:
    assert select.select([here], [], [], 10)[0]


def test_bytes_have_come_when_they_were_seen_first(
    arrivals: tuple[Arrivals, Clock], pair: tuple[socket.socket, socket.socket]
) -> None:
    """P1, Q2: looked at between two answers, read much later; known once, as the next answer has a time of its own."""
    looked, clock = arrivals
    here, there = pair
    number = looked.watch(Wire(here))
    for began_ms in (1_000, 5_000):
        there.sendall(b"one")
        await_bytes(here)
        clock.now_ms = began_ms + 1
        looked.look()
        clock.now_ms = began_ms + 90
        looked.look()
        here.recv(100)
        assert looked.came_ms(number) == began_ms + 1
        assert looked.came_ms(number) is None


@pytest.mark.parametrize("read_between", [False, True])
def test_no_byte_has_come_before_it_came(
    arrivals: tuple[Arrivals, Clock], pair: tuple[socket.socket, socket.socket], *, read_between: bool
) -> None:
    """P1: an answer in two pieces, and nobody saw the second come: its end is when it was read, never the first's."""
    looked, _ = arrivals
    here, there = pair
    number = looked.watch(Wire(here))
    there.sendall(b"one")
    await_bytes(here)
    looked.look()
    if read_between:
        here.recv(100)
    there.sendall(b"two")
    wanted = 3 if read_between else 6
    while len(here.recv(100, socket.MSG_PEEK)) < wanted:
        time.sleep(0.001)
    assert len(here.recv(100)) == wanted
    assert looked.came_ms(number) is None


def test_many_at_once_are_all_seen(arrivals: tuple[Arrivals, Clock]) -> None:
    """Q2: more than one call tells of."""
    looked, clock = arrivals
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512))
        pairs: list[tuple[socket.socket, socket.socket]] = []
        for _ in range(MOST_AT_ONCE + 10):
            here = stack.enter_context(socket.create_connection(listening.getsockname()))
            pairs.append((here, stack.enter_context(listening.accept()[0])))
        numbers = [looked.watch(Wire(here)) for here, _ in pairs]
        for here, there in pairs:
            there.sendall(b"hello")
            await_bytes(here)
        looked.look()
        clock.now_ms = 2_000
        assert [looked.came_ms(number) for number in numbers] == [1_000] * len(pairs)


def test_a_socket_that_takes_the_number_of_a_closed_one_has_its_own_times(
    arrivals: tuple[Arrivals, Clock], pair: tuple[socket.socket, socket.socket]
) -> None:
    """P1: what came in another connection says nothing of this one."""
    looked, _ = arrivals
    here, there = pair
    number = looked.watch(Wire(here))
    there.sendall(b"hello")
    await_bytes(here)
    looked.look()
    here.close()
    one, other = socket.socketpair()
    with one, other:
        assert number in {one.fileno(), other.fileno()}
        looked.watch(Wire(one))
        looked.watch(Wire(other))
        assert looked.came_ms(number) is None


def test_where_bytes_are_not_counted_they_have_come_when_they_are_read(arrivals: tuple[Arrivals, Clock]) -> None:
    """P1: sockets that are no TCP."""
    looked, _ = arrivals
    one, other = socket.socketpair()
    with one, other:
        number = looked.watch(Wire(one))
        other.sendall(b"hello")
        looked.look()
        assert looked.came_ms(number) is None


def test_where_there_is_nothing_to_watch_nothing_is_known(pair: tuple[socket.socket, socket.socket]) -> None:
    """P1: simulated connections, and those that outlive their fetcher."""
    looked = Arrivals(Clock())
    assert looked.watch(Wire(None)) == -1
    here, there = pair
    number = looked.watch(Wire(here))
    assert looked.watch(Wire(here)) == number, "TLS is begun on it"
    looked.close()
    there.sendall(b"hello")
    await_bytes(here)
    looked.look()
    assert looked.came_ms(number) is None
    assert looked.watch(Wire(here)) == -1
