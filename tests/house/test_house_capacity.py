"""The sums in docs/capacity.md, recomputed from the figures and the formulae that stand there."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "capacity.md"
OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
Table = list[list[str]]


def tables(text: str) -> list[Table]:
    """All tables: rows of cells, without the line under the head."""
    found: list[Table] = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        found.append([row for row in rows if not set("".join(row)) <= set("-: ")])
    return found


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def name_in(cell: str) -> str:
    found = re.match(r"`(\w+)`", cell)
    return found[1] if found else ""


def figures(text: str) -> dict[str, float]:
    return {name_in(row[0]): number(row[1]) for table in tables(text) if table[0][1] == "value" for row in table[1:]}


def formulae(text: str) -> dict[str, ast.expr]:
    block = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert block is not None
    lines = [line.split(" = ", 1) for line in block[1].splitlines() if line.strip()]
    return {name.strip(): ast.parse(formula, mode="eval").body for name, formula in lines}


class Sums:
    """Works formulae out; whatever they name is a figure, a given of the column, or another formula."""

    def __init__(self, known: Mapping[str, float], formulae: Mapping[str, ast.expr]) -> None:
        self.known, self.formulae = known, formulae

    def of(self, name: str) -> float:
        return self.known[name] if name in self.known else self.work_out(self.formulae[name])

    def work_out(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as value):
                return float(value)
            case ast.Name(id=name):
                return self.of(name)
            case ast.BinOp(left=left, op=how, right=right):
                return OPERATORS[type(how)](self.work_out(left), self.work_out(right))
            case ast.Call(func=ast.Name(id="ceil"), args=[one]):
                return math.ceil(self.work_out(one) - 1e-9)
            case ast.Call(func=ast.Name(id="max"), args=several):
                return max(map(self.work_out, several))
        raise AssertionError(f"no formula of ours: {ast.dump(node)}")


def shown(value: float) -> str:
    """As the document writes sums: whole from a hundred on, else three figures."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def results(text: str) -> list[Table]:
    return [table for table in tables(text) if table[0][0] == "for"]


def checked(text: str) -> int:
    """Hold every cell of every result against its formula; how many there are."""
    known, rules, cells = figures(text), formulae(text), 0
    for table in results(text):
        givens = [row for row in table[1:] if name_in(row[0]) not in rules]
        for column in range(1, len(table[0])):
            sums = Sums(known | {name_in(row[0]): number(row[column]) for row in givens}, rules)
            for row in table[1:]:
                if row not in givens:
                    assert row[column] == shown(sums.of(name_in(row[0]))), (row[0], table[0][column])
                    cells += 1
    return cells


def test_the_sums_of_the_document_follow_from_its_figures() -> None:
    """N1, N5, F8: every cell; a figure that is changed without them is found."""
    text = DOCUMENT.read_text(encoding="utf-8")
    used = {node.id for rule in formulae(text).values() for node in ast.walk(rule) if isinstance(node, ast.Name)}
    assert checked(text) >= 35
    assert set(figures(text)) <= used, "a figure that nothing follows from"
    assert {name_in(row[0]) for table in results(text) for row in table[1:]} >= set(formulae(text)) - used


@pytest.mark.parametrize("name", ["server_us", "queued_bytes", "page_bytes"])
def test_a_figure_that_was_changed_alone_is_found(name: str) -> None:
    """N5: the test would notice."""
    text = DOCUMENT.read_text(encoding="utf-8")
    changed = re.sub(rf"(`{name}` \| )([\d.,]+)", lambda found: f"{found[1]}{number(found[2]) * 2}", text)
    assert changed != text
    with pytest.raises(AssertionError):
        checked(changed)


def test_what_is_asked_for_is_worked_out() -> None:
    """N1, N5: 400, 1,650 and 12,000 pages a second; 10 and 50 billion URLs, 5 billion pages, 200 million domains."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rates, sizes = results(text)
    given = {name_in(row[0]): [number(cell) for cell in row[1:]] for row in (*rates[1:], *sizes[1:])}
    assert given["rate"] == [400, 1_650, 12_000]
    assert given["urls"] == [1e10, 5e10]
    assert given["pages"] == [5e9, 5e9]
    assert given["domains"] == [2e8, 2e8]
