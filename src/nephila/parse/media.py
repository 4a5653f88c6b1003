"""Reading a Content-Type header as browsers do, however badly it is written.

Two algorithms: *parse a MIME type* (WHATWG MIME Sniffing, section 4.4) and *extract a MIME type* (Fetch, section
2.2.2), which takes the last usable of several comma separated values and lets it inherit the charset of its like before
it.

What must stay true: any text is read without an exception and in time linear in its length; what is unusable is None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

_SPACE = "\t\n\r "
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_PARAMETER = re.compile(r';[\t\n\r ]*+([^;=]*+)(?:=(?:"((?:[^"\\]++|\\.)*+\\?)"?[^;]*+|([^;]*+)))?', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LIST_MEMBER = re.compile(r'((?:[^",]++|"(?:[^"\\]++|\\.)*+\\?"?)*+)(?:,|\Z)', re.DOTALL)

_LONGEST_HEADER = 4096
"""Characters of a Content-Type that are looked at; our own choice, real ones have under a hundred."""


@dataclass(frozen=True, slots=True)
class MediaType:
    """A content type that makes sense."""

    essence: str
    """Type and subtype in lower case, e.g. ``text/html``."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case; of repeated ones the first counts."""


def _parameters(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _PARAMETER.finditer(text):
        name, quoted, plain = match[1].lower(), match[2], (match[3] or "").rstrip(_SPACE)
        if quoted is None and not plain:
            continue
        value = plain if quoted is None else _ESCAPE.sub(r"\1", quoted)
        if name not in found and _TOKEN.fullmatch(name) and _VALUE.fullmatch(value):
            found[name] = value
    return found


def parse_media_type(value: str) -> MediaType | None:
    """One content type, or None when its type or subtype is none."""
    kind, _, rest = value.strip(_SPACE).partition("/")
    subtype, semicolon, parameters = rest.partition(";")
    subtype = subtype.rstrip(_SPACE)
    if not _TOKEN.fullmatch(kind) or not _TOKEN.fullmatch(subtype):
        return None
    return MediaType(f"{kind}/{subtype}".lower(), _parameters(semicolon + parameters))


@lru_cache(maxsize=256)  # a pure function of a text of which a crawl sees a dozen
def media_type_in(header: str) -> MediaType | None:
    """What a Content-Type header says, several given joined by a comma; None when it says nothing usable."""
    found: MediaType | None = None
    for member in _LIST_MEMBER.findall(header[:_LONGEST_HEADER]):
        parsed = parse_media_type(member)
        if parsed is None or parsed.essence == "*/*":
            continue
        inherits = found is not None and found.essence == parsed.essence and "charset" not in parsed.parameters
        if inherits and found is not None and "charset" in found.parameters:
            parsed = MediaType(parsed.essence, {**parsed.parameters, "charset": found.parameters["charset"]})
        found = parsed
    return found
