"""A page's text to references, metas, title, base, language and text features, in one pass over its tags.

No tree is built. Tags, attributes, comments, raw text and character references are read as the HTML standard's tokenizer
reads them (13.2.5), what is open is followed by `nesting.py`, visible words are collected by `prose.py`. Where tags
alone do not tell what a browser would make of the page, the answer is *doubtful*: its findings are left to the tree
(`tree.py`, `walk.py`), which is the oracle in the tests, too; text features are made in any case.

This is the specification of the native scanner (`native/scan.c`), which gives the same for any bytes in a fiftieth of the
time. Where that one is not built, the tree is faster than following the nesting in Python: then every page is doubtful,
and only its text features are made here.

What must stay true: any bytes give an answer; time and memory are linear in their number; an answer that is not
doubtful is the tree's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nephila.model.likeness import Likeness
from nephila.native import AVAILABLE, native

from .attributes import refresh_url, srcset_urls
from .characters import decoded_text, decoded_value
from .nesting import Doubt, Nesting
from .prose import Prose, Signature
from .tags import FLAGS, RAW, RCDATA, READ, lowered
from .walk import ANCHORS, MAX_REFERENCES, MAX_TEXT, MAX_TITLE, Findings, folded, outranked

MAX_TAGS = 290_000
"""Tags whose nesting is followed; a page with more is left to the tree, which reads but the first 300,000."""
MAX_ANCHOR_TEXT = 1_000_000
"""Characters of anchor text; a page with more is left to the tree."""

_WS = r"\t\n\f\r "
_NAME = rf"[^{_WS}/>][^{_WS}/>=]*+"
_ATTRIBUTE = re.compile(
    rf"""({_NAME}) (?: [{_WS}]*+ = [{_WS}]*+ (?: "([^"]*+)" | '([^']*+)' | ([^{_WS}>"'][^{_WS}>]*+)?+ ) )?+""",
    re.VERBOSE,
)
_TAG = re.compile(
    rf"""</?+ ([a-zA-Z][^{_WS}/>]*+)
         ( (?: [{_WS}/]*+ {_NAME}
               (?: [{_WS}]*+ = [{_WS}]*+ (?: "[^"]*+" | '[^']*+' | [^{_WS}>"'][^{_WS}>]*+ | (?=>) )
                 | (?! [{_WS}]*+ = ) ) )*+ )
         ([{_WS}/]*+) >""",
    re.VERBOSE,
)
"""Where it does not match, the text ends inside of the tag."""
_COMMENT = re.compile(r"<!--(?:-?+>|.*?(?:-->|--!>))", re.DOTALL)
_SCRIPT = re.compile(r"</script[\t\n\f\r />]|<!--", re.IGNORECASE | re.ASCII)
_ESCAPED_SCRIPT = re.compile(r"-->|</?script[\t\n\f\r />]", re.IGNORECASE | re.ASCII)
_TWICE_ESCAPED_SCRIPT = re.compile(r"-->|</script[\t\n\f\r />]", re.IGNORECASE | re.ASCII)
_RAW_ENDS = {
    name: re.compile(rf"</{name}[\t\n\f\r />]", re.IGNORECASE | re.ASCII)
    for name, flags in FLAGS.items()
    if flags & (RAW | RCDATA) and name != "script"
}


class Scan(NamedTuple):
    """What was found."""

    doubtful: bool
    findings: Findings
    """Empty where there is doubt."""
    signature: Signature
    likeness: Likeness
    spoken: str
    """The language of the text, guessed; empty where the page declares one."""


def _script_end(text: str, position: int) -> int:
    """Where the end tag of a script is, its escapes considered; the end of the text where there is none."""
    while (match := _SCRIPT.search(text, position)) is not None:
        if match[0] != "<!--":
            return match.start()
        position = match.start() + 2  # the dashes may be those of the end
        while (match := _ESCAPED_SCRIPT.search(text, position)) is not None:
            position = match.end()
            if match[0] == "-->":
                break
            if match[0][1] == "/":
                return match.start()
            match = _TWICE_ESCAPED_SCRIPT.search(text, position)
            if match is None:
                return len(text)
            position = match.end()
            if match[0] == "-->":
                break
        else:
            return len(text)
    return len(text)


class _Scanner:
    """One pass over one text."""

    def __init__(self, text: str, *, images: bool, follow: bool, keep_text: bool = False) -> None:
        self.text = text
        self.found = Findings()
        self.prose = Prose(keep_text=keep_text)
        self.doubtful = not follow or "\0" in text
        self._images = images
        self._nesting = Nesting(self._anchors_ended)
        self._templates = 0
        self._tags = 0
        self._pieces: list[str] = []
        """Texts since the first of the open anchors began."""
        self._size = 0
        self._anchors: list[tuple[str, int]] = []
        """Hrefs of the open anchors whose text is wanted, and where among the pieces they begin."""
        self._language: str | None = None
        self._xml_language: str | None = None

    def run(self) -> None:
        text, position = self.text, 0
        while True:
            bracket = text.find("<", position)
            if bracket < 0:
                self._read_text(position, len(text))
                break
            self._read_text(position, bracket)
            self._tags += 1
            if self._tags > MAX_TAGS:
                self._doubt()
            following = text[bracket + 1 : bracket + 2]
            if following.isascii() and following.isalpha():
                position = self._start_tag(bracket)
            elif following == "/":
                position = self._end_tag(bracket)
            elif following == "!":
                position = self._declaration(bracket)
            elif following == "?":
                position = self._past(">", bracket)
            else:
                self._read_text(bracket, bracket + 1)
                position = bracket + 1
            if position < 0:
                break
        self.prose.close()
        if not self.doubtful:
            self._nesting.close_all()
            self._close_language()

    def _past(self, end: str, position: int) -> int:
        at = self.text.find(end, position)
        return -1 if at < 0 else at + len(end)

    def _declaration(self, bracket: int) -> int:
        text = self.text
        if text.startswith("<!--", bracket):
            match = _COMMENT.match(text, bracket)
            return -1 if match is None else match.end()
        if text.startswith("<![CDATA[", bracket) and not self.doubtful and self._nesting.foreign:
            end = text.find("]]>", bracket)
            self._see(text[bracket + 9 : end if end >= 0 else len(text)])
            return -1 if end < 0 else end + 3
        return self._past(">", bracket)

    def _end_tag(self, bracket: int) -> int:
        following = self.text[bracket + 2 : bracket + 3]
        if not following:
            self._read_text(bracket, bracket + 2)
            return -1
        if not (following.isascii() and following.isalpha()):
            return self._past(">", bracket)
        match = _TAG.match(self.text, bracket)
        if match is None:
            return -1
        name = lowered(match[1])
        flags = FLAGS.get(name, 0)
        self.prose.end(name, flags)
        if name == "template" and self._templates:
            self._templates -= 1
        elif not self._templates:
            self._follow_end(name, flags)
        return match.end()

    def _follow_end(self, name: str, flags: int) -> None:
        if not self.doubtful:
            try:
                self._nesting.end(name, flags)
            except Doubt:
                self._doubt()

    def _start_tag(self, bracket: int) -> int:
        match = _TAG.match(self.text, bracket)
        if match is None:
            return -1
        name = lowered(match[1])
        flags = FLAGS.get(name, 0)
        attributes: dict[str, str] = {}
        if flags & READ or name in {"html", "template"}:
            for attribute, double, single, plain in _ATTRIBUTE.findall(match[2]):
                attributes.setdefault(lowered(attribute), double or single or plain)
        self_closing = match[3].endswith("/")
        self.prose.start(name, flags, link=name == "a" and "href" in attributes, self_closing=self_closing)
        foreign = not self.doubtful and not self._templates and self._nesting.foreign
        if name == "template":
            if foreign or "shadowrootmode" in attributes:
                self._doubt()
            self._templates += 1
        elif name in {"plaintext", "frameset"} or (self._templates and flags & (RAW | RCDATA) and self_closing):
            self._doubt()
        elif not self._templates and not self.doubtful:
            self._follow_start(name, flags, attributes, self_closing=self_closing)
        end = match.end()
        if name in {"pre", "listing", "textarea"} and self.text.startswith("\n", end):
            end += 1
        if name == "plaintext":
            self.prose.text(self.text[end:])
            return -1
        if flags & (RAW | RCDATA) and not foreign:
            return self._raw(name, flags, end)
        return end

    def _follow_start(self, name: str, flags: int, attributes: dict[str, str], *, self_closing: bool) -> None:
        foreign = self._nesting.foreign
        try:
            if self._nesting.start(name, flags, self_closing=self_closing) and (flags & READ or name == "html"):
                self._read(name, {key: decoded_value(value) for key, value in attributes.items()})
            if foreign and self_closing and name == "a":
                self._nesting.close_last()
        except Doubt:
            self._doubt()

    def _raw(self, name: str, flags: int, position: int) -> int:
        text = self.text
        if name == "script":
            end = _script_end(text, position)
        else:
            match = _RAW_ENDS[name].search(text, position)
            end = len(text) if match is None else match.start()
        content = text[position:end]
        if flags & RCDATA:
            content = decoded_text(content)
        if self._anchors and not self._templates:
            self._keep(content)
        if name == "title":
            if not self.doubtful and not self._templates and self.found.title is None:
                self.found.title = folded(content, MAX_TITLE)
            self.prose.title(content)
        if end == len(text):
            return -1
        match = _TAG.match(text, end)
        if match is None:
            return -1
        self.prose.end(name, flags)
        return match.end()

    def _read_text(self, start: int, end: int) -> None:
        if start < end:
            self._see(decoded_text(self.text[start:end]))

    def _see(self, text: str) -> None:
        self.prose.text(text)
        if self._anchors and not self._templates:
            self._keep(text)

    def _keep(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size > MAX_ANCHOR_TEXT:
            self._doubt()

    def _doubt(self) -> None:
        self.doubtful = True
        self.found = Findings()
        self._anchors.clear()

    def _anchors_ended(self, left: int) -> None:
        while len(self._anchors) > left:
            href, first = self._anchors.pop()
            tag, rel, _ = self.found.references[href]
            self.found.references[href] = (tag, rel, folded("".join(self._pieces[first:]), MAX_TEXT))
        if not self._anchors:
            self._pieces.clear()

    def _refer(self, href: str | None, tag: str, rel: str = "", text: str = "") -> None:
        self.found.refer(href, (tag, rel, text))
        self._count()

    def _count(self) -> None:
        if len(self.found.references) >= MAX_REFERENCES:
            raise Doubt

    def _read(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "a" | "area":
                self._read_anchor(name, attributes)
            case "link":
                self._read_link(attributes)
            case "meta":
                self._read_meta(attributes)
            case "iframe":
                self._refer(attributes.get("src"), "iframe")
            case "form":
                if lowered(attributes.get("method", "")) not in {"post", "dialog"}:
                    self._refer(attributes.get("action"), "form", _rel(attributes))
            case "base":
                if self.found.base is None:
                    self.found.base = attributes.get("href")
            case "html":
                self._language = attributes.get("lang") if self._language is None else self._language
                self._xml_language = attributes.get("xml:lang") if self._xml_language is None else self._xml_language
            case "img" | "image" | "source" if self._images:
                if name != "source":
                    self._refer(attributes.get("src"), "img", "", folded(attributes.get("alt", ""), MAX_TEXT))
                for url in srcset_urls(attributes.get("srcset", "")):
                    self._refer(url, "srcset")

    def _close_language(self) -> None:
        self.found.language = folded(self._language or self._xml_language or "", MAX_TEXT)

    def _read_anchor(self, tag: str, attributes: dict[str, str]) -> None:
        href = attributes.get("href")
        if href is None:
            return
        known = self.found.references.get(href)
        rel = attributes.get("rel", "")
        if known is not None and ((known[0] in ANCHORS and not known[1]) or not outranked(known, tag, rel)):
            return
        if known is not None and any(href == open_href for open_href, _ in self._anchors):
            raise Doubt
        text = folded(attributes.get("alt", ""), MAX_TEXT) if tag == "area" else ""
        self.found.references[href] = (tag, _rel(attributes), text)
        self._count()
        if tag == "a":
            self._nesting.want_text()
            self._anchors.append((href, len(self._pieces)))

    def _read_link(self, attributes: dict[str, str]) -> None:
        href, rel = attributes.get("href"), _rel(attributes)
        if href is None:
            return
        relations = rel.split()
        if self.found.canonical is None and "canonical" in relations:
            self.found.canonical = href
        if "alternate" in relations and (language := attributes.get("hreflang")):
            self.found.hreflang.append((language, href))
        self._refer(href, "link", rel)

    def _read_meta(self, attributes: dict[str, str]) -> None:
        content = attributes.get("content")
        if content is None:
            return
        if name := attributes.get("name"):
            self.found.metas.append((name, content))
        match lowered(attributes.get("http-equiv", "")):
            case "refresh":
                self._refer(refresh_url(content), "meta")
            case "content-language" if "," not in content:
                self.found.default_language = self.found.default_language or content.strip()


def _rel(attributes: dict[str, str]) -> str:
    return " ".join(attributes.get("rel", "").lower().split())


def _scanned(text: str, *, images: bool, follow: bool, keep_text: bool = False) -> _Scanner:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    scanner = _Scanner(text, images=images, follow=follow, keep_text=keep_text)
    scanner.run()
    return scanner


def plain_scan(body: bytes, *, images: bool = False, follow: bool = True) -> Scan:
    """All that is to be known of a page, from its text in UTF-8; without `follow` every page is doubtful."""
    scanner = _scanned(body.decode("utf-8", "replace"), images=images, follow=follow)
    prose = scanner.prose
    declared = scanner.found.language or scanner.found.default_language
    spoken = "" if declared else prose.language
    return Scan(scanner.doubtful, scanner.found, prose.signature, prose.likeness(), spoken)


def native_scan(body: bytes, *, images: bool = False) -> Scan:
    """The same by the native scanner."""
    doubtful, *found, text, shape, simhash, sketch, words, spoken = native.scan_page(
        body, images, refresh_url, srcset_urls
    )
    return Scan(doubtful, Findings(*found), Signature(text, shape), Likeness(simhash, sketch, words), spoken)


def scan(body: bytes, *, images: bool = False) -> Scan:
    """All that is to be known of a page, from its text in UTF-8, by whichever way is there."""
    return native_scan(body, images=images) if AVAILABLE else plain_scan(body, images=images, follow=False)


def main_text(text: str) -> str:
    """What a page says apart from navigation and the like, a line a block (X5): its features are made of these words."""
    return _scanned(text, images=False, follow=False, keep_text=True).prose.main_text()
