"""Pages that are made by their scripts: what a browser is asked, what it gives, what a site has shown (J1-J4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .noun import noun


class RenderMode(StrEnum):
    """Whether the pages of a domain go through a browser (R4)."""

    AUTO = "auto"
    """Those that look as if their scripts made them, as long as that proves true."""
    ALWAYS = "always"
    NEVER = "never"


class Sign(StrEnum):
    """What says of a page that its scripts make it (J1)."""

    NONE = ""
    SHELL = "shell"
    """Hardly any text in a lot of HTML."""
    MARK = "mark"
    """A known framework has left its mark."""


@dataclass(frozen=True, slots=True)
class Record:
    """How pages of one class have fared in a browser: those with a sign, or those without."""

    tried: int = 0
    gained: int = 0
    """Of those, the ones that a browser made more of."""
    misses: int = 0
    """Of those, the ones in a row, up to now, that it made nothing more of."""
    passed: int = 0
    """Pages since the last try that were let go without one."""


@dataclass(frozen=True, slots=True)
class SiteRendering:
    """What is known of one host."""

    signed: Record = Record()
    """Of pages that show a sign."""
    plain: Record = Record()
    """Of pages that show none, on a host whose others needed a browser."""
    awaited: bool = False
    """A page was put off because no browser had a place for it: the next one takes its place first."""
    others: tuple[tuple[str, int], ...] = ()
    """Other hosts that its pages waited for, and how often in a row that brought nothing, or was not done any more."""


class PartKind(StrEnum):
    """What a page wants a request for, as browsers tell it."""

    DOCUMENT = "document"
    SCRIPT = "script"
    DATA = "data"
    """By XMLHttpRequest or fetch()."""
    OTHER = "other"
    """Pictures, fonts, style sheets, media, sockets: nothing that the text of a page depends on."""


@noun
class Wanted:
    """A request that a page in a browser wants to be made."""

    url: str
    kind: PartKind
    method: str = "GET"


@noun
class Supplied:
    """What a page is given for it: an answer from the wire, or from the cache."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@noun
class Withheld:
    """A request that is not made."""

    reason: str
    """Machine-readable: ``kind``, ``method``, ``host``, ``robots``, ``no_rules``, ``budget``, ``address``, ..."""


@noun
class RenderOrder:
    """A page to be shown to a browser: the answer as it came from the wire."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    user_agent: str = ""
    """What the browser is to call itself, to the page's scripts too; empty for the crawl's own."""


@noun
class Rendered:
    """What a browser made of a page."""

    html: bytes
    """The document as its scripts left it, in UTF-8."""
    settled: bool = True
    """Whether the page came to rest; not, where its time was up."""
    targets: tuple[str, ...] = ()
    """Where its scripts wanted to take the visitor: followed as links are."""


@noun
class RenderFailed:
    """There is nothing: the browser crashed, hung or could not be started."""

    reason: str
    """Machine-readable: ``crash``, ``hang``, ``page``, ``stuck``, ``start``, ``size``; of borrowed ones also others."""
    detail: str = ""

    @property
    def worth_another(self) -> bool:
        """Whether another browser may do better."""
        return self.reason in {"crash", "hang", "page"}


@noun
class RenderFigures:
    """The pool at this moment."""

    browsers: int = 0
    at_work: int = 0
    memory_bytes: int = 0
    """Of all browsers, as last measured."""
    started: int = 0
    crashed: int = 0
    """Ended by themselves."""
    killed: int = 0
    """Ended by us: over their memory, or stuck."""
    recycled: int = 0
