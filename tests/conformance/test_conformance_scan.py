"""The scanner on pages that others made: what the tree says, without the tree."""

from __future__ import annotations

import base64
import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nephila.parse.charset import decide_charset, decode
from nephila.parse.scan import Scan, native_scan, plain_scan
from nephila.parse.tree import elements
from nephila.parse.walk import DOCUMENT_TAGS, IMAGE_TAGS, Findings, walk

Tell = Callable[[str, int, int], None]

MOST_DOUBTFUL = 0.1
"""Of real pages; the tree costs five times as much."""


@pytest.fixture(scope="module")
def pages(material: Path) -> dict[str, bytes]:
    folder = material / "03-html"
    with zipfile.ZipFile(folder / "pages" / "pages_dev.zip") as archive:
        pages = {name: archive.read(name) for name in archive.namelist()}
    for path in sorted([*(folder / "jsoup").rglob("*"), *(folder / "scrapy-samples").rglob("*")]):
        if path.is_file():
            body = path.read_bytes()
            pages[str(path.relative_to(folder))] = gzip.decompress(body) if path.suffix == ".gz" else body
    calls = (folder / "w3lib" / "html_calls.jsonl").read_text(encoding="utf-8").strip().split("\n")
    for number, call in enumerate(map(json.loads, calls)):
        html = call["args"][0] if call["args"] else None
        if isinstance(html, (str, dict)):
            pages[f"w3lib {number}"] = html.encode() if isinstance(html, str) else base64.b64decode(html["b64"])
    return pages


@pytest.fixture(scope="module")
def texts(pages: dict[str, bytes]) -> dict[str, str]:
    return {name: decode(body, decide_charset(body, "")) for name, body in pages.items()}


def by_tree(text: str, *, images: bool) -> Findings:
    return walk(elements(text, DOCUMENT_TAGS + IMAGE_TAGS if images else DOCUMENT_TAGS))


@pytest.mark.parametrize("images", [False, True])
@pytest.mark.parametrize("scan", [plain_scan, native_scan])
def test_real_pages_are_read_as_the_tree_has_them(
    texts: dict[str, str], tell: Tell, scan: Callable[..., Scan], *, images: bool
) -> None:
    """X1, X2, X5: every reference with its rel and text, in order; metas, title, base, languages."""
    good = certain = 0
    for text in texts.values():
        result = scan(text.encode(), images=images)
        if not result.doubtful:
            certain += 1
            expected = by_tree(text, images=images)
            found = result.findings
            good += found == expected and list(found.references) == list(expected.references)
    tell(f"scan: pages as the tree has them ({scan.__name__}{', images' * images})", good, certain)
    assert good == certain > 0


def test_few_real_pages_leave_a_doubt(texts: dict[str, str], tell: Tell) -> None:
    """X1: the tree is asked for those."""
    real = [text for name, text in texts.items() if name.startswith("p") and name.endswith(".html")]
    doubtful = sum(native_scan(text.encode()).doubtful for text in real)
    tell("scan: real pages that leave a doubt", doubtful, len(real))
    assert doubtful <= MOST_DOUBTFUL * len(real)


def test_both_scanners_say_the_same_of_real_pages(pages: dict[str, bytes], tell: Tell) -> None:
    """X1, X5, D3: of their bytes as they are, whatever their encoding."""
    good = sum(native_scan(body) == plain_scan(body) for body in pages.values())
    tell("scan: pages on which C and Python agree", good, len(pages))
    assert good == len(pages)
