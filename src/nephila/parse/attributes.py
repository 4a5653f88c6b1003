"""The small languages inside attribute and header values that hold links: srcset, refresh, the Link header.

Each is read as its standard says (HTML standard 4.8.4.2.1 and 4.2.5.3, RFC 8288), by regular expressions that never go
back over what they have read. White space is that of ASCII, as the standard has it: a no-break space is part of a URL.

What must stay true: any text is read, in time linear in its length; what makes no sense gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_WS = r"\t\n\f\r "
_CANDIDATE = re.compile(rf"[{_WS},]*+([^{_WS},][^{_WS}]*+)((?:[^,(]++|\([^)]*+\)?)*+)")

_REFRESH = re.compile(
    rf"""[{_WS}]*+ (?:\d++|(?=\.)) [\d.]*+ (?=[;,{_WS}]) [{_WS}]*+ [;,]?+ [{_WS}]*+
        (?: url [{_WS}]*+ = [{_WS}]*+ | (?! url [{_WS}]*+ = ) ) (?: "([^"]*+) | '([^']*+) | (.++) )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)
"""No possessive group for `url=`: before Python 3.11.5 one that fails halfway has eaten what it tried (gh-106052)."""

_HEADER_LINK = re.compile(r'<([^<>]*+)>([^,"]*+(?:"(?:[^"\\]++|\\.)*+"?[^,"]*+)*+)', re.DOTALL)
_HEADER_PARAMETER = re.compile(r';\s*+([^\s;=,"]++)\s*+=\s*+(?:"((?:[^"\\]++|\\.)*+)"?|([^\s;,"]*+))', re.DOTALL)

_ENDS = "".join(map(chr, range(0x21)))
"""What a URL is stripped of at its ends (URL standard 4.4)."""

_LONGEST_VALUE = 65_536
"""Characters of one value that are read; our own choice."""


class HeaderLink(NamedTuple):
    """One link of a Link header."""

    href: str
    rel: str
    """In lower case."""
    hreflang: str


def srcset_urls(value: str) -> list[str]:
    """The URLs of a srcset attribute, as written."""
    urls: list[str] = []
    position = 0
    value = value[:_LONGEST_VALUE]
    while (match := _CANDIDATE.match(value, position)) is not None:
        url = match[1].rstrip(",")
        urls.append(url)
        # A comma at the end of the URL itself ends the candidate: there is no descriptor then.
        position = match.end(1) if url != match[1] else match.end()
    return urls


def refresh_url(content: str) -> str | None:
    """Where a refresh leads, as written; None when it only reloads the page or makes no sense."""
    match = _REFRESH.match(content[:_LONGEST_VALUE])
    if match is None:
        return None
    return (match[1] or match[2] or match[3] or "").strip(_ENDS) or None


def header_links(value: str) -> Iterator[HeaderLink]:
    """The links of one Link header."""
    for match in _HEADER_LINK.finditer(value[:_LONGEST_VALUE]):
        parameters: dict[str, str] = {}
        for name, quoted, plain in _HEADER_PARAMETER.findall(match[2]):
            parameters.setdefault(name.lower(), quoted or plain)
        yield HeaderLink(match[1].strip(), parameters.get("rel", "").lower(), parameters.get("hreflang", ""))
