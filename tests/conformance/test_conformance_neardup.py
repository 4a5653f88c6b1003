"""Near duplicates: labelled pairs of real pages, and articles with planted copies."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest

from nephila.model.likeness import Likeness, distance, is_near_duplicate
from nephila.parse import parse_html

Tell = Callable[[str, int, int], None]


class Pair(NamedTuple):
    one: Likeness
    other: Likeness
    same: bool
    kind: str


def likeness_of(body: bytes) -> Likeness:
    return parse_html(body, "http://site.example/", "text/html", agent="nephila").likeness


@pytest.fixture(scope="module")
def pairs(material: Path) -> list[Pair]:
    folder = material / "07-neardup" / "web"
    lines = map(json.loads, (folder / "pairs_dev.jsonl").read_text(encoding="utf-8").splitlines())
    with zipfile.ZipFile(folder / "docs_dev.zip") as pages:
        known = {name.removesuffix(".html"): likeness_of(pages.read(name)) for name in pages.namelist()}
    return [
        Pair(known[line["a"]], known[line["b"]], line["label"] == 1, line["kind"])
        for line in lines
        if line["label"] != 0.5
    ]


def test_near_duplicates_of_real_pages_are_found(pairs: list[Pair], tell: Tell) -> None:
    """D3: precision 0.99, recall 0.85 on labelled pairs."""
    said = [pair for pair in pairs if is_near_duplicate(pair.one, pair.other)]
    right = sum(pair.same for pair in said)
    there = sum(pair.same for pair in pairs)
    tell("near duplicates: precision", right, len(said))
    tell("near duplicates: recall", right, there)
    kinds: dict[str, list[bool]] = defaultdict(list)
    for pair in pairs:
        kinds[pair.kind].append(is_near_duplicate(pair.one, pair.other) == pair.same)
    for kind, verdicts in sorted(kinds.items()):
        tell(f"near duplicates, right about {kind}", sum(verdicts), len(verdicts))
    assert right >= 0.99 * len(said)
    assert right >= 0.85 * there


def test_distances_tell_the_two_apart(pairs: list[Pair], tell: Tell) -> None:
    """D3: what the index must find, and how far all else is away from it."""
    near = [distance(pair.one, pair.other) for pair in pairs if pair.same]
    far = [distance(pair.one, pair.other) for pair in pairs if not pair.same]
    for most in (0, 3, 6, 10):
        tell(f"near duplicates at most {most} bits apart", sum(bits <= most for bits in near), len(near))
        tell(f"other pairs at most {most} bits apart", sum(bits <= most for bits in far), len(far))
    assert sum(bits <= 6 for bits in far) <= 0.02 * len(far)


def articles(path: Path) -> Iterator[tuple[str, Likeness]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, text = line.partition(" ")
        yield name, likeness_of(f"<meta charset=utf-8><p>{text}".encode())


@pytest.mark.parametrize("count", [100, 1000])
def test_planted_copies_of_articles_are_found(material: Path, tell: Tell, count: int) -> None:
    """D3: texts that copy each other with small changes; nothing else is taken for a copy."""
    folder = material / "07-neardup" / "minhash-articles"
    known = dict(articles(folder / f"articles_{count}.train"))
    planted = {frozenset(line.split()) for line in (folder / f"articles_{count}.truth").read_text().splitlines()}
    found = {
        frozenset((one, other))
        for one, other in combinations(known, 2)
        if (known[one].simhash ^ known[other].simhash).bit_count() <= 6 and is_near_duplicate(known[one], known[other])
    }
    tell(f"near duplicates: planted copies in {count} articles", len(found & planted), len(planted))
    assert found <= planted
    assert len(found) >= 0.75 * len(planted)
