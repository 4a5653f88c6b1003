"""Where seeds come from: arguments, text, CSV, and what is none of them."""

from __future__ import annotations

import csv
import io
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.errors import UsageError
from nephila.model.task import Level
from nephila.seeds import ArgumentSeeds, DomainSeeds, FileLines, Seed, StreamLines, TextSeeds
from nephila.seeds.lines import MAX_LINE_BYTES

quick = settings(max_examples=100, deadline=None)


def stream(data: bytes) -> StreamLines:
    return StreamLines(io.BufferedReader(io.BytesIO(data)))


def text_seeds(data: bytes) -> list[str]:
    return [seed.text for seed in TextSeeds(stream(data))]


def domain_seeds(data: str) -> list[str]:
    return [seed.text for seed in DomainSeeds(stream(data.encode()))]


def test_arguments_are_seeds_in_their_order() -> None:
    """S1: URLs on the command line."""
    assert list(ArgumentSeeds(["b.org", " a.org "], level=Level.LOW)) == [
        Seed("b.org", "argument", Level.LOW),
        Seed("a.org", "argument", Level.LOW),
    ]


class TestText:
    def test_one_a_line_comments_and_blank_lines_aside(self) -> None:
        """S1: a text file, and standard input; a fragment is no comment."""
        data = b"# head\n\nhttps://a.org/#part\n  b.org  # the second\n\t\n#c.org\nd.org"
        assert list(TextSeeds(stream(data))) == [
            Seed("https://a.org/#part", "standard input:3"),
            Seed("b.org", "standard input:4"),
            Seed("d.org", "standard input:7"),
        ]

    @pytest.mark.parametrize(
        "data",
        [
            "bücher.org\na.org\n".encode(),
            b"\xef\xbb\xbf" + "bücher.org\r\na.org\r\n".encode(),
            "bücher.org\na.org".encode("latin-1"),
            "bücher.org\ra.org\r".encode(),
        ],
        ids=["utf-8", "BOM and CRLF", "latin-1", "CR"],
    )
    def test_any_usual_spelling_of_a_text_is_read(self, data: bytes) -> None:
        """S1: UTF-8 or latin-1, byte order mark, CRLF, or CR as spreadsheets on a Mac write it."""
        assert text_seeds(data) == ["bücher.org", "a.org"]

    def test_a_line_without_end_is_cut_and_the_next_one_is_whole(self) -> None:
        """S1: no line, however long, is held in memory."""
        found = text_seeds(b"a.org/" + b"x" * (3 * MAX_LINE_BYTES) + b"\nb.org\n")
        assert [len(found[0]), found[1]] == [MAX_LINE_BYTES, "b.org"]
        assert text_seeds(b"y" * (MAX_LINE_BYTES - 1) + b"\nb.org")[1:] == ["b.org"]
        assert text_seeds(b"y" * (2 * MAX_LINE_BYTES) + b"\r\nb.org\rc.org")[1:] == ["b.org", "c.org"]

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    @pytest.mark.parametrize("size", [1, 2, 7])
    def test_it_does_not_matter_how_lines_arrive(self, end: bytes, size: int) -> None:
        """S1: a line is one line, and has its number, wherever a pipe cuts it."""
        data = end.join([b"a.org", b"", b"b.org", b"c.org"]) + end

        class Dripping(io.RawIOBase):
            def readable(self) -> bool:
                return True

            def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io calls it with a memoryview
                nonlocal data
                piece, data = data[:size], data[size:]
                buffer[: len(piece)] = piece
                return len(piece)

        seeds = list(TextSeeds(StreamLines(io.BufferedReader(Dripping()))))
        assert [(seed.text, seed.origin[-2:]) for seed in seeds] == [("a.org", ":1"), ("b.org", ":3"), ("c.org", ":4")]

    def test_a_long_list_is_streamed(self) -> None:
        """S1, F8: bounded memory, the first seed before the last line is there."""

        class Endless(io.RawIOBase):
            def readable(self) -> bool:
                return True

            def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io calls it with a memoryview
                line = b"https://example.org/some/page\n"
                buffer[: len(line)] = line
                return len(line)

        seeds = iter(TextSeeds(StreamLines(io.BufferedReader(Endless()))))
        tracemalloc.start()
        try:
            for _ in range(20_000):
                next(seeds)
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()

    @quick
    @given(
        st.lists(st.from_regex(r"[a-z]{1,9}\.org(/[a-z#]{0,4})?", fullmatch=True)),
        st.sampled_from(["\n", "\r\n", "\r"]),
    )
    def test_every_line_is_found(self, lines: list[str], end: str) -> None:
        """S1: none lost, none made up."""
        assert text_seeds(end.join(lines).encode()) == lines


class TestFiles:
    def test_the_origin_names_file_and_line(self, tmp_path: Path) -> None:
        """S1: a refusal can point at the line."""
        path = tmp_path / "list.txt"
        path.write_text("\na.org\n")
        assert list(TextSeeds(FileLines(path))) == [Seed("a.org", "file list.txt:2")]

    def test_a_pipe_is_as_good_as_a_file(self, tmp_path: Path) -> None:
        """S1: nothing is lost by looking at it first."""
        reading, writing = os.pipe()
        os.write(writing, b"a.org\nb.org\n")
        os.close(writing)
        try:
            seeds = TextSeeds(FileLines(Path(f"/dev/fd/{reading}")))
            assert [seed.text for seed in seeds] == ["a.org", "b.org"]
        finally:
            os.close(reading)

    @pytest.mark.parametrize(
        ("data", "word"),
        [
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
            (b"\x1f\x8b\x08\x00abc", "gzip"),
            (b"PK\x03\x04...", "zip"),
            (b"%PDF-1.7\n", "PDF"),
            ("a.org\n".encode("utf-16"), "UTF-16"),
        ],
    )
    def test_what_is_no_text_is_told_before_anything_is_read(self, tmp_path: Path, data: bytes, word: str) -> None:
        """S1: a sentence and a remedy; the same on standard input."""
        path = tmp_path / "list"
        path.write_bytes(data)
        with pytest.raises(UsageError, match=word) as caught:
            FileLines(path)
        assert caught.value.hint
        with pytest.raises(UsageError, match="standard input.*" + word):
            text_seeds(data)

    def test_a_directory_and_a_missing_file_are_told(self, tmp_path: Path) -> None:
        """S1: a sentence and a remedy."""
        with pytest.raises(UsageError, match="directory") as caught:
            FileLines(tmp_path)
        assert caught.value.hint
        with pytest.raises(UsageError, match="No such file") as caught:
            FileLines(tmp_path / "nowhere.txt")
        assert caught.value.hint

    def test_a_disk_that_fails_while_reading_is_told(self) -> None:
        """S1: no bare OSError reaches the user."""

        class Broken(io.RawIOBase):
            def readable(self) -> bool:
                return True

            def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io calls it with a memoryview
                raise OSError(5, "Input/output error")

        with pytest.raises(UsageError, match="Input/output error"):
            list(TextSeeds(StreamLines(io.BufferedReader(Broken()))))


class TestDomains:
    @pytest.mark.parametrize(
        "data",
        [
            "a.org\nb.co.uk\n",
            "1,a.org\n2,b.co.uk\n",
            "1,a.org\r2,b.co.uk\r",
            "rank,domain\n1,a.org\n2,b.co.uk\n",
            "domain;visits\na.org;1.5\nb.co.uk;2,7\n",
            "Rank\tSite\n1\ta.org\n2\tb.co.uk\n",
            '"1","a.org","x, y"\n"2","b.co.uk",""\n',
            "\ufeffdomain,rank\r\na.org,1\r\n\r\nb.co.uk,2\r\n",
            "name,score,url\nfoo,3.14,a.org\nbar,2.71,b.co.uk\n",
            "# a comment\nmail,site\nme@x.org,a.org\nyou@x.org, b.co.uk\n",
            'note,site\n"two\nlines",a.org\nplain,b.co.uk\n',
            "GlobalRank,TldRank,Domain,TLD\n1,1,a.org,org\n2,1,b.co.uk,uk\n",
        ],
    )
    def test_the_first_field_that_is_a_domain_counts(self, data: str) -> None:
        """S1: with or without header, rank first, quoted, other delimiters."""
        assert domain_seeds(data) == ["a.org", "b.co.uk"]

    def test_urls_ports_addresses_and_idn_are_domains_too(self) -> None:
        """S1: what a list of sites may hold."""
        sites = ["https://a.org/x", "b.org:8080", "10.0.0.1", "bücher.example", "c.org/path"]
        assert domain_seeds("".join(f"{n},{site}\n" for n, site in enumerate(sites))) == sites

    def test_a_row_without_a_domain_is_passed_on_to_be_refused(self) -> None:
        """S1: none is passed over in silence, but for the header."""
        data = "rank,domain\n1,a.org\n2,nothing here\n"
        assert list(DomainSeeds(stream(data.encode()))) == [
            Seed("a.org", "standard input:2"),
            Seed("2,nothing here", "standard input:3"),
        ]
        assert domain_seeds("1,com\n2,a.org\n") == ["1,com", "a.org"]

    def test_a_stray_quote_costs_its_own_row_at_most(self) -> None:
        """S1: the file is not swallowed up to the next quote."""
        sites = [f"site{n}.org" for n in range(500)]
        rows = [f"{n},{site}" for n, site in enumerate(sites)]
        assert domain_seeds("\n".join(['9,"open.org', *rows, '5" pipe,late.org', "1,last.org"])) == [
            "open.org",
            *sites,
            "late.org",
            "last.org",
        ]

    @quick
    @given(
        st.lists(st.tuples(st.text("ab \"',;\n", max_size=6), st.from_regex(r"[a-z]{1,9}\.org", fullmatch=True))),
        st.sampled_from(",;\t|"),
    )
    def test_what_a_csv_writer_wrote_is_read_back(self, rows: list[tuple[str, str]], delimiter: str) -> None:
        """S1: quotes, delimiters and line ends inside fields."""
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows(rows)
        assert domain_seeds(text.getvalue()) == [domain for _, domain in rows]

    @quick
    @given(st.text("a.,;\"'\t\r\n1", max_size=60))
    def test_any_text_is_read_to_its_end(self, text: str) -> None:
        """S1: never an exception but UsageError."""
        found: Iterator[Seed] = iter(DomainSeeds(stream(text.encode())))
        assert all(isinstance(seed, Seed) for seed in found)
