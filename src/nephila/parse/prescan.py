"""What the first bytes of a page say about its character encoding: byte order mark, XML declaration, meta elements.

This is the HTML standard's *prescan a byte stream to determine its encoding* (section 13.2.3.2). It reads bytes, not
text, and is no HTML parser: a meta element inside a script counts, one inside a comment does not, because that is what
browsers do.

What must stay true: linear in the bytes given, no exception for any bytes. Where the bytes end inside a tag, what that
tag said does not count.
"""

from __future__ import annotations

import re

from .labels import encoding_of

PRESCAN_BYTES = 1024
"""How far browsers look for a declaration before they start to parse (HTML standard, 13.2.3.2)."""

_MARKS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xfe\xff", "UTF-16BE"), (b"\xff\xfe", "UTF-16LE"))
_ANY_MARK = tuple(mark for mark, _ in _MARKS)
_XML_MARKS = ((b"<\0?\0x\0", "UTF-16LE"), (b"\0<\0?\0x", "UTF-16BE"))

_ATTRIBUTE = rb"""[\t\n\f\r /]*+ ([^\t\n\f\r />][^\t\n\f\r /=>]*+) [\t\n\f\r ]*+
    (?: = [\t\n\f\r ]*+ (?: "([^"]*+)" | '([^']*+)' | (?!["'])([^\t\n\f\r >]*+) ) | (?!=) )"""
_ATTRIBUTES = re.compile(_ATTRIBUTE, re.VERBOSE)
_TAG = re.compile(rb"</?[A-Za-z][^\t\n\f\r >]*+ (?: " + _ATTRIBUTE + rb")*+ [\t\n\f\r /]*+ >", re.VERBOSE)
"""A whole tag; no match where the bytes end inside it."""
_TAG_START = re.compile(rb"</?[A-Za-z]")
_META_START = re.compile(rb"<meta[\t\n\f\r /]", re.IGNORECASE)
_CONTENT_CHARSET = re.compile(
    rb"""charset [\t\n\f\r ]*+ = [\t\n\f\r ]*+ (?: "([^"]*+)" | '([^']*+)' | (["']) | ([^\t\n\f\r ;]++) )""",
    re.VERBOSE | re.IGNORECASE,
)
_XML_ENCODING = re.compile(rb"""encoding [\x00-\x20]*+ = [\x00-\x20]*+ (?: "([^"]*+)" | '([^']*+)' )""", re.VERBOSE)


def byte_order_mark(body: bytes) -> str | None:
    """The encoding that a byte order mark gives."""
    if not body.startswith(_ANY_MARK):
        return None
    return next(name for mark, name in _MARKS if body.startswith(mark))


def _declared(label: bytes) -> str | None:
    """The encoding of a declared label; a declaration that can be read is not UTF-16, whatever it says."""
    name = encoding_of(label.decode("latin-1"))
    if name in {"UTF-16LE", "UTF-16BE"}:
        return "UTF-8"
    return "windows-1252" if name == "x-user-defined" else name


def _of_content(content: bytes) -> str | None:
    match = _CONTENT_CHARSET.search(content)
    return _declared(match[1] or match[2] or match[4] or b"") if match else None


def _of_meta(tag: bytes) -> str | None:
    """What one tag declares, if it is a meta element that declares an encoding."""
    if not _META_START.match(tag) or b"charset" not in tag.lower():
        return None
    attributes: dict[bytes, bytes] = {}
    for name, double, single, plain in _ATTRIBUTES.findall(tag, len(b"<meta"), len(tag) - 1):
        attributes.setdefault(name.lower(), double or single or plain)
    if b"charset" in attributes:
        return _declared(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() == b"content-type":
        return _of_content(attributes.get(b"content", b""))
    return None


def _of_xml(head: bytes) -> str | None:
    end = head.find(b">")
    match = _XML_ENCODING.search(head, 0, end) if end > 0 and head.startswith(b"<?xml") else None
    return _declared(match[1] or match[2] or b"") if match else None


def declared_encoding(head: bytes) -> str | None:
    """What the given bytes declare; give it the first `PRESCAN_BYTES` of a page to have a browser's answer."""
    for mark, name in _XML_MARKS:
        if head.startswith(mark):
            return name
    position = head.find(b"<")
    while position >= 0:
        if tag := _TAG.match(head, position):
            if found := _of_meta(tag[0]):
                return found
            after = tag.end()
        elif _TAG_START.match(head, position):
            break
        elif head.startswith(b"<!--", position):
            after = head.find(b"-->", position + 2) + 3
        elif head[position + 1 : position + 2] in {b"!", b"/", b"?"}:
            after = head.find(b">", position) + 1
        else:
            after = position + 1
        # What is never closed hides all that follows.
        position = head.find(b"<", after) if after > position else -1
    return _of_xml(head)
