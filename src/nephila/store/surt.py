"""The sort-friendly key of a URL, as CDXJ indexes use it: `com,example)/path?a=1&b=2`.

Replay tools look a page up under this key, so ours must equal theirs byte for byte, oddities included; the rules are
those of the Internet Archive's canonicaliser, which cdxj-indexer and pywb apply, and a test compares the two on
thousands of URLs. In short: the host reversed, without `www`, port kept unless it is the scheme's own; path and query
unescaped until nothing changes and escaped once, in lower case; dot segments and empty segments gone; session ids
gone; parameters sorted.

This key is for finding captures only. What is *deduplicated* is the normal form of `urls`, which is stricter.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

_PARTS = re.compile(rb"([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.IGNORECASE)
_WWW = re.compile(rb"www\d*\.")
_DEFAULT_PORTS = {b"http": b"80", b"https": b"443"}
_UNESCAPED = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""Printable ASCII that the key shows as it is; all else but letters and digits is percent-encoded."""

_SESSION_FOLDERS = (
    re.compile(rb"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", re.IGNORECASE),
    re.compile(rb"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)", re.IGNORECASE),
)
_SESSION_PARAMETERS = tuple(
    re.compile(rb"(.*)(?:" + pattern + rb")(?:&(.*))?", re.IGNORECASE)
    for pattern in (
        rb"jsessionid=[0-9a-z]{32}",
        rb"phpsessid=[0-9a-z]{32}",
        rb"sid=[0-9a-z]{32}",
        rb"aspsessionid[a-z]{8}=[a-z]{24}",
        rb"cfid=[^&]+&cftoken=[^&]+",
    )
)


_PLAIN = re.compile(r"(https?)://([a-z0-9.:-]+)((?:/[A-Za-z0-9_~-][A-Za-z0-9_.~,:=+!$&*@-]*)*/?)")
"""URLs to which none of the rules applies but lower case and the slash at the end: nearly all that have no query."""


def surt(url: str) -> str:
    """The key of a serialised http(s) URL. Anything else is its own key."""
    plain = _PLAIN.fullmatch(url)
    if plain is None:
        return surt_by_rules(url)
    scheme, authority, path = plain.groups()
    if path[-1:] == "/" and len(path) > 1:
        path = path[:-1]
    return f"{_plain_host(scheme, authority)}){path.lower() or '/'}"


@lru_cache(maxsize=4096)
def _plain_host(scheme: str, authority: str) -> str:
    return _host(scheme.encode(), authority.encode()).decode("ascii", "replace")


def surt_by_rules(url: str) -> str:
    """The same for any URL, by all rules there are."""
    parts = _PARTS.match(url.encode("utf-8", "replace"))
    if parts is None:
        return url
    scheme, authority, path, query = parts.groups()
    key = _host(scheme.lower(), authority) + b")" + _path(path)
    if query:
        key += _query(query)
    return key.decode("ascii", "replace")


def _host(scheme: bytes, authority: bytes) -> bytes:
    name, port = authority.rpartition(b"@")[2].lower(), b""
    if name.startswith(b"["):
        name, _, rest = name[1:].partition(b"]")
        port = rest.removeprefix(b":")
    else:
        name, _, port = name.partition(b":")
    name = _escaped_once(_unescaped(name).replace(b"..", b".").strip(b".").lower())
    name = _WWW.sub(b"", name, count=1) if _WWW.match(name) else name
    key = b",".join(reversed(name.split(b".")))
    return key if not port or port == _DEFAULT_PORTS.get(scheme) else key + b":" + port


def _path(path: bytes) -> bytes:
    kept: list[bytes] = []
    segments = _unescaped(path).split(b"/")[1:]
    for segment in segments:
        if segment == b"..":
            if kept:
                kept.pop()
            else:
                kept.append(segment)
        elif segment != b".":
            kept.append(segment)
    folders = b"".join(segment + b"/" for segment in kept[:-1] if segment)
    clean = _escaped_once(b"/" + folders + (kept[-1] if kept else b"")).lower()
    for pattern in _SESSION_FOLDERS:
        if found := pattern.fullmatch(clean):
            clean = found[1] + found[2]
    return clean[:-1] if clean.endswith(b"/") and len(clean) > 1 else clean


def _query(query: bytes) -> bytes:
    clean = _escaped_once(_unescaped(query))
    for pattern in _SESSION_PARAMETERS:
        if found := pattern.fullmatch(clean):
            clean = found[1] + (found[2] or b"")
    clean = clean.lower()
    if len(clean) > 1:
        parameters = sorted(tuple(parameter.split(b"=", 1)) for parameter in clean.split(b"&"))
        clean = b"&".join(b"=".join(parameter) for parameter in parameters)
    return b"?" + clean if clean else b""


def _unescaped(text: bytes) -> bytes:
    """Percent-decoded until nothing changes any more."""
    while (plain := unquote_to_bytes(text)) != text:
        text = plain
    return text


def _escaped_once(text: bytes) -> bytes:
    return quote_from_bytes(text, safe=_UNESCAPED).encode("ascii")
