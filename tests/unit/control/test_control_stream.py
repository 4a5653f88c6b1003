"""Events from files as a stream: whole lines, from all files, no more than a reader can take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from nephila.control.stream import stream_events
from nephila.node.tailing import FileTail, Line, Tail


def write(directory: Path, number: int, *kinds: str, torn: str = "") -> None:
    directory.mkdir(exist_ok=True)
    with (directory / f"events-{number:06d}.jsonl").open("a") as stream:
        stream.writelines(f'{{"ts":"x","event":"{kind}"}}\n' for kind in kinds)
        stream.write(torn)


def kinds(tail: Tail) -> list[str]:
    return [line.kind for line in tail.look()]


def test_lines_are_taken_once_and_whole(tmp_path: Path) -> None:
    """O1: from the end of what there is, over several files of several processes; a torn line waits for its end."""
    events = tmp_path / "events"
    write(events, 1, "crawl_start", "fetch_ok")
    tail = Tail(events)
    assert tail.begin("", 0) == []
    write(events, 1, "error", torn='{"ts":"x","ev')
    write(events, 2, "retry")
    assert kinds(tail) == ["error", "retry"]
    write(events, 1, torn='ent":"warning"}\n')
    assert kinds(tail) == ["warning"]
    assert kinds(tail) == []


def test_who_was_cut_off_goes_on_after_an_id(tmp_path: Path) -> None:
    """O1: files before it are done, those after it are read from their beginning; nonsense begins at the end."""
    events = tmp_path / "events"
    write(events, 1, "crawl_start")
    write(events, 2, "fetch_ok", "error")
    write(events, 3, "retry")
    first = Tail(events)
    before = first.begin("", 100)
    assert [line.kind for line in before] == ["crawl_start", "fetch_ok", "error", "retry"]
    again = Tail(events)
    assert again.begin(f"2-{before[1].end}", 0) == []
    assert kinds(again) == ["error", "retry"]
    for nonsense in ("x", "99999999999999-1", "2-", "-1-5"):
        other = Tail(events)
        other.begin(nonsense, 0)
        assert kinds(other) == []
    assert Tail(tmp_path / "none").begin("", 5) == []


class CountingTail(Tail):
    """Knows which files it has read."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.read: list[int] = []

    def _lines(self, number: int, path: Path, start: int, stop: int) -> Iterator[Line]:
        self.read.append(number)
        return super()._lines(number, path, start, stop)


def test_the_last_events_are_read_from_the_last_files_alone(tmp_path: Path) -> None:
    """O1: a crawl of months has hundreds of files, a megabyte of each is too much for whoever opens the dashboard."""
    events = tmp_path / "events"
    for number in range(1, 50):
        write(events, number, f"a{number}", f"b{number}")
    tail = CountingTail(events)
    assert [line.kind for line in tail.begin("", 5)] == ["b47", "a48", "b48", "a49", "b49"]
    assert sorted(tail.read) == [47, 48, 49]
    write(events, 3, "late")
    write(events, 49, "more")
    assert kinds(tail) == ["late", "more"]


def test_a_reader_is_not_swamped_and_is_told_so(tmp_path: Path) -> None:
    """C1: what is over the rate is counted; the latest are sent; the stream ends when the server does."""
    events = tmp_path / "events"
    write(events, 1, "crawl_start")

    async def main() -> str:
        stopping = asyncio.Event()
        pieces: list[bytes] = []
        stream = stream_events(
            FileTail(events),
            kinds=frozenset({"fetch_ok"}),
            backlog=0,
            max_per_s=10,
            follow=True,
            after="",
            stream_s=60,
            stopping=stopping,
        )
        async for piece in stream:
            pieces.append(piece)
            if len(pieces) == 1:
                write(events, 1, *["fetch_ok"] * 100, "error")
            elif len(pieces) == 7:
                stopping.set()
        return b"".join(pieces).decode()

    text = asyncio.run(main())
    assert "event: skipped\ndata: 95\n\n" in text
    assert text.count("event: fetch_ok") == 5
    assert "error" not in text
