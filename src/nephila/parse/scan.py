"""A page's text to references, metas, title, base, language and text features, in one pass over its tags.

No tree is built. Tags and raw text are read as the HTML standard's tokenizer reads them (`markup.py`), what is open is
followed (`nesting.py`), references and the like are kept (`gather.py`), visible words are collected (`prose.py`). Where
tags alone do not tell what a browser would make of the page, the answer is *doubtful*: its findings are left to the
tree (`tree.py`, `walk.py`), which is the oracle in the tests, too; text features are made in any case.

This is the specification of the native scanner (`native/scan.c`), which gives the same for any bytes in a fiftieth of
the time. Where that one is not built, the tree is faster than following the nesting in Python: then every page is left
to it, and only text features are made here.

What must stay true: any bytes give an answer; time and memory are linear in their number; an answer that is not
doubtful is the tree's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nephila.model.likeness import Likeness
from nephila.model.noun import quick
from nephila.model.page import Link
from nephila.native import AVAILABLE, native

from .attributes import refresh_url, srcset_urls
from .characters import decoded_text, decoded_value
from .gather import Gathering
from .markup import COMMENT, TAG, attributes_of, raw_end
from .nesting import Doubt
from .prose import Prose, Signature
from .tags import FLAGS, MARKER, PART, RAW, RCDATA, READ, SELECT, TABLE, lowered
from .walk import Findings, outranked

MAX_TAGS = 290_000
"""Tags whose nesting is followed; a page with more is left to the tree, which reads but the first 300,000."""

_ATTRIBUTES_READ = frozenset({"html", "template"})
_HOLDS_MARKERS = MARKER | TABLE | PART | SELECT
_DRAWINGS = frozenset({"svg", "math"})
_HOLD_MARKERS = _DRAWINGS | {"template"}
"""What may keep a marker in a template from being closed by its end tag (HTML standard 13.2.4.3 and 13.2.6)."""
_NEVER_FOLLOWED = frozenset({"plaintext", "frameset"})
_DROP_LINE_END = frozenset({"pre", "listing", "textarea"})
"""A line end right behind their start tag is not part of them."""
_END = -1
"""A place behind the text: there is nothing more to read."""


@quick
class Scan(NamedTuple):
    """What was found."""

    doubtful: bool
    findings: Findings
    """Empty where there is doubt."""
    signature: Signature
    likeness: Likeness
    spoken: str
    """The language of the text, guessed; empty where the page declares one."""


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


class _Scanner:
    """One pass over one text."""

    def __init__(self, text: str, *, images: bool, follow: bool, keep_text: bool = False) -> None:
        self.text = text
        self.prose = Prose(keep_text=keep_text)
        self.gathering = Gathering(images=images)
        self.doubtful = not follow or "\0" in text
        self._templates = 0
        self._marker = ""
        """The marker that is open in the template that we are in."""
        self._unmarked = True
        """Whether every marker in it was closed plainly."""
        self._drawn = False
        """Whether a drawing or a formula was opened in it: what begins there may be read as elsewhere, or as there."""

    @property
    def findings(self) -> Findings:
        return Findings() if self.doubtful else self.gathering.found

    def run(self) -> None:
        text, position, tags = self.text, 0, 0
        while position != _END:
            bracket = text.find("<", position)
            if bracket < 0:
                self._read_text(position, len(text))
                break
            self._read_text(position, bracket)
            tags += 1
            self.doubtful |= tags > MAX_TAGS
            position = self._markup(bracket, text[bracket + 1 : bracket + 2])
        self.prose.close()
        if not self.doubtful:
            self.gathering.close()

    def _markup(self, bracket: int, following: str) -> int:
        """What stands at an opening bracket; returns the place behind it."""
        if _is_letter(following):
            return self._start_tag(bracket)
        if following == "/":
            return self._end_tag(bracket)
        if following == "!":
            return self._declaration(bracket)
        if following == "?":
            return self._past(">", bracket)
        self._read_text(bracket, bracket + 1)
        return bracket + 1

    def _past(self, end: str, position: int) -> int:
        at = self.text.find(end, position)
        return _END if at < 0 else at + len(end)

    @property
    def _foreign(self) -> bool:
        return not self.doubtful and not self._templates and self.gathering.nesting.foreign

    def _declaration(self, bracket: int) -> int:
        text = self.text
        if text.startswith("<!--", bracket):
            match = COMMENT.match(text, bracket)
            return _END if match is None else match.end()
        is_cdata = text.startswith("<![CDATA[", bracket)
        self.doubtful |= is_cdata and self._drawn
        if is_cdata and not self.doubtful and self.gathering.nesting.foreign:
            end = text.find("]]>", bracket)
            self._see(text[bracket + 9 : end if end >= 0 else len(text)])
            return _END if end < 0 else end + 3
        return self._past(">", bracket)

    def _end_tag(self, bracket: int) -> int:
        following = self.text[bracket + 2 : bracket + 3]
        if not following:
            self._read_text(bracket, bracket + 2)
            return _END
        if not _is_letter(following):
            return self._past(">", bracket)
        match = TAG.match(self.text, bracket)
        if match is None:
            return _END
        name = lowered(match[1])
        flags = FLAGS.get(name, 0)
        self.prose.end(name, flags)
        if self._templates:
            self._end_in_template(name, flags)
        elif not self.doubtful:
            try:
                self.gathering.nesting.end(name, flags)
            except Doubt:
                self.doubtful = True
        return match.end()

    def _start_in_template(self, name: str, flags: int) -> None:
        self._unmarked &= not self._marker or not (flags & _HOLDS_MARKERS or name in _HOLD_MARKERS)
        self.doubtful |= self._drawn and name == "template"
        self._drawn |= name in _DRAWINGS
        if flags & MARKER:
            self._marker = name

    def _end_in_template(self, name: str, flags: int) -> None:
        """A template clears formatting up to the last marker alone: one that is open there leaves its own behind."""
        if name == "template":
            self._templates -= 1
            if not self._templates:
                self.doubtful |= bool(self._marker) or not self._unmarked
                self._marker, self._unmarked, self._drawn = "", True, False
        elif name == self._marker:
            self._marker = ""
        elif flags & _HOLDS_MARKERS:
            self._unmarked &= not self._marker

    def _start_tag(self, bracket: int) -> int:
        match = TAG.match(self.text, bracket)
        if match is None:
            return _END
        name, end = lowered(match[1]), match.end()
        flags = FLAGS.get(name, 0)
        attributes = attributes_of(match[2]) if flags & READ or name in _ATTRIBUTES_READ else {}
        self_closing = match[3].endswith("/")
        self.prose.start(name, flags, link=name == "a" and "href" in attributes, self_closing=self_closing)
        raw = flags & (RAW | RCDATA) and not self._foreign
        self._follow(name, flags, attributes, self_closing=self_closing)
        if name in _DROP_LINE_END and self.text.startswith("\n", end):
            end += 1
        if name == "plaintext":
            self.prose.text(self.text[end:])
            return _END
        return self._raw(name, flags, end) if raw else end

    def _follow(self, name: str, flags: int, attributes: dict[str, str], *, self_closing: bool) -> None:
        if self._templates:
            self._start_in_template(name, flags)
        if name == "template":
            self.doubtful |= self._foreign or "shadowrootmode" in attributes
            self._templates += 1
        elif name in _NEVER_FOLLOWED or (self._templates and flags & (RAW | RCDATA) and self_closing):
            self.doubtful = True
        elif not self._templates and not self.doubtful:
            nesting = self.gathering.nesting
            foreign = nesting.foreign
            if foreign and "xlink:href" in attributes:
                attributes.setdefault("href", attributes["xlink:href"])
            try:
                if nesting.start(name, flags, self_closing=self_closing) and (flags & READ or name == "html"):
                    self.gathering.element(name, {key: decoded_value(value) for key, value in attributes.items()})
                if foreign and self_closing and name == "a":
                    nesting.close_last()
            except Doubt:
                self.doubtful = True

    def _raw(self, name: str, flags: int, position: int) -> int:
        """The content of an element without tags in it; returns the place behind its end tag."""
        end = raw_end(self.text, name, position)
        content = self.text[position:end]
        self.doubtful |= self._drawn and "<" in content
        if flags & RCDATA:
            content = decoded_text(content)
        self._gather_text(content)
        if name == "title":
            if not self.doubtful and not self._templates:
                self.gathering.title(content)
            self.prose.title(content)
        match = TAG.match(self.text, end)
        if match is None:
            return _END
        self.prose.end(name, flags)
        return match.end()

    def _read_text(self, start: int, end: int) -> None:
        if start < end:
            self._see(decoded_text(self.text[start:end]))

    def _see(self, text: str) -> None:
        self.prose.text(text)
        self._gather_text(text)

    def _gather_text(self, text: str) -> None:
        if not self.doubtful and not self._templates:
            try:
                self.gathering.text(text)
            except Doubt:
                self.doubtful = True


def _scanned(text: str, *, images: bool, follow: bool, keep_text: bool = False) -> _Scanner:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    scanner = _Scanner(text, images=images, follow=follow, keep_text=keep_text)
    scanner.run()
    return scanner


def plain_scan(body: bytes, *, images: bool = False, follow: bool = True) -> Scan:
    """All that is to be known of a page, from its text in UTF-8; without `follow` every page is doubtful."""
    scanner = _scanned(body.decode("utf-8", "replace"), images=images, follow=follow)
    found, prose = scanner.findings, scanner.prose
    spoken = "" if found.language or found.default_language else prose.language
    return Scan(scanner.doubtful, found, prose.signature, prose.likeness(), spoken)


def native_scan(body: bytes, *, images: bool = False) -> Scan:
    """The same by the native scanner."""
    doubtful, found, signature, likeness, spoken = native.scan_page(body, images, refresh_url, srcset_urls)
    return Scan(doubtful, Findings(*found), Signature(*signature), Likeness(*likeness), spoken)


def native_read(
    body: bytes, base: str, join: Callable[[str], str | None], *, images: bool = False
) -> tuple[Scan, Sequence[Link] | None]:
    """The same with the links, packed (`native/packed.c`), where `base`, the page's own URL, is what they belong to.

    Then the references are not told. None: a base element says otherwise, or there is a doubt; they are to be resolved.
    """
    doubtful, found, signature, likeness, spoken, links = native.read_page(
        body, images, refresh_url, srcset_urls, base, join, outranked, Link
    )
    return Scan(doubtful, Findings(*found), Signature(*signature), Likeness(*likeness), spoken), links


def scan(body: bytes, *, images: bool = False) -> Scan:
    """All that is to be known of a page, from its text in UTF-8, by whichever way is there."""
    return native_scan(body, images=images) if AVAILABLE else plain_scan(body, images=images, follow=False)


def main_text(text: str) -> str:
    """What a page says apart from navigation and the like, a line a block (X5); its features are made of that."""
    return _scanned(text, images=False, follow=False, keep_text=True).prose.main_text()
