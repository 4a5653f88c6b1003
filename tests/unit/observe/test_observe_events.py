"""Event lines and the files they are kept in."""

from __future__ import annotations

import fcntl
import json
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.errors import StorageError
from nephila.model.events import Event, EventKind
from nephila.model.settings import ObserveSettings
from nephila.observe import JsonlEventSink, read_events
from nephila.observe.line import LineEncoder, decode_line
from nephila.urls import mask_secrets

STARTED_AT = 1_800_000_000_000
quick = settings(max_examples=200, deadline=None)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.none() | st.integers(0, 10**12)
events = st.builds(
    Event,
    kind=st.sampled_from(EventKind),
    at=st.integers(STARTED_AT, STARTED_AT + 10**11),
    url=st.sampled_from(["", "https://example.org/", "https://example.org/a?page=2"]),
    fingerprint=st.sampled_from([b"", bytes(range(16))]),
    host=texts,
    depth=numbers,
    status=numbers,
    bytes=numbers,
    content_type=texts,
    reason=texts,
    detail=texts,
    via=st.sampled_from(["", "https://example.org/b"]),
    elapsed_ms=numbers,
    counts=st.sampled_from([(), (("fetched", 7), ("frontier_size", 0))]),
)


def a_sink(directory: Path, max_bytes: int = 1_000_000, tell: Callable[[str], None] = print) -> JsonlEventSink:
    return JsonlEventSink(directory, ObserveSettings(event_max_bytes=max_bytes), STARTED_AT, "w1", tell)


def an_event(number: int = 1, **changes: object) -> Event:
    fields: dict[str, object] = {"url": f"https://example.org/{number}", "fingerprint": number.to_bytes(16, "big")}
    return Event(EventKind.FETCH_OK, STARTED_AT + number, **(fields | changes))  # type: ignore[arg-type] # fields of Event


def line_of(event: Event) -> bytes:
    buffer = bytearray()
    LineEncoder(STARTED_AT, "w1").append(event, buffer)
    return bytes(buffer)


def numbers_kept(directory: Path) -> list[int]:
    return [int.from_bytes(logged.event.fingerprint, "big") for logged in read_events(directory)]


class TestLine:
    def test_a_line_has_the_stable_field_names_and_leaves_out_what_is_unset(self) -> None:
        """O1: ts, t_ms_from_start, url, fingerprint, host, depth, status, bytes, content_type, worker, reason."""
        event = Event(
            EventKind.FETCH_OK,
            STARTED_AT + 1234,
            url="https://example.org/a",
            fingerprint=bytes(16),
            host="example.org",
            depth=0,
            status=200,
            bytes=0,
            content_type="text/html",
            reason="r",
            detail="d",
            via="https://example.org/",
            elapsed_ms=88,
        )
        assert json.loads(line_of(event)) == {
            "ts": "2027-01-15T08:00:01.234Z",
            "t_ms_from_start": 1234,
            "event": "fetch_ok",
            "worker": "w1",
            "url": "https://example.org/a",
            "fingerprint": "0" * 32,
            "host": "example.org",
            "depth": 0,
            "status": 200,
            "bytes": 0,
            "content_type": "text/html",
            "reason": "r",
            "detail": "d",
            "via": "https://example.org/",
            "elapsed_ms": 88,
        }
        assert set(json.loads(line_of(Event(EventKind.TRAP, STARTED_AT)))) == {
            "ts",
            "t_ms_from_start",
            "event",
            "worker",
        }

    def test_the_figures_of_a_heartbeat_stand_among_the_fields(self) -> None:
        """O1: fetched, enqueued, errors, unique_domains, frontier_size; a field that is set is not overwritten."""
        counts = (("fetched", 50), ("unique_domains", 3), ("bytes", 9), ("status", 1))
        found = json.loads(line_of(Event(EventKind.HEARTBEAT, STARTED_AT, status=200, counts=counts)))
        assert [found[name] for name in ("fetched", "unique_domains", "bytes", "status")] == [50, 3, 9, 200]

    @quick
    @given(events)
    def test_what_was_written_is_read_back(self, event: Event) -> None:
        """O1: one line, valid JSON, nothing lost."""
        line = line_of(event)
        assert line.count(b"\n") == 1
        assert line.endswith(b"}\n")
        json.loads(line)
        assert decode_line(line) == (event, "w1", event.at - STARTED_AT)

    @quick
    @given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda s: "&" not in s))
    def test_secrets_never_reach_a_line(self, rest: str) -> None:
        """O1, K4: in url, via and a URL quoted in detail; what is masked stays masked when read back."""
        secret = "hunter2" * 2
        url = f"https://me:{secret}@example.org/{'x' if rest.isalnum() else ''}?token={secret}&page=2"
        line = line_of(Event(EventKind.REDIRECT, STARTED_AT, url=url, via=url, detail=f"{rest} to {url} and on"))
        assert secret.encode() not in line
        found = decode_line(line)
        assert found is not None
        assert found[0].url == mask_secrets(url) == mask_secrets(found[0].url)

    def test_bytes_that_were_never_text_do_not_raise(self) -> None:
        """O1, Q5: a lone surrogate has no spelling in JSON."""
        found = decode_line(line_of(Event(EventKind.ERROR, STARTED_AT, detail="a\udcffb", counts=(("n", 1),))))
        assert found is not None
        assert (found[0].detail, found[0].counts) == ("a?b", (("n", 1),))

    @pytest.mark.parametrize("line", [b"", b"{", b"[]\n", b'{"event":"fetch_ok"}\n', b"\xff\xfe\n", b"null\n"])
    def test_what_is_no_line_of_ours_is_nothing(self, line: bytes) -> None:
        """O1: torn, foreign, newer."""
        assert decode_line(line) is None
        assert decode_line(line_of(an_event()).replace(b"fetch_ok", b"time_travel")) is None


class TestFiles:
    def test_events_reach_the_file_when_flushed(self, tmp_path: Path) -> None:
        """O1: buffered in between."""
        sink = a_sink(tmp_path / "events")
        sink.emit(an_event(1))
        assert numbers_kept(tmp_path / "events") == []
        sink.flush()
        assert numbers_kept(tmp_path / "events") == [1]
        sink.close()

    def test_a_full_block_is_written_without_being_asked(self, tmp_path: Path) -> None:
        """O1: memory is bounded."""
        sink = a_sink(tmp_path)
        for number in range(1, 1001):
            sink.emit(an_event(number))
        assert len(numbers_kept(tmp_path)) > 500
        sink.close()
        assert numbers_kept(tmp_path) == list(range(1, 1001))

    def test_files_are_rolled_by_size_and_hold_whole_lines(self, tmp_path: Path) -> None:
        """O1: events-000001.jsonl, events-000002.jsonl, ..."""
        sink = a_sink(tmp_path, max_bytes=1024)
        for number in range(1, 51):
            sink.emit(an_event(number))
        sink.close()
        files = sorted(tmp_path.iterdir())
        assert [path.name for path in files] == [f"events-{n:06d}.jsonl" for n in range(1, len(files) + 1)]
        assert len(files) > 3
        assert all(path.read_bytes().endswith(b"}\n") and path.stat().st_size < 1400 for path in files)
        assert numbers_kept(tmp_path) == list(range(1, 51))

    def test_a_file_that_is_left_is_nobodys_though_nothing_was_written_to_it(self, tmp_path: Path) -> None:
        """O1, K2: a takedown waits until every process has left its file, an idle one too."""
        sink = a_sink(tmp_path)
        sink.roll()
        with (tmp_path / "events-000001.jsonl").open() as left:
            fcntl.flock(left, fcntl.LOCK_SH | fcntl.LOCK_NB)
        sink.emit(an_event(1))
        sink.close()
        assert numbers_kept(tmp_path) == [1]

    def test_a_restart_goes_on_in_the_last_file_or_the_next_number(self, tmp_path: Path) -> None:
        """O1, F10: numbers only grow, nothing is overwritten."""
        for number in (1, 2):
            sink = a_sink(tmp_path)
            sink.emit(an_event(number))
            sink.close()
        assert [path.name for path in tmp_path.iterdir()] == ["events-000001.jsonl"]
        sink = a_sink(tmp_path, max_bytes=1)
        sink.emit(an_event(3))
        sink.close()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["events-000001.jsonl", "events-000002.jsonl"]
        assert numbers_kept(tmp_path) == [1, 2, 3]

    def test_a_line_torn_by_kill_9_spoils_itself_only(self, tmp_path: Path) -> None:
        """O1, F10: it is ended on open, and passed over by readers before and after."""
        sink = a_sink(tmp_path)
        sink.emit(an_event(1))
        sink.emit(an_event(2))
        sink.close()
        path = tmp_path / "events-000001.jsonl"
        path.write_bytes(path.read_bytes()[:-20])
        assert numbers_kept(tmp_path) == [1]
        sink = a_sink(tmp_path)
        sink.emit(an_event(3))
        sink.close()
        assert numbers_kept(tmp_path) == [1, 3]
        assert path.read_bytes().count(b"\n") == 3

    def test_two_workers_never_write_to_the_same_file(self, tmp_path: Path) -> None:
        """O1, N3: each holds a lock on its own, which ends with it."""
        first, second = a_sink(tmp_path), a_sink(tmp_path)
        first.emit(an_event(1))
        second.emit(an_event(2))
        first.close()
        second.close()
        kept = [path.read_bytes().count(b"\n") for path in sorted(tmp_path.iterdir())]
        assert kept == [1, 1]

    def test_a_reader_finds_the_events_of_one_url(self, tmp_path: Path) -> None:
        """O1, T8: `why`; a mention of its fingerprint elsewhere is none of them."""
        sink = a_sink(tmp_path)
        wanted = (7).to_bytes(16, "big")
        for number in range(10):
            sink.emit(an_event(number))
        sink.emit(an_event(8, detail=wanted.hex()))
        sink.close()
        (logged,) = read_events(tmp_path, wanted)
        assert (logged.event, logged.worker, logged.t_ms_from_start) == (an_event(7), "w1", 7)
        assert list(read_events(tmp_path / "nowhere")) == []


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The operating system refuses to let a file grow past `size`, after writing what fits: a full disk in small."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestFullDisk:
    def test_a_full_disk_is_told_once_then_counted_and_leaves_whole_lines(self, tmp_path: Path) -> None:
        """O1: never raises, never half a line; the gap is told in the file when there is room again."""
        told: list[str] = []
        sink = a_sink(tmp_path, tell=told.append)
        sink.emit(an_event(1))
        sink.flush()
        with files_no_larger_than(500):
            for number in range(2, 12):
                sink.emit(an_event(number))
            sink.flush()
            sink.emit(an_event(12))
            sink.emit(an_event(13, detail="x" * 500))
            sink.flush()
        assert len(told) == 1
        assert sink.lost == 12
        assert numbers_kept(tmp_path) == [1]
        assert (tmp_path / "events-000001.jsonl").read_bytes().endswith(b"}\n")
        sink.emit(an_event(14))
        sink.close()
        first, gap, last = (logged.event for logged in read_events(tmp_path))
        assert (first.at, last.at) == (STARTED_AT + 1, STARTED_AT + 14)
        assert (gap.kind, gap.reason, gap.counts) == (EventKind.WARNING, "events_lost", (("lost", 12),))

    def test_a_file_that_cannot_even_be_cut_back_is_ended_before_it_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """O1: half a line stays, and spoils itself only."""
        sink = a_sink(tmp_path, tell=lambda _: None)

        def refuse(_descriptor: int, _size: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr("nephila.observe.eventfile.os.ftruncate", refuse)
            with files_no_larger_than(100):
                sink.emit(an_event(1))
                sink.flush()
        sink.emit(an_event(2))
        sink.close()
        assert [logged.event.at - STARTED_AT for logged in read_events(tmp_path)] == [2, 2]
        assert sink.lost == 1

    def test_events_after_the_end_are_only_counted(self, tmp_path: Path) -> None:
        """O1: a straggler does not open files."""
        sink = a_sink(tmp_path)
        sink.close()
        sink.emit(an_event(1))
        sink.flush()
        sink.close()
        assert sink.lost == 1
        assert numbers_kept(tmp_path) == []

    def test_a_directory_that_cannot_be_made_is_told_at_the_start(self, tmp_path: Path) -> None:
        """O1: before the crawl begins, with a remedy."""
        (tmp_path / "events").write_text("a file")
        with pytest.raises(StorageError, match="events") as caught:
            a_sink(tmp_path / "events")
        assert caught.value.hint


def test_every_file_begins_with_the_line_of_its_process(tmp_path: Path) -> None:
    """K1, O1: whoever reads one file knows the terms of the lines in it, after rotation and after a restart too."""

    def opened(worker: str) -> JsonlEventSink:
        terms = Event(EventKind.TERMS, STARTED_AT, reason="boot", detail="{}", counts=(("steady_ms", 5),))
        return JsonlEventSink(
            tmp_path, ObserveSettings(event_max_bytes=2000), STARTED_AT, worker, lambda _: None, lambda: terms
        )

    for worker in ("0", "0"):
        sink = opened(worker)
        for _ in range(20):
            sink.emit(Event(EventKind.FETCH_OK, STARTED_AT, "https://example.org/", address="192.0.2.1", sent_ms=7))
            sink.flush()
        sink.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert all(b'"event":"terms"' in path.read_bytes().splitlines()[0] for path in files)
    found = [logged.event for logged in read_events(tmp_path)]
    assert sum(event.kind is EventKind.TERMS for event in found) > len(files) - 1
    last = found[-1]
    assert (last.address, last.sent_ms) == ("192.0.2.1", 7)


def test_files_that_have_grown_are_told_once(tmp_path: Path) -> None:
    """K1: what is to be sealed: names and lengths as the operating system has them."""
    sink = JsonlEventSink(tmp_path, ObserveSettings(event_max_bytes=1024), STARTED_AT, "0", lambda _: None)
    assert sink.marks() == []
    for _ in range(12):
        sink.emit(Event(EventKind.FETCH_OK, STARTED_AT, "https://example.org/"))
        sink.flush()
    marks = sink.marks()
    assert dict(marks) == {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert len(marks) > 1
    assert sink.marks() == []
    sink.close()


def test_a_number_whose_file_has_left_the_directory_is_not_used_again(tmp_path: Path) -> None:
    """O1, K1: where files are carried away, numbers go on after the last that was used and after all that lie there."""
    for after, there, wanted in ((0, 0, 1), (7, 0, 8), (7, 9, 10), (7, 3, 8)):
        directory = tmp_path / f"{after}-{there}"
        directory.mkdir()
        if there:
            (directory / f"events-{there:06d}.jsonl").touch()
        sink = JsonlEventSink(directory, ObserveSettings(), STARTED_AT, "w1", print, after=after)
        assert sink.writing[0] == f"events-{wanted:06d}.jsonl"
        sink.close()


def test_a_thread_may_tell_of_something_while_a_block_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O1, N4: of a server that has gone away, for example; the system still has the block in its hands."""
    sink = a_sink(tmp_path)
    append = sink._file.append
    telling = threading.Thread(target=lambda: sink.emit(an_event(2)))

    def append_slowly(block: bytes | bytearray) -> None:
        monkeypatch.undo()
        with memoryview(block):
            telling.start()
            telling.join(0.05)  # it waits
            append(block)

    monkeypatch.setattr(sink._file, "append", append_slowly)
    sink.emit(an_event(1))
    sink.flush()
    telling.join()
    sink.close()
    assert [logged.event.url for logged in read_events(tmp_path)] == [an_event(1).url, an_event(2).url]
