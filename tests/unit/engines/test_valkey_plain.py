"""The client without a loop, spoken to by a server that plays its part."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import hiredis
import pytest

from nephila.engines import valkey_plain
from nephila.engines.valkey_plain import PlainValkey
from nephila.engines.valkey_servers import ServerAddress, servers_of
from nephila.engines.valkey_wire import EngineError
from nephila.model.errors import EngineAwayError

Play = Callable[[list[bytes], int], bytes | None]
"""What is answered to a command, the port at hand; None hangs up."""


@contextmanager
def playing(play: Play) -> Iterator[tuple[int, list[bytes]]]:
    """A server, its port, and the first words of what it was asked."""
    asked: list[bytes] = []
    links: list[socket.socket] = []
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            links.append(link)
            reader = hiredis.Reader()
            with link:
                while data := link.recv(65536):
                    reader.feed(data)
                    while (command := reader.gets()) is not False:
                        asked.append(command[0])
                        answer = play(command, port)
                        if answer is None:
                            break
                        link.sendall(answer)
                    else:
                        continue
                    break

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield port, asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for link in links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        thread.join()


def once(word: bytes, answer: bytes | None, play: Play) -> Play:
    """Answer so the first time that it is asked, and as another does from then on."""
    left = [answer]

    def first(command: list[bytes], port: int) -> bytes | None:
        if command[0] == word and left:
            told = left.pop()
            return told if told is None else told.replace(b"PORT", b"%d" % port)
        return play(command, port)

    return first


def value(command: list[bytes], port: int) -> bytes | None:
    slots = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % port
    return {b"GET": b"$2\r\nhi\r\n", b"CLUSTER": slots}.get(command[0], b"+OK\r\n")


@pytest.mark.parametrize(
    "play",
    [
        once(b"GET", b"-MOVED 0 127.0.0.1:PORT\r\n", value),
        once(b"GET", b"-MOVED 0 127.0.0.1:PORT\r\n", once(b"CLUSTER", None, value)),
        once(b"GET", b"-MOVED 0 127.0.0.1:PORT\r\n", once(b"CLUSTER", b"-CLUSTERDOWN it is\r\n", value)),
        once(b"GET", b"-ERR Function not found\r\n", once(b"FUNCTION", None, value)),
        once(b"GET", b"-ERR Function not found\r\n", once(b"FUNCTION", b"-READONLY a replica\r\n", value)),
        once(b"GET", b"-LOADING it starts\r\n", value),
        once(b"GET", None, value),
    ],
)
def test_whatever_passes_is_waited_for(play: Play) -> None:
    """N4: also what comes while something is put right: a fail-over in the middle of a question."""
    with playing(play) as (port, _):
        client = PlainValkey(servers_of([f"127.0.0.1:{port}"], {}), "a library", 10.0)
        assert client.do("key", "GET", "key") == b"hi"
        client.close()


def test_a_key_that_is_being_moved_is_asked_for_where_it_is() -> None:
    """N4: while slots are moved a server says ASK, and the other one wants to hear that it was said."""
    with playing(once(b"GET", b"-ASK 0 127.0.0.1:PORT\r\n", value)) as (port, asked):
        client = PlainValkey(servers_of([f"127.0.0.1:{port}"], {}), "", 10.0)
        assert client.do("key", "GET", "key") == b"hi"
        client.close()
    assert asked == [b"GET", b"ASKING", b"GET"]


@pytest.mark.parametrize("word", [b"GET", b"FUNCTION"])
def test_what_does_not_pass_is_told(word: bytes) -> None:
    """N4, C4: in a sentence, at once."""
    play = once(word, b"-NOPERM this user has no permissions\r\n", value)
    if word == b"FUNCTION":
        play = once(b"GET", b"-ERR Function not found\r\n", play)
    with playing(play) as (port, _):
        client = PlainValkey(servers_of([f"127.0.0.1:{port}"], {}), "a library", 10.0)
        with pytest.raises(EngineError, match="refused: NOPERM") as told:
            client.do("key", "GET", "key")
        assert told.value.hint
        client.close()


def test_many_who_ask_a_server_that_is_away_do_not_wait_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """N4: nothing is asked for a while after a question without an answer; then once, and as ever when it is back."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(valkey_plain, "time", clock)
    hangs = [True]
    with playing(lambda command, port: None if hangs else value(command, port)) as (port, asked):
        client = PlainValkey(servers_of([f"127.0.0.1:{port}"], {}), patience_s=3.0)

        def refused() -> int:
            before = len(asked)
            with pytest.raises(EngineAwayError, match="does not answer"):
                client.do("k", "GET", "k")
            return len(asked) - before

        assert refused() > 3
        assert [refused() for _ in range(3)] == [0, 0, 0]
        now[0] += valkey_plain.RESTS_S
        assert [refused() for _ in range(3)] == [1, 0, 0]
        now[0] += valkey_plain.RESTS_S
        hangs.clear()
        assert client.do("k", "GET", "k") == b"hi"
        hangs.append(True)
        assert refused() > 3, "it is waited for again"
        with pytest.raises(EngineAwayError):
            client.do_all([("k", ("GET", "k")), ("l", ("GET", "l"))])
        assert refused() == 0, "nor are many at once"
        client.close()


def test_while_one_asks_again_the_others_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """N4: threads do not queue for a server that may be silent for as long as a connection takes."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(valkey_plain, "time", clock)
    told: list[str] = []

    def play(*_: object) -> None:
        if now[0] >= valkey_plain.RESTS_S:
            with pytest.raises(EngineAwayError, match="does not answer") as error:
                client.do("k", "GET", "k")
            told.append(str(error.value))

    with playing(play) as (port, asked):
        client = PlainValkey(servers_of([f"127.0.0.1:{port}"], {}), patience_s=3.0)
        with pytest.raises(EngineAwayError):
            client.do("k", "GET", "k")
        now[0] += valkey_plain.RESTS_S
        before = len(asked)
        with pytest.raises(EngineAwayError):
            client.do("k", "GET", "k")
        assert (len(asked) - before, len(told)) == (1, 1)
        client.close()


def test_who_asks_again_asks_each_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """N4: the first of them is gone for good, another has its keys."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(valkey_plain, "time", clock)
    hangs = [True]
    with playing(lambda *_: None) as (gone, _), playing(lambda *told: None if hangs else value(*told)) as (port, _):
        client = PlainValkey(servers_of([f"127.0.0.1:{gone}", f"127.0.0.1:{port}"], {}), patience_s=3.0)
        with pytest.raises(EngineAwayError):
            client.do("k", "GET", "k")
        hangs.clear()
        now[0] += valkey_plain.RESTS_S
        assert client.do("k", "GET", "k") == b"hi"
        client.close()


def test_a_server_that_refuses_for_good_is_not_said_to_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """N4: it has come back, and lets nobody in: everybody is told so."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(valkey_plain, "time", clock)
    answers: list[bytes | None] = [None]
    with playing(lambda *_: answers[0]) as (port, _):
        client = PlainValkey(servers_of([f"127.0.0.1:{port}"], {}), patience_s=3.0)
        with pytest.raises(EngineAwayError):
            client.do("k", "GET", "k")
        answers[0] = b"-NOAUTH no\r\n"
        now[0] += valkey_plain.RESTS_S
        for _ in range(2):
            with pytest.raises(EngineError, match="refused: NOAUTH"):
                client.do("k", "GET", "k")
        client.close()


def test_who_must_not_wait_asks_each_server_once_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """N4: an event loop goes on while its engine is away, and has its answer as soon as one server is back."""
    pauses: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=pauses.append)
    monkeypatch.setattr(valkey_plain, "time", clock)
    hangs = [True]
    with playing(lambda *_: None) as (gone, a), playing(lambda *told: None if hangs else value(*told)) as (port, b):
        client = PlainValkey(servers_of([f"127.0.0.1:{gone}", f"127.0.0.1:{port}"], {}), patience_s=3.0)
        for turn in (1, 2):
            with pytest.raises(EngineAwayError, match="does not answer"):
                client.do_now("k", "GET", "k")
            assert (len(a), len(b), pauses) == (turn, turn, [])
        hangs.clear()
        assert client.do_now("k", "GET", "k") == b"hi", "a refusal that took no time is followed by no rest"
        assert pauses == []
        client.close()


def test_a_silence_that_took_long_is_followed_by_a_rest_for_those_who_must_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """N4: a server that swallows what it is sent does not hold an event loop up again and again."""
    now = [0.0]
    monkeypatch.setattr(valkey_plain, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=pytest.fail))

    def swallow(*_: object) -> None:
        now[0] += valkey_plain.LONG_S

    with playing(swallow) as (port, asked):
        client = PlainValkey(servers_of([f"127.0.0.1:{port}"], {}))
        for expected in (1, 1, 1):
            with pytest.raises(EngineAwayError, match="does not answer"):
                client.do_now("k", "GET", "k")
            assert len(asked) == expected
        now[0] += valkey_plain.RESTS_S
        with pytest.raises(EngineAwayError, match="does not answer"):
            client.do_now("k", "GET", "k")
        assert len(asked) == 2
        client.close()


def test_another_thread_may_find_a_server_away_while_one_looks_where_a_key_is() -> None:
    """N4: the map of slots is let go by the one, and the other goes by what it had."""
    with playing(value) as (port, _):
        client = PlainValkey(servers_of([f"127.0.0.1:{port}"], {}), "", 10.0)

        class LetGo(list[ServerAddress | None]):
            def __len__(self) -> int:
                client._slots = []  # what the other thread does between two steps of this one
                return super().__len__()

        client._slots = LetGo([ServerAddress("127.0.0.1", port)] * 16384)
        assert client.do("key", "GET", "key") == b"hi"
        client.close()
