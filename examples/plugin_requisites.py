"""A content extractor for archives that are to be replayed. `python plugin_requisites.py https://example.org site`.

A crawl follows what leads to pages. This one also brings what pages are shown with: style sheets and what they import,
scripts, pictures, fonts, films. Three things belong together: the extractor finds their URLs, `skip_extensions=False`
lets them in, and `type="*/*"` stores them. They are asked for like any link, by the rules of robots.txt and at the
host's pace, and have to be in the scope: for those on another host, name it in an `include`.
"""
# ruff: noqa: T201 - an example shows what it finds

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

import nephila
from nephila.model.page import Link
from nephila.model.plugin import Document, Extract

CSS_URL = re.compile(r"""url\(\s*["']?([^"')]+?)["']?\s*\)|@import\s+["']([^"']+)["']""", re.IGNORECASE)
SHOWN_WITH = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
}
RELS = {"stylesheet", "icon", "apple-touch-icon", "preload", "modulepreload", "manifest"}


class Requisites:
    """Finds what pages and style sheets are shown with."""

    name = "requisites"
    media_types = ("text/html", "application/xhtml+xml", "text/css")

    def extract(self, document: Document) -> Extract | None:
        """Every URL once, in the order in which they stand there."""
        text = document.body.decode("utf-8", "replace")  # URLs are ASCII in nearly all of them
        if document.media_type == "text/css":
            found, base = dict.fromkeys(css_urls(text)), document.url
        else:
            reader = Reader()
            reader.feed(text)
            found, base = dict.fromkeys(reader.found), urljoin(document.url, reader.base)
        urls = dict.fromkeys(urldefrag(url).url for one in found if (url := absolute(base, one)))
        return Extract(links=tuple(Link(url, self.name, "", "") for url in urls)) if urls else None


class Reader(HTMLParser):
    """Reads a page."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Attributes that name what is loaded."""
        have = {name: value.strip() for name, value in attrs if value}
        self._in_style = tag == "style"
        if tag == "base" and not self.base:
            self.base = have.get("href", "")
        if tag == "link" and RELS & set(have.get("rel", "").lower().split()):
            self.found.append(have.get("href", ""))
        for name in SHOWN_WITH.get(tag, ()):
            value = have.get(name, "")
            self.found += [part.split()[0] for part in value.split(", ") if part.strip()] if "set" in name else [value]
        self.found += css_urls(have.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Style sheets in the page itself."""
        if self._in_style:
            self.found += css_urls(data)

    def handle_endtag(self, tag: str) -> None:
        """The end of one."""
        self._in_style = self._in_style and tag != "style"


def css_urls(text: str) -> Iterator[str]:
    """What a style sheet loads."""
    for one in CSS_URL.finditer(text):
        yield (one[1] or one[2]).strip()


def absolute(base: str, reference: str) -> str:
    """The URL, or nothing where it is none that can be fetched."""
    try:
        url = urljoin(base, reference) if reference else ""
    except ValueError:
        return ""
    return url if url.startswith(("http://", "https://")) else ""


async def main(seed: str, out: str, config: str | None = None) -> None:
    """Crawl, and say what was stored."""
    kinds: Counter[str] = Counter()
    crawl = nephila.crawl(
        seed, out=out, config=config, max_pages=1000, type="*/*", skip_extensions=False, plugins=[Requisites()]
    )
    async for page in crawl:
        kinds[dict(page.headers).get("content-type", "?").partition(";")[0]] += 1
    for kind, count in sorted(kinds.items()):
        print(f"{count:6}  {kind}")


if __name__ == "__main__":  # the plugin's own process imports this file: it must not begin another crawl
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
