"""Lines for people, and several listeners as one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.events import Event, EventKind
from nephila.observe import Fanout, LogSink
from nephila.observe.log import human_bytes, log_line
from nephila.observe.masking import mask_text, printable


class ListSink:
    """Keeps what it is told, and what was done to it."""

    def __init__(self, diary: list[str], name: str, broken: bool = False) -> None:
        self._diary = diary
        self._name = name
        self._broken = broken

    def emit(self, event: Event) -> None:
        self._diary.append(f"{self._name} {event.kind}")

    def flush(self) -> None:
        self._diary.append(f"{self._name} flush")

    def close(self) -> None:
        self._diary.append(f"{self._name} close")
        if self._broken:
            raise RuntimeError(self._name)


def shown(verbosity: int) -> set[EventKind]:
    lines: list[str] = []
    sink = LogSink(lines.append, verbosity, 0)
    kinds = set()
    for kind in EventKind:
        sink.emit(Event(kind, 0))
        if lines:
            kinds.add(kind)
            lines.clear()
    sink.flush()
    sink.close()
    return kinds


def test_v_shows_what_went_another_way_and_vv_everything() -> None:
    """C4: -v and -vv."""
    assert shown(0) == set()
    assert {EventKind.ERROR, EventKind.RETRY, EventKind.REDIRECT, EventKind.ROBOTS_DISALLOW} < shown(1)
    assert not {EventKind.FETCH_OK, EventKind.EXCLUDED_BY_RULE, EventKind.HEARTBEAT} & shown(1)
    assert shown(2) == shown(3) == set(EventKind)


def test_a_line_says_when_what_and_why() -> None:
    """C4: readable without a manual."""
    event = Event(
        EventKind.ERROR,
        12_345,
        url="https://example.org/a",
        status=503,
        bytes=14_200,
        elapsed_ms=88,
        reason="http_5xx",
        detail="busy",
        via="https://example.org/",
        counts=(("retries", 2),),
    )
    assert " ".join(log_line(event, 45).split()) == (
        "12.3s error 503 14.2 KB 88 ms https://example.org/a http_5xx: busy <- https://example.org/ retries=2"
    )
    assert "example.org" in log_line(Event(EventKind.DEFERRED, 0, host="example.org"), 0)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30))
def test_a_line_is_one_harmless_line_whatever_a_server_sent(text: str) -> None:
    """C4, Q5: no escape sequence reaches the terminal."""
    line = log_line(Event(EventKind.ERROR, 0, host=text, reason=text, detail=text), 0)
    assert line.isprintable()
    assert text in printable(text) or not text.isprintable()


def test_lone_surrogates_and_escapes_are_spelled_out() -> None:
    """C4, Q5: still to be seen what it was."""
    assert printable("a\x1b[31m\n\udcff") == "a\\x1b[31m\\n\\udcff"


def test_secrets_are_masked_wherever_they_stand() -> None:
    """K4: in url, via and in a URL that a sentence quotes."""
    url = "https://example.org/?page=2&token=hunter2"
    line = log_line(Event(EventKind.REDIRECT, 0, url=url, via=url, detail=f'to "{url}", then to {url}'), 0)
    assert "hunter2" not in line
    assert line.count("page=2") == 4
    assert mask_text("no URL here: token=visible") == "no URL here: token=visible"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2_000_000, "2.0 MB"), (3 * 10**15, "3000.0 TB")]
)
def test_sizes_are_in_decimal_units(count: int, text: str) -> None:
    """C4: as disks are sold."""
    assert human_bytes(count) == text


def test_a_fanout_tells_everybody_in_order() -> None:
    """O1: several listeners as one."""
    diary: list[str] = []
    fanout = Fanout([ListSink(diary, "a"), ListSink(diary, "b")])
    fanout.emit(Event(EventKind.TRAP, 0))
    fanout.flush()
    fanout.close()
    assert diary == ["a trap", "b trap", "a flush", "b flush", "b close", "a close"]


def test_a_listener_that_cannot_close_keeps_none_of_the_others_open() -> None:
    """O1: the first one is closed all the same, and the failure is not hidden."""
    diary: list[str] = []
    with pytest.raises(RuntimeError, match="b"):
        Fanout([ListSink(diary, "a"), ListSink(diary, "b", broken=True)]).close()
    assert diary == ["b close", "a close"]
