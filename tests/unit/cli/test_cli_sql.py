from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from nephila.cli.backend import Backend
from nephila.cli.main import cli
from nephila.cli.statements import split, statements
from nephila.cli.tables import csv_lines, json_lines, shown, table_lines
from nephila.interfaces.queries import Answered, Table
from nephila.model.errors import QueryError

EVIL = "a\x1b]0;owned\x07\nb"


@dataclass
class FakeQueries:
    """Answers everything with the same rows."""

    columns: Sequence[str] = ("url", "n")
    rows: Sequence[tuple[object, ...]] = ((f"https://a.example/{EVIL}", 7), (None, 12_345))
    asked: list[str] = field(default_factory=list)
    closed: bool = False

    def ask(self, statement: str) -> Answered:
        self.asked.append(statement)
        if statement.startswith("bad"):
            raise QueryError("SQL: near \x1b[2Jbad")
        return Answered(self.columns, iter(self.rows))

    def tables(self) -> list[Table]:
        return [Table("pages", [("url", "text"), ("status", "integer")]), Table("errors", [("at", "integer")])]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def asked() -> FakeQueries:
    return FakeQueries()


@pytest.fixture
def invoke(asked: FakeQueries) -> Callable[..., Result]:
    backend = replace(Backend(), open_queries=lambda _: asked)

    def run(*args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, ["sql", *args], input=stdin, obj=backend)

    return run


def test_a_statement_is_answered_as_a_table(invoke: Callable[..., Result], asked: FakeQueries) -> None:
    """W6, C4: names, then rows; numbers to the right; nothing acts on the terminal."""
    result = invoke("d", "SELECT url, n FROM x")
    assert asked.asked == ["SELECT url, n FROM x"]
    assert asked.closed
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["url", "n"]
    assert lines[2].endswith("      7")
    assert lines[3].endswith("  12345")
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout


def test_json_lines_and_csv(invoke: Callable[..., Result]) -> None:
    """W6, C4: an object a row; values apart by commas, names first."""
    rows = [json.loads(line) for line in invoke("d", "SELECT 1", "--json").stdout.splitlines()]
    assert rows == [{"url": f"https://a.example/{EVIL}", "n": 7}, {"url": None, "n": 12_345}]
    assert invoke("d", "SELECT 1", "--csv").stdout.splitlines()[0] == "url,n"
    assert invoke("d", "SELECT 1", "--csv", "--json").exit_code != 0


def test_statements_come_from_standard_input(invoke: Callable[..., Result], asked: FakeQueries) -> None:
    """W6: several, each ended by a semicolon; the last may lack it."""
    assert invoke("d", stdin="SELECT ';';\n-- a comment; more\nSELECT 2").exit_code == 0
    assert asked.asked == ["SELECT ';'", "-- a comment; more\nSELECT 2"]
    result = invoke("d", stdin="  -- nothing\n")
    assert result.exit_code != 0


def test_tables_are_listed(invoke: Callable[..., Result]) -> None:
    """W6: names with their columns; with types for scripts."""
    assert invoke("d", "--tables").stdout == "pages   url, status\nerrors  at\n"
    first = json.loads(invoke("d", "--tables", "--json").stdout.splitlines()[0])
    assert first == {
        "table": "pages",
        "columns": [{"name": "url", "type": "text"}, {"name": "status", "type": "integer"}],
    }


@pytest.mark.parametrize(
    ("text", "ended", "begun"),
    [
        ("SELECT 1;", ["SELECT 1"], ""),
        ("SELECT 1; SELECT", ["SELECT 1"], " SELECT"),
        ("SELECT 'it''s; so';x", ["SELECT 'it''s; so'"], "x"),
        ('SELECT "a;b", `c;d`;', ['SELECT "a;b", `c;d`'], ""),
        ("SELECT 1 -- a; b\n;", ["SELECT 1 -- a; b"], ""),
        ("SELECT /* a; b */ 1;;", ["SELECT /* a; b */ 1"], ""),
        ("SELECT 'open;", [], "SELECT 'open;"),
    ],
)
def test_a_statement_ends_at_its_semicolon(text: str, ended: list[str], begun: str) -> None:
    """W6: not at one in a text, a name or a comment."""
    assert split(text) == (ended, begun)


def test_a_last_statement_needs_no_semicolon() -> None:
    """W6: as on a command line."""
    assert list(statements("a; b")) == ["a", "b"]
    assert list(statements("a; -- nothing")) == ["a"]


def answer(columns: int, rows: int, text: str = "some longer text in a cell") -> Answered:
    def made() -> Iterator[tuple[object, ...]]:
        for number in range(rows):
            yield (number, *(f"{text} {number}" for _ in range(columns - 1)))

    return Answered([f"column{number}" for number in range(columns)], made())


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 9, 12, 37])
@pytest.mark.parametrize("text", ["some longer text in a cell", "\u9759\u304b\u306a\u5ddd" * 9])
def test_a_table_fits_the_terminal(columns: int, text: str) -> None:
    """C4: 80 columns, however many and wide its cells are; too many are told field by field."""
    lines = list(table_lines(answer(columns, 300, text), 80))
    if columns < 12:
        assert len(lines) == 302
        assert max(map(cell_len, lines)) <= 80
    else:
        assert lines[0].startswith("column0")
        assert len(lines) >= 300 * columns


def test_without_a_terminal_nothing_is_cut() -> None:
    """C4: what goes to a file is whole."""
    assert any("text in a cell 7" in line for line in table_lines(answer(5, 9), None))


def test_values_of_all_kinds() -> None:
    """W6: hashes in hexadecimal, nothing for NULL, what is no number in JSON as text."""
    assert [shown(one) for one in (None, b"\x01\xff", True, 3, 0.5, [1, b"\x02"])] == [
        "",
        "01ff",
        "true",
        "3",
        "0.5",
        '[1, "02"]',
    ]
    [line] = json_lines(Answered(["a", "b"], iter([(float("inf"), b"\x01")])))
    assert json.loads(line) == {"a": "inf", "b": "01"}


def test_no_cell_is_a_formula() -> None:
    """W6: a title that a spreadsheet would run gets an apostrophe; numbers stay numbers."""
    rows: list[tuple[object, ...]] = [("=cmd()", -5), ("+1", 2.5), ("@x", None), ("plain, text", 1)]
    lines = list(csv_lines(Answered(["a", "b"], iter(rows))))
    assert lines == ["a,b", "'=cmd(),-5", "'+1,2.5", "'@x,", '"plain, text",1']
    for one in ("\n=cmd()", "\t=1", "\uff1dcmd()", "\uff0b1", "\uff0d1", "\uff20x"):
        assert _read_csv([("x", one)])[1:] == [["x", f"'{one}"]]


@pytest.mark.parametrize("text", ["two\nlines", "x\n=cmd()", "x\r=cmd()", "x\r\n=cmd()", '"\n', ""])
def test_a_line_end_in_a_cell_begins_no_row(text: str) -> None:
    """W6: what a stranger wrote cannot add a row, nor a formula at the beginning of one."""
    assert _read_csv([(text, "b"), ("c", text)]) == [["a", "b"], [text, "b"], ["c", text]]


def _read_csv(rows: list[tuple[object, ...]]) -> list[list[str]]:
    lines = "\n".join(csv_lines(Answered(["a", "b"], iter(rows))))
    return list(csv.reader(io.StringIO(lines, newline="")))


def test_an_empty_answer_has_its_names() -> None:
    """W6: and no row."""
    assert list(table_lines(Answered(["a", "b"], iter(())), 80)) == ["a  b", "-  -"]
