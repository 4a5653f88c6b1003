"""How a link is written: the same place in every spelling that the web has for it.

Each manner takes a place that is known and writes it so that a browser would go exactly there (or, where the manner
says so, to a spelling that the server redirects). Nothing here is parsed back: the model knows where its links lead.

Links to forbidden, excluded and extension-bearing pages keep to manners that leave path and query alone: a rule such as
``/*.print$`` does not forbid ``/a.print?utm_source=x``, and then the truth would hang on the spelling.
"""

from __future__ import annotations

from html import escape
from urllib.parse import unquote

from .atlas import Atlas, Spot
from .hosts import Host
from .links import Link
from .roles import Role

_KEPT_AS_IS = frozenset({Role.FORBIDDEN, Role.EXCLUDED, Role.PDF, Role.PNG})
_HARMLESS_MANNERS = 10
_ALL_MANNERS = 18


class Speller:
    """Writes the links of one page.

    Relative to `base_path` where the manner is a relative one; without it no link depends on where the page lies.
    """

    def __init__(self, atlas: Atlas, source: Host, base_path: str = "", *, absolute: bool = False) -> None:
        self._atlas = atlas
        self._source = source
        self._climb = base_path and ("../" * (base_path.count("/") - 1) or "./")
        self._absolute = absolute
        self._messy_from = 1000 - round(1000 * atlas.hosts.spec.wire.messy_links)

    def href(self, link: Link) -> str:
        """The value of an href attribute, escaped for HTML."""
        spot = link.spot
        target = self._atlas.target(spot)
        host = self._source if spot.host == self._source.number else self._atlas.hosts[spot.host]
        role = Role.ARTICLE if spot.page < host.articles else self._atlas.role(host, spot.page)
        if role is Role.CLEANED:
            target = f"{target}?utm_source=letter"
        elif not self._absolute and link.bits % 1000 >= self._messy_from:
            return self._messy(spot, target, role, link.bits >> 10)
        if self._absolute or host is not self._source:
            target = self._atlas.origin(host) + target
        return escape(target) if "&" in target else target

    def _messy(self, spot: Spot, target: str, role: Role, bits: int) -> str:
        manners = _HARMLESS_MANNERS if role in _KEPT_AS_IS else _ALL_MANNERS
        manner = bits % manners
        if manner >= _HARMLESS_MANNERS:
            return self._reworded(spot, target, manner, bits >> 8)
        return self._harmless(spot, target, manner)

    def _harmless(self, spot: Spot, target: str, manner: int) -> str:  # noqa: PLR0911 - one return a manner
        """Manners that change neither path nor query once the link is resolved."""
        host = self._atlas.hosts[spot.host]
        origin = self._atlas.origin(host)
        here = spot.host == self._source.number
        written = escape(target)
        match manner:
            case 0:
                return f"{origin.upper()}{written}"
            case 1:
                return f"{origin.removeprefix('http:')}{written}"
            case 2:
                return f"{origin}{written}#part-{spot.page}"
            case 3:
                return f"  {origin}{written}\n"
            case 4:
                return f"{origin.replace('//', '//reader@')}{written}"
            case 5:
                port = ":80" if self._atlas.hosts.spec.port == 80 else ""
                return f"{origin}{port}{written}"
            case 6 | 7 if here and self._climb:
                return self._climb + written[1:]
            case 8:
                return f"{'' if here else origin}/nowhere/../.{written}"
            case 9:
                half = len(origin) // 2
                return f"{origin[:half]}\n{origin[half:]}{written.replace('/', '&#x2F;')}"
            case _:
                return origin.replace("//", r"\\") + written

    def _reworded(self, spot: Spot, target: str, manner: int, bits: int) -> str:  # noqa: PLR0911 - one return a manner
        """Manners that ask for another spelling of the same page."""
        origin = "" if spot.host == self._source.number else self._atlas.origin(self._atlas.hosts[spot.host])
        path, mark, query = target.partition("?")
        glue = "&amp;" if mark else "?"
        written = escape(target)
        match manner:
            case 10 | 11:
                return f"{origin}{written}{glue}utm_source=list&amp;utm_medium={bits % 7}"
            case 12:
                return f"{origin}{written}{glue}gclid=a{bits % 9973}b"
            case 13 if not mark:
                return f"{origin}{path}?"
            case 13:
                return f"{origin}{path}?{'&amp;'.join(reversed(query.split('&')))}"
            case 14 if "%" in path:
                return f"{origin}{unquote(path)}"
            case 15 if "%" in path:
                return f"{origin}{path.lower()}"
            case 14 | 15 if path[1:2].isascii() and path[1:2].isalpha():
                return f"{origin}/%{ord(path[1]):02x}{escape(target[2:])}"
            case 16 if path.endswith("/") and path != "/":
                return f"{origin}{path[:-1]}"
            case _:
                return f"{origin}{target}"
