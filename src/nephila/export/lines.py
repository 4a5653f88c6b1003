"""JSON lines: one object a page, or a link, in UTF-8; under gzip where the name of the file says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import msgspec

from .columns import COLUMNS, EDGE_COLUMNS, Kind, edges_of, moment
from .document import Document

_encode = msgspec.json.Encoder().encode


def page_object(document: Document) -> dict[str, object]:
    """All that is told of a page."""
    found: dict[str, object] = {}
    for name, kind, _, value_of in COLUMNS:
        value = value_of(document)
        match kind:
            case Kind.MOMENT:
                found[name] = moment(int(str(value)))
            case Kind.LINKS:
                found[name] = [
                    {"url": link.url, "tag": link.tag, "rel": link.rel, "text": link.text} for link in document.links
                ]
            case _:
                found[name] = value
    return found


def line_of(fields: dict[str, object]) -> bytes:
    """An object as a line; characters that no UTF-8 can have are replaced."""
    try:
        return _encode(fields) + b"\n"
    except UnicodeEncodeError:
        return _encode(_scalar(fields)) + b"\n"


def _scalar(value: object) -> object:
    """The same without lone surrogates, which only a damaged catalogue could hold."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {_scalar(name): _scalar(one) for name, one in value.items()}
        case list() | tuple():
            return [_scalar(one) for one in value]
        case _:
            return value


class PageLines:
    """Pages as lines of a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def add(self, document: Document) -> None:
        """As the protocol."""
        self._stream.write(line_of(page_object(document)))

    def close(self) -> None:
        """The stream is somebody else's."""


class EdgeLines:
    """Links as lines of a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def add(self, document: Document) -> None:
        """As the protocol."""
        self._stream.writelines(_edge_lines(document))

    def close(self) -> None:
        """As above."""


def _edge_lines(document: Document) -> Iterable[bytes]:
    names = [name for name, _, _ in EDGE_COLUMNS]
    for edge in edges_of(document):
        fields: dict[str, object] = dict(zip(names, edge, strict=True))
        yield line_of({**fields, "discovered_at": moment(edge.discovered_at)})
