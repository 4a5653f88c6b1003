"""Moulds for pages: real ones whose links and sentences have been taken out.

Markup decides what a page costs to parse, so it is kept as somebody wrote it: scripts, styles, tables, broken nesting.
Taken out are the links, which lead to the site's own pages instead, and every longer piece of text, which is written
anew for each page, so that no two pages are duplicates. Whatever names another host is cut to a path: no crawler,
however greedy, finds a way off the machine. Pages come from the test material (`$NEPHILA_MATERIAL` or
../shared/material); where there is none, from a writer of dull but ordinary markup.
"""

from __future__ import annotations

import os
import random
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

COUNT = 20
"""Moulds of one size: enough that no cache or branch predictor learns a single page by heart."""
LINKS = {3: 15, 30: 80, 100: 150}
"""Links of a page by its size in KB, as the pages of the material have them."""
LONG_TEXT = 30
"""Characters from which on a text is written anew; what is shorter is menus and labels, which do not change."""

_ORIGIN = re.compile(r"(?i)https?:(?:\\*/){2}[^\s\"'<>\\/?#&;)]*|(?<=[\"'(=])//[\w-]+(?:\.[\w-]+)+(?::\d+)?")
_PIECE = re.compile(
    r"(?is)(?P<raw><!--.*?-->|<(?P<name>script|style|textarea)\b.*?</(?P=name)\s*>)"
    r"|(?P<title><title[^>]*>.*?</title>)"
    r"|<(?P<tag>[a-z][\w:-]*)(?P<rest>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>"
    r"|(?<=>)(?P<text>[^<>]+)(?=<)"
)
_ATTRIBUTE = re.compile(r"(?is)(?P<before>\s)(?P<name>[\w:-]+)\s*=\s*(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"'>]+)")
_FOLLOWED = ("#", "javascript:", "mailto:", "tel:", "data:", "about:")
_PLACES = frozenset({"src", "srcset", "data-src", "data-srcset", "poster", "background", "data", "href", "xlink:href"})
_SENT = frozenset({"action", "formaction"})


class Link:
    """Where a link belongs."""


class Own:
    """Where the page's own URL belongs, as in rel=canonical."""


@dataclass(frozen=True, slots=True)
class Text:
    """Where so many characters of text belong."""

    length: int


class Title:
    """Where the page's title belongs, which tells its number."""


Slot = Link | Own | Text | Title


@dataclass(frozen=True, slots=True)
class Template:
    """A page in pieces; the slots are `None` among them."""

    pieces: tuple[str | None, ...]
    slots: tuple[tuple[int, Slot], ...]
    """Each slot with its place among the pieces."""
    links: int


def load_templates(kilobytes: int, count: int = COUNT) -> list[Template]:
    """Moulds whose pages have about this size."""
    wanted = LINKS.get(kilobytes, max(5, round(2.7 * kilobytes)))
    size = kilobytes * 1000
    found = [template_of(text, wanted) for text in _near(_real_texts(), size, wanted, count)]
    return found or [template_of(_dull(size, wanted, number), wanted) for number in range(count)]


def material() -> Path:
    """Where test material lies, if it does."""
    return Path(os.environ.get("NEPHILA_MATERIAL") or Path(__file__).parents[3] / "shared" / "material")


def _real_texts() -> list[str]:
    archive = material() / "03-html" / "pages" / "pages_dev.zip"
    if not archive.is_file():
        return []
    texts = []
    with zipfile.ZipFile(archive) as pages:
        for name in sorted(pages.namelist()):
            try:
                texts.append(pages.read(name).decode())
            except UnicodeDecodeError:
                continue  # the site speaks UTF-8
    return texts


def _near(texts: list[str], size: int, links: int, count: int) -> list[str]:
    """The texts nearest in size that have about as many links; the smallest are cut from somewhat larger ones."""
    if size < 10_000:
        texts = [_shortened(text, size) for text in texts if len(text) < 20 * size]
    fitting = [text for text in texts if links / 2 <= len(re.findall(r"(?i)<a\s[^>]*href", text)) <= links * 1.6]
    return sorted(fitting, key=lambda text: (abs(len(text.encode()) - size), text))[:count]


def _shortened(text: str, size: int) -> str:
    """The beginning of a page without its scripts and styles, cut after a tag."""
    text = re.sub(
        r"(?is)<!--.*?-->|<(script|style|noscript|svg)\b.*?</\1\s*>|<(?:link|meta)\b[^>]*>|\s+(?=\s)", "", text
    )
    return text[: text.rfind(">", 0, size) + 1]


def _dull(size: int, links: int, number: int) -> str:
    """Markup as it is written by the metre."""
    draw = random.Random(number)
    item = '<div class="item c{0}"><h2>Heading {0}</h2><p>{1}</p><a class="more" href="/{0}">read</a></div>\n'
    words = max(3, (size // links - 80) // 6)
    items = [item.format(draw.randrange(900), " ".join(["words"] * words)) for _ in range(links)]
    return f"<!doctype html><html><head><title>x</title></head><body>{''.join(items)}</body></html>"


def template_of(text: str, links: int) -> Template:
    """Take a page apart; one with too few links gets a menu."""
    made = _Mould()
    while (cut := _ORIGIN.sub("", text)) != text:  # one may hide in another
        text = cut
    end = 0
    for found in _PIECE.finditer(text):
        made.say(text[end : found.start()])
        end = found.end()
        if found["title"]:
            made.say("<title>")
            made.leave(Title())
            made.say("</title>")
        elif found["tag"]:
            made.tag(found["tag"], found["rest"])
        elif found["text"] and len(found["text"]) >= LONG_TEXT:
            made.leave(Text(len(found["text"])))
        else:
            made.say(found[0])
    made.say(text[end:])
    made.finish(links)
    return made.template()


class _Mould:
    """A page that is being taken apart."""

    def __init__(self) -> None:
        self._pieces: list[str | None] = []
        self._slots: list[tuple[int, Slot]] = []
        self._said: list[str] = []

    def say(self, text: str) -> None:
        self._said.append(text)

    def leave(self, slot: Slot) -> None:
        self._pieces.append("".join(self._said))
        self._said = []
        self._slots.append((len(self._pieces), slot))
        self._pieces.append(None)

    def tag(self, name: str, rest: str) -> None:
        """One start tag, with what it leads to."""
        name = name.lower()
        if name in {"base", "meta"}:
            if name == "meta" and not re.search(r"(?i)refresh|robots|\burl\b", rest):
                self.say(f"<{name}{rest}>")
            return
        own = name == "link" and re.search(r"(?i)canonical|alternate|next|prev|shortlink|amphtml", rest) is not None
        self.say(f"<{name}")
        end = 0
        for found in _ATTRIBUTE.finditer(rest):
            self.say(rest[end : found.start()])
            end = found.end()
            self._attribute(name, found, own=own)
        self.say(f"{rest[end:]}>")

    def _attribute(self, tag: str, found: re.Match[str], *, own: bool) -> None:
        name, value = found["name"].lower(), found["value"].strip("\"'").strip()
        if name in {"rel", "ping"} and tag in {"a", "area"}:
            return
        if name == "href" and tag in {"a", "area"} and not value.lower().startswith(_FOLLOWED):
            self._around(name, Link())
        elif name == "href" and own:
            self._around(name, Own())
        elif name in _PLACES and tag in {"iframe", "frame", "embed", "object"}:
            self.say(f' {name}="about:blank"')
        elif name in _SENT:
            self.say(f' {name}="#"')
        elif name in _PLACES and not value.lower().startswith(_FOLLOWED):
            self.say(f' {name}="/static/{len(self._slots)}.{"css" if tag == "link" else "png"}"')
        else:
            self.say(found[0])

    def _around(self, name: str, slot: Slot) -> None:
        self.say(f' {name}="')
        self.leave(slot)
        self.say('"')

    def finish(self, links: int) -> None:
        """A menu for what is missing, and a line that no other page has."""
        missing = links * 4 // 5 - sum(isinstance(slot, Link) for _, slot in self._slots)
        body, closed, tail = "".join(self._said).rpartition("</body")
        self._said = [body or tail]
        for _ in range(missing):
            self.say("\n<li><a class=menu")
            self._around("href", Link())
            self.say(">more of this</a></li>")
        if not any(isinstance(slot, Title) for _, slot in self._slots):
            self.say("<p>")
            self.leave(Title())
            self.say("</p>")
        self._said += [closed, tail] if closed else []

    def template(self) -> Template:
        pieces = (*self._pieces, "".join(self._said))
        return Template(pieces, tuple(self._slots), sum(isinstance(slot, Link) for _, slot in self._slots))
