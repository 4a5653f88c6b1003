"""The runs of a graph: what was read stays read, what is damaged is read again, what is purged goes."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from link_graphs import SEGMENT, buffer_of, domain_of, graph_of, row_of, web_of

from nephila.model.errors import StorageError
from nephila.ranking import Kind, LinkGraph, RunBuffer, held, text_name

PAGES = {"a.test/": ["b.test/"], "b.test/": ["a.test/", "c.test/1"], "c.test/1": []}


def links_in(graph: LinkGraph) -> dict[int, list[int]]:
    """The names of links by the name of their page."""
    found: dict[int, list[int]] = {}
    for run in graph.runs:
        first = 0
        for name, count in zip(run.column("names"), run.column("links_of"), strict=True):
            found[name] = list(run.column("links")[first : first + count])
            first += count
    return found


def test_what_was_read_stays_read(tmp_path: Path) -> None:
    """R3: up to where, by file."""
    rows = web_of(PAGES)
    with graph_of(tmp_path, rows) as graph:
        known = links_in(graph)
    with LinkGraph(tmp_path, "crawl") as graph:
        assert graph.upto(SEGMENT) == 100
        assert graph.upto("another.warc.gz") == 0
        assert links_in(graph) == known == {row.name: list(row.links) for row in rows}


def test_small_runs_are_joined(tmp_path: Path) -> None:
    """R3: a crawl that runs for a year leaves some dozens of files, not thousands."""
    with graph_of(tmp_path, *([row] for row in web_of({f"a.test/{n}": ["b.test/"] for n in range(64)}))) as graph:
        assert graph.rows == 64
        assert len(graph.runs) <= 8
        assert graph.upto(SEGMENT) == 6400
    assert len(list(tmp_path.glob("*.links"))) <= 8


def test_large_runs_are_not_joined(tmp_path: Path) -> None:
    with LinkGraph(tmp_path, "crawl", most_bytes=2000) as graph:
        for number in range(8):
            rows = [row_of(f"a.test/{number}", [f"a.test/{link}" for link in range(100)], offset=number)]
            graph.add(buffer_of(rows, {SEGMENT: (number, number + 1)}))
        assert len(graph.runs) == 8


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "deleted"])
def test_a_damaged_run_is_thrown_away_and_read_again(tmp_path: Path, damage: str) -> None:
    """R3: derived files may be deleted at any time."""
    graph_of(tmp_path, web_of(PAGES)).close()
    (path,) = tmp_path.glob("*.links")
    data = bytearray(path.read_bytes())
    if damage == "deleted":
        path.unlink()
    elif damage == "changed":
        data[11] ^= 1
        path.write_bytes(data)
    else:
        path.write_bytes(data[: 0 if damage == "empty" else -9])
    with LinkGraph(tmp_path, "crawl") as graph:
        assert graph.rows == 0
        assert graph.upto(SEGMENT) == 0
    assert not path.exists()


def test_a_gap_is_read_again_from_where_it_begins(tmp_path: Path) -> None:
    with LinkGraph(tmp_path, "crawl", most_bytes=0) as graph:
        for number in range(3):
            graph.add(buffer_of([row_of(f"a.test/{number}")], {SEGMENT: (10 * number, 10 * number + 10)}))
    sorted(tmp_path.glob("*.links"))[1].unlink()
    with LinkGraph(tmp_path, "crawl") as graph:
        assert graph.upto(SEGMENT) == 10


def test_a_joined_run_that_was_cut_short_by_a_kill_counts_once(tmp_path: Path) -> None:
    """R3: those that it stands for may still be there."""
    with LinkGraph(tmp_path, "crawl", most_bytes=0) as graph:
        graph.add(buffer_of(web_of(PAGES)))
        (old,) = tmp_path.glob("*.links")
        kept = old.read_bytes()
        whole = RunBuffer()
        whole.take(graph.runs[0])
        whole.write(tmp_path / "00000007.links", "crawl", [old.name])
    assert old.read_bytes() == kept
    (tmp_path / "00000008.links.new").write_bytes(b"a draft")
    with LinkGraph(tmp_path, "crawl") as graph:
        assert graph.rows == 3
    assert [path.name for path in tmp_path.iterdir()] == ["00000007.links"]


def test_a_graph_of_another_crawl_is_thrown_away(tmp_path: Path) -> None:
    """R3: names are seeded with the crawl's secret, and a frontier that was rebuilt has another."""
    graph_of(tmp_path, web_of(PAGES)).close()
    with LinkGraph(tmp_path, "another") as graph:
        assert graph.rows == 0


def test_captures_that_are_not_listed_any_more_go_with_their_domains(tmp_path: Path) -> None:
    """R3, K2: what was purged is left out, and so is the name of its domain."""
    rows = web_of(PAGES)
    with LinkGraph(tmp_path, "crawl") as graph:
        buffer = buffer_of(rows)
        buffer.texts |= {domain_of(url) for url in PAGES}
        graph.add(buffer)
        graph.hold_against(lambda _: {rows[0].offset, rows[1].offset, rows[2].offset})
        assert graph.rows == 3
        graph.hold_against(lambda _: {rows[2].offset})
        assert list(links_in(graph)) == [rows[2].name]
        assert [text for run in graph.runs for text in run.texts()] == ["c.test"]
        assert graph.upto(SEGMENT) == 100
    with LinkGraph(tmp_path, "crawl") as graph:
        assert list(links_in(graph)) == [rows[2].name]


def test_files_that_left_the_archive_are_forgotten(tmp_path: Path) -> None:
    """R3: all of them, those without a page included."""
    with LinkGraph(tmp_path, "crawl", most_bytes=0) as graph:
        graph.add(buffer_of([row_of("a.test/", segment="old", offset=1)], {"old": (0, 9)}))
        graph.add(buffer_of([row_of("b.test/", segment="new", offset=1)], {"new": (0, 9), "bare": (0, 5)}))
        graph.forget(frozenset({"old", "bare", "never"}))
        assert list(links_in(graph)) == [row_of("b.test/").name]
    with LinkGraph(tmp_path, "crawl") as graph:
        assert graph.segments == {"new"}


def test_nothing_is_written_for_nothing(tmp_path: Path) -> None:
    with LinkGraph(tmp_path, "crawl") as graph:
        graph.add(RunBuffer())
        graph.forget(frozenset({"never"}))
    assert list(tmp_path.iterdir()) == []


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    row = row_of("a.test/", ["b.test/"], at=12, kind=Kind.MOVED, canonical="c.test/", offset=77)
    with graph_of(tmp_path, [row]) as graph:
        run = graph.runs[0]
        fixed = [run.column(name)[0] for name in ("names", "rests", "times", "kinds", "domains", "segments", "offsets")]
        assert fixed == list(row[:7])
        assert run.column("canonicals")[0] == row.canonical
        assert list(run.column("foreign")) == [text_name("b.test")]


def test_one_at_a_time_holds_the_folder(tmp_path: Path) -> None:
    """R3: one computation at a time, whoever asks for it."""
    folder, told = tmp_path / "rank", list[str]()
    with held(folder) as first:
        assert first
        with held(folder) as second:
            assert not second
        with (folder / "lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with held(folder, lambda: told.append("waiting")) as third:
        assert third
    assert told == []


def test_who_waits_is_told_so_and_gets_it_then(tmp_path: Path) -> None:
    """R3, C4: `nephila rank` beside a crawl that is computing."""
    first, told = held(tmp_path / "rank"), list[str]()
    first.__enter__()

    def waiting() -> None:
        told.append("waiting")
        first.__exit__(None, None, None)

    with held(tmp_path / "rank", waiting) as second:
        assert second
    assert told == ["waiting"]


def test_a_disk_that_refuses_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StorageError, match="cannot be written"), held(tmp_path / "file"):
        pass
    with LinkGraph(tmp_path / "runs", "crawl") as graph:
        (tmp_path / "runs").rmdir()
        with pytest.raises(StorageError, match=r"00000001\.links cannot be written: no such file"):
            graph.add(buffer_of(web_of(PAGES)))
