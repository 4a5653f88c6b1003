"""CPU time of parsing, in microseconds a page, against the floor: another parser that builds a tree and stops there.

Prints one JSON object: for pages of about 3, 30 and 100 KB and of the median size, the floor (lexbor), the tree with
its walk, the scanner in Python (whole, and the text features alone), the scanner in C, what comes before and after it,
the whole `parse_html`, and the ratio of the whole to the floor, which is what can be compared between machines. Real
pages of the test material are used where it is ($NEPHILA_MATERIAL or ../shared/material), made-up ones elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import turbohtml
from selectolax.lexbor import LexborHTMLParser

from nephila.native import AVAILABLE
from nephila.parse import decide_charset, decode, parse_html
from nephila.parse.html import resolved_links
from nephila.parse.scan import native_scan, plain_scan
from nephila.parse.tree import elements
from nephila.parse.walk import DOCUMENT_TAGS, walk
from nephila.urls.parse import Base

URL = "https://site.example/section/page.html"
ITEM = '<div class="item"><h2>Title {0}</h2><p>Words and <a class="more" href="/page/{0}?x=1">link {0}</a>.</p></div>\n'
ROUNDS = 12
ROUNDS_IN_PYTHON = 3
PAGES = 24


def real_pages() -> list[bytes]:
    material = Path(os.environ.get("NEPHILA_MATERIAL") or Path(__file__).parents[2] / "shared" / "material")
    archive = material / "03-html" / "pages" / "pages_dev.zip"
    if not archive.is_file():
        return []
    with zipfile.ZipFile(archive) as pages:
        return sorted((pages.read(name) for name in pages.namelist()), key=len)


def near(pages: list[bytes], size: int) -> list[bytes]:
    if not pages:
        item = ITEM.format(1000)
        body = "".join(ITEM.format(number) for number in range(size // len(item)))
        return [f"<!doctype html><meta charset=utf-8><title>x</title>{body}".encode()]
    nearest = sorted(pages, key=lambda page: abs(len(page) - size))[:PAGES]
    return [page for page in nearest if len(page) < 2 * size] or nearest[:1]


def cost_us(work: Callable[[int], object], count: int, rounds: int = ROUNDS) -> float:
    """The mean over the pages of the least time that each took."""
    least = [sys.maxsize] * count
    for _ in range(rounds):
        for number in range(count):
            started = time.process_time_ns()
            work(number)
            least[number] = min(least[number], time.process_time_ns() - started)
    return round(sum(least) / count / 1000, 1)


def measure(pages: list[bytes]) -> dict[str, float]:
    texts = [decode(page, decide_charset(page, "text/html")) for page in pages]
    utf8 = [text.encode() for text in texts]
    walks = [walk(elements(text, DOCUMENT_TAGS)) for text in texts]
    base = Base.parse(URL)
    if base is None:
        raise SystemExit("the base URL of this bench cannot be parsed")
    steps: dict[str, Callable[[int], object]] = {
        "floor_lexbor_tree": lambda number: LexborHTMLParser(utf8[number], options=1),
        "charset": lambda number: decide_charset(pages[number], "text/html"),
        "decode": lambda number: decode(pages[number], "UTF-8"),
        "tree": lambda number: turbohtml.parse(texts[number], positions=False),
        "tree_and_walk": lambda number: walk(elements(texts[number], DOCUMENT_TAGS)),
        "join": lambda number: base.join_all(walks[number].references),
        "join_and_links": lambda number: resolved_links(walks[number], base),
        "whole": lambda number: parse_html(pages[number], URL, "text/html", agent="nephila"),
    }
    if AVAILABLE:
        steps["scan_in_c"] = lambda number: native_scan(utf8[number])
    in_python: dict[str, Callable[[int], object]] = {
        "scan_in_python": lambda number: plain_scan(utf8[number]),
        "features_in_python": lambda number: plain_scan(utf8[number], follow=False),
    }
    costs = {name: cost_us(step, len(pages)) for name, step in steps.items()}
    costs |= {name: cost_us(step, len(pages), ROUNDS_IN_PYTHON) for name, step in in_python.items()}
    return {
        "bytes": round(sum(map(len, pages)) / len(pages)),
        "doubtful": sum(plain_scan(text).doubtful for text in utf8),
        "links": round(sum(len(found.references) for found in walks) / len(pages), 1),
        **costs,
        "ratio_to_floor": round(costs["whole"] / costs["floor_lexbor_tree"], 2),
    }


def main() -> None:
    pages = real_pages()
    median = len(pages[len(pages) // 2]) if pages else 72_000
    result = {
        "bench": "parse",
        "pages": "real" if pages else "made up",
        "unit": "us of CPU a page",
        "native": AVAILABLE,
        "3_kb": measure(near(pages, 3_000)),
        "30_kb": measure(near(pages, 30_000)),
        "100_kb": measure(near(pages, 100_000)),
        "median": measure(near(pages, median)),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
