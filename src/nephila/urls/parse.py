"""Text to URL the way browsers do it (U1): the WHATWG URL standard.

A link means what a browser makes of it, so no step here is our own: white space and tabs inside a link, backslashes,
missing slashes, IDNA, IPv4 in octal, dot segments are all the standard's business. A page's base is parsed once and all
its links are joined to that (`Base`), because parsing the base again for every link would double the cost.

Two bindings of the same library do the work. can_ada is three times faster and carries an older release of it; ada_url
follows the standard to the letter. So can_ada is asked first, and ada_url decides where the older release is known to
lag: links that it refuses (mostly rightly), links that hold one of `_LAGGING`, and answers that look `_doubtful`.

What must stay true: the answer is the standard's serialisation, fragment and userinfo included, or None where the
standard says failure. Nothing here raises for any text, lone surrogates and NULs included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress

import ada_url
import can_ada

from nephila.native import AVAILABLE, native

from .address import origin_of

_LAGGING = ("^", "\u1e9e")
"""Encoded in paths since 2024; the capital sharp s, which IDNA maps to another letter since 2023."""
_CARET, _SHARP_S = _LAGGING


def _scalar_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD, as browsers hand it to their URL parser (a USVString)."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _exact(base: str | None, href: str) -> str | None:
    """The answer of ada_url."""
    href = _scalar_text(href)
    try:
        return ada_url.normalize_url(href) if base is None else ada_url.join_url(base, href)
    except ValueError:
        return None


def _lags(text: str) -> bool:
    return _CARET in text or _SHARP_S in text


_DOTS_LEFT = re.compile(r"[^?#]*?/\.\.?(?:[/?#]|$)")


def _leaves_dots(url: str) -> bool:
    """Whether there is a dot segment left in a path: the older release looks at the first ``/.`` only."""
    return "/." in url and _DOTS_LEFT.match(url) is not None


def _doubtful(url: str) -> bool:
    """Whether the older release may have got it wrong: dot segments, and names that its IDNA lets pass."""
    return "xn--" in url or _leaves_dots(url)


ARBITRATED = 5_000
"""Links of one page that are put to the slower parser, of those where the two may differ or the faster one fails: a
page with more of them is no honest one, and what the faster one says of the rest is good enough."""


class Base:
    """A document's base URL, parsed once, to which many links are joined."""

    __slots__ = ("_arbitrated", "_found", "_looked", "spell", "url")

    def __init__(self, url: str, parsed: can_ada.URL | None = None) -> None:
        """Takes a serialisation, and what it was parsed to if that is at hand; other text goes through `parse`."""
        self.url = url
        self.spell: Callable[[str], str] | None = None
        """What links beyond ASCII go through before they are joined: documents that are not UTF-8 have such a step."""
        self._arbitrated = 0
        self._found = parsed
        self._looked = parsed is not None

    @property
    def _parsed(self) -> can_ada.URL | None:
        """What it is parsed to, when a link is met that is not joined in C: many pages have none."""
        if not self._looked:
            self._looked = True
            with suppress(ValueError):  # a host that only the newer release takes
                self._found = can_ada.parse(self.url)
        return self._found

    @classmethod
    def parse(cls, url: str) -> Base | None:
        """The base that an absolute URL makes, or None when it cannot be parsed."""
        if AVAILABLE and native.is_normal(url):  # what parsing would leave as it is
            return cls(url)
        if not _lags(url):
            try:
                parsed = can_ada.parse(url)
            except (ValueError, TypeError):
                parsed = None
            # As nearly every page's own URL is: parsed once, not twice.
            if parsed is not None and parsed.href == url and not _doubtful(url):
                return cls(url, parsed)
        whole = resolve(None, url)
        return None if whole is None else cls(whole)

    def join(self, href: str) -> str | None:
        """The absolute URL of one link, or None when it cannot be parsed."""
        if self.spell is not None and not href.isascii():
            href = self.spell(href)
        parsed = self._parsed
        if parsed is None or _lags(href):
            return self._arbitrate(href)
        try:
            url = (parsed + href).href
        except (ValueError, TypeError):  # TypeError: text that has no UTF-8 form
            return self._arbitrate(href)
        return self._settled(href, url)

    def _settled(self, href: str, url: str) -> str | None:
        """The answer of the faster parser where nothing speaks against it; the base's own host was judged before."""
        if _leaves_dots(url) or ("xn--" in url and not url.startswith(f"{origin_of(self.url)}/")):
            return self._arbitrate(href)
        return url

    def _arbitrate(self, href: str) -> str | None:
        """What the slower parser says, as long as it is not asked too often."""
        self._arbitrated += 1
        if self._arbitrated <= ARBITRATED:
            return _exact(self.url, href)
        try:
            url = None if self._parsed is None else (self._parsed + href).href
        except (ValueError, TypeError):
            return None
        return None if url is None or _leaves_dots(url) else url

    def join_all(self, hrefs: Iterable[str]) -> list[str | None]:
        """The absolute URLs of many links, each in the place of its link."""
        hrefs = list(hrefs)
        parsed = self._parsed
        if parsed is None or self.spell is not None or _lags("".join(hrefs)):
            return [self.join(href) for href in hrefs]
        joined: list[str | None] = []
        for href in hrefs:
            # `join` written out: the call and the look for lagging characters would cost a third of the work.
            try:
                url = (parsed + href).href
            except (ValueError, TypeError):
                joined.append(self._arbitrate(href))
            else:
                joined.append(self._settled(href, url) if "/." in url or "xn--" in url else url)
        return joined


def resolve(base: str | None, href: str) -> str | None:
    """The absolute URL that a browser makes of `href` on a page at `base`; None when base or link cannot be parsed."""
    if base is not None:
        parsed_base = Base.parse(base)
        return None if parsed_base is None else parsed_base.join(href)
    if _lags(href):
        return _exact(None, href)
    try:
        url = can_ada.parse(href).href
    except (ValueError, TypeError):
        return _exact(None, href)
    return _exact(None, href) if _doubtful(url) else url


def resolve_location(base: str, location: str) -> str | None:
    """The target of a Location header whose octets were read as latin-1; UTF-8 is read as that, as browsers do."""
    with suppress(UnicodeError):  # then it is latin-1 indeed
        location = location.encode("latin-1").decode("utf-8")
    return resolve(base, location)
