"""A content extractor: the JSON-LD of every page, as lines. `python plugin_json_ld.py https://example.org site`.

An extractor names the media types that it reads and is given each such body once. What it returns goes along with the
page: `links` are followed like any others, `fields` stand in the WARC's metadata record, come to record sinks, and to
whoever reads the pages, as here.
"""
# ruff: noqa: T201 - an example shows what it finds

import asyncio
import json
import re
import sys
from pathlib import Path

import nephila
from nephila.model.plugin import Document, Extract

SCRIPT = re.compile(rb"<script[^>]+application/ld\+json[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


class JsonLd:
    """Finds linked data in HTML."""

    name = "json-ld"
    media_types = ("text/html", "application/xhtml+xml")

    def extract(self, document: Document) -> Extract | None:
        """Every block that is JSON; what is none is left out."""
        blocks = []
        for found in SCRIPT.findall(document.body):
            try:
                blocks.append(json.loads(found))
            except ValueError:
                continue
        if not blocks:
            return None
        return Extract(fields=tuple((f"block{number}", json.dumps(one)) for number, one in enumerate(blocks)))


async def main(seed: str, out: str, config: str | None = None, file: str = "json-ld.jsonl") -> None:
    """Crawl, and write a line for every block that was found."""
    count = 0
    with Path(file).open("w", encoding="utf-8") as lines:  # noqa: ASYNC230 - a few lines a second
        async for page in nephila.crawl(seed, out=out, config=config, max_pages=100, plugins=[JsonLd()]):
            for name, text in page.extracted:
                if name.startswith("json-ld."):
                    lines.write(json.dumps({"url": page.url, "data": json.loads(text)}) + "\n")
                    count += 1
    print(f"{count} blocks in {file}")


if __name__ == "__main__":  # the plugin's own process imports this file: it must not begin another crawl
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
