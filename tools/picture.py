"""Takes the picture of the live view that stands in the README: `.venv/bin/python tools/picture.py`.

It runs `nephila demo` for some seconds and draws the moment at which most of its pages are in, with the very function
that draws the terminal. Nothing in the picture is made up; taking it again changes the figures a little.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console, Group
from rich.terminal_theme import MONOKAI
from rich.text import Text

from nephila.cli.backend import Backend
from nephila.cli.live import RecentUrls, frame
from nephila.cli.needs import RunningCrawl

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "live.svg"
COLUMNS = 80
PAGES = 240
TAKEN_AT = 0.8
"""The share of the pages at which the picture is taken: errors, refusals and duplicates have come by then."""
LOOK_EVERY_S = 0.02


class Photographer:
    """Watches a crawl, and keeps the lines of one moment of it."""

    def __init__(self, title: str) -> None:
        self.recent = RecentUrls()
        self.lines: list[Text] = []
        self._title = title

    async def watch(self, crawl: RunningCrawl) -> None:
        """Wait for the moment, then look once."""
        while (now := crawl.snapshot()).limit_share < TAKEN_AT:  # noqa: ASYNC110 - a view looks, nobody tells it
            await asyncio.sleep(LOOK_EVERY_S)
        seeds = f"seeds: {crawl.seed_report.sentence()}" if crawl.seed_report else ""
        self.lines = frame(now, self.recent.latest(), title=self._title, seeds=seeds, width=COLUMNS)


def drawn(lines: list[Text]) -> str:
    """The lines as an SVG that loads nothing from elsewhere."""
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Group(*lines))
    svg = console.export_svg(title=f"./nephila demo --pages {PAGES} --out my-crawl", theme=MONOKAI, unique_id="nephila")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> int:
    """Crawl, look, draw, write."""
    with tempfile.TemporaryDirectory() as folder:
        photographer = Photographer("nephila demo my-crawl")
        Backend().run_demo(
            Path(folder) / "crawl", pages=PAGES, listeners=[photographer.recent], view=photographer.watch
        )
    if not photographer.lines:
        print("The crawl ended before the picture could be taken.", file=sys.stderr)
        return 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(drawn(photographer.lines) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(photographer.lines)} lines of {COLUMNS} columns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
