"""Which requirements are proven by which tests: joins the ids of tests/spec_ids.toml with the tests' docstrings.

A test says what it proves at the start of its docstring: ids, comma separated, then a colon (`F2, F3: ...`). A test
class says it for all of its tests, a bench for its whole file. Everything is read as text through `ast`: nothing is
imported, so it works on a tree whose dependencies are missing. `malformed` finds heads that name an id in another way,
which would else be overlooked in silence.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ID = r"[A-Z]\d{1,2}"
HEAD = re.compile(rf"\s*({ID}(?:,\s*{ID})*):\s")
LOOSE_HEAD = re.compile(rf"[^:.\n]*\b{ID}\b[^:.\n]*:\s")
"""A first line with an id before its colon: meant as a head."""

SOURCES = ("tests", "bench", "src/nephila/testing")
"""Where proofs are written: tests, benches, and the contract suites that the package ships."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One docstring that may name ids: of a test, a test class or a bench."""

    place: str
    """Path from the root, and the name inside the file as pytest spells it."""
    docstring: str

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids it proves."""
        head = HEAD.match(self.docstring)
        return tuple(re.findall(ID, head[1])) if head else ()

    @property
    def malformed(self) -> bool:
        """Whether it seems to name ids but not in the way that is read."""
        return HEAD.match(self.docstring) is None and LOOSE_HEAD.match(self.docstring) is not None


def known_ids(root: Path) -> dict[str, str]:
    """Every id with its short title, in the order of the specification."""
    chapters = tomllib.loads((root / "tests" / "spec_ids.toml").read_text(encoding="utf-8"))
    return {spec_id: title for chapter in chapters.values() for spec_id, title in chapter.items()}


def collect(root: Path) -> Iterator[Proof]:
    """Every docstring that may name ids, file by file."""
    for source in SOURCES:
        for path in sorted((root / source).rglob("*.py")):
            place = path.relative_to(root).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"), filename=place)
            if source == "bench":
                yield Proof(place, ast.get_docstring(tree) or "")
            yield from _collect_from(tree, place)


def _collect_from(node: ast.Module | ast.ClassDef, place: str) -> Iterator[Proof]:
    for child in node.body:
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if child.name.startswith("test_"):
                yield Proof(f"{place}::{child.name}", ast.get_docstring(child) or "")
            case ast.ClassDef():
                inner = f"{place}::{child.name}"
                if child.name.startswith("Test"):
                    yield Proof(inner, ast.get_docstring(child) or "")
                yield from _collect_from(child, inner)
            case _:
                pass


def proofs_by_id(root: Path) -> dict[str, list[str]]:
    """Every known id with the places that prove it, none for those not proven yet."""
    places: dict[str, list[str]] = {spec_id: [] for spec_id in known_ids(root)}
    for proof in collect(root):
        for spec_id in proof.ids:
            if spec_id in places:
                places[spec_id].append(proof.place)
    return places


def report_text(root: Path) -> str:
    """For people: each id with its proofs, then what is missing."""
    titles, places = known_ids(root), proofs_by_id(root)
    lines = []
    for spec_id, title in titles.items():
        if places[spec_id]:
            lines.append(f"{spec_id:4} {title}")
            lines.extend(f"       {place}" for place in places[spec_id])
    missing = [spec_id for spec_id in titles if not places[spec_id]]
    if missing:
        lines.append("\nNot proven yet:")
        lines.extend(f"{spec_id:4} {titles[spec_id]}" for spec_id in missing)
    lines.append(f"\n{len(titles) - len(missing)} of {len(titles)} ids are proven by a test.")
    return "\n".join(lines)


def report_json(root: Path) -> str:
    """For scripts: id to title and proofs."""
    titles, places = known_ids(root), proofs_by_id(root)
    return json.dumps({spec_id: {"title": titles[spec_id], "tests": places[spec_id]} for spec_id in titles}, indent=2)
