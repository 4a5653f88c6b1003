"""A capture as an export gives it away: what the catalogue knows of it, and what its bytes say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from nephila.interfaces.catalogue import CaptureRow
from nephila.model.page import Link


@dataclass(frozen=True, slots=True)
class Document:
    """One capture of a page, its body at hand."""

    row: CaptureRow
    headers: Sequence[tuple[str, str]]
    """Of the answer, names in lower case, in the order in which they came."""
    body: bytes
    """Decoded of its content coding; the document as a browser left it, where that was asked for."""
    media_type: str
    """By header and first bytes."""
    charset: str
    title: str
    language: str
    links: Sequence[Link]
    nofollow: bool
    noindex: bool
    noarchive: bool
    """What the page asks of crawlers; of a 304, the page that it found unchanged."""
    rendered: bool
    """`body`, and all that was read out of it, is what a browser made of the answer."""
    last_seen_at: int
    """The last visit that found it so, UTC milliseconds."""
    extracted: Sequence[tuple[str, str]]
    """What content extractors had found, as ``PLUGIN.FIELD`` and text."""
    text: Callable[[], str]
    """Makes the main text: some forms do without."""
    markdown: Callable[[], str]

    @property
    def sha256(self) -> str:
        """Of the body that is given here; the catalogue has that of the rendered document, where there is one."""
        return sha256(self.body).hexdigest() if self.body else ""


class DocumentWriter(Protocol):
    """One form. Every call may raise OSError; what was written then is thrown away by whoever made the place for it."""

    def add(self, document: Document) -> None:
        """One more."""

    def close(self) -> None:
        """All are there: write what comes last, and let go. Not called after a failure."""
