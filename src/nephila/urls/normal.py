r"""One spelling for all spellings of a URL (U2): what is deduplicated, never what is fetched.

It works on the WHATWG serialisation, where half of the rules have already been applied: scheme and host in lower case
and IDNA, default port and dot segments gone; fragment and userinfo are cut off before it comes here. The rest, in
order:

1. Percent-encoding. What needs none is decoded: the unreserved characters (RFC 3986, 2.3), and those reserved ones
   that separate nothing where they stand (``! $ ( ) * , : @``, in a query ``/ ?`` too). What RFC 3986 does not allow
   to stand bare (``[ ] | ^ { } \``, a lone ``%``) is encoded, hexadecimal digits are in upper case. Separators keep
   their spelling: ``%2F`` is no ``/`` in a path, ``%26`` no ``&``, ``%2B`` no ``+``.
2. The query as the standard's urlencoded parser reads it: ``+`` is a space, ``a`` is ``a=``, empty pieces and an empty
   query are nothing.
3. Parameters sorted by name, repeats in their order.
4. Tracking and session parameters gone, session ids in the path too.
5. No trailing slash on a path other than the root's.

What must stay true: the normal form is itself a WHATWG serialisation, and its normal form is itself. That is why
session ids are left where taking them out would make a dot segment, and why a lone ``%`` is encoded (``%%37E`` would
become ``%7E`` and then ``~``). http and https, www and none, upper and lower case in paths, ``/index.html`` and ``/``
are different URLs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import ascii_letters, digits

from .tracking import SESSION_NAMES, SESSION_PREFIXES, TRACKING_NAMES, TRACKING_PREFIXES


@dataclass(frozen=True, slots=True)
class NormalRules:
    """Which rules apply; `overrides` gives a registrable domain rules of its own.

    The rules that are the WHATWG parser's (scheme, host, port, dot segments) and the cutting of fragment and userinfo
    have no switch: without them there is no URL to fetch.
    """

    tidy_percent: bool = True
    tidy_query: bool = True
    sort_query: bool = True
    drop_tracking: bool = True
    drop_sessions: bool = True
    drop_trailing_slash: bool = True
    extra_tracking: tuple[str, ...] = ()
    """Further parameter names to drop; a trailing ``*`` matches the rest. Upper and lower case are the same."""
    overrides: Mapping[str, NormalRules] = field(default_factory=dict, hash=False)
    """By registrable domain; the overrides of an override mean nothing."""


_HEX = digits + "abcdefABCDEF"
_BARE = frozenset(ascii_letters + digits + "-._~" + "!$()*,:@")
_ENCODED = "[]|^{}\\`'"
"""What the WHATWG serialisation may leave bare though RFC 3986 does not allow it; and ``'``, which it encodes in
queries but not in paths."""


_ENCODE = {ord(char): f"%{ord(char):02X}" for char in _ENCODED}
_RARE = (*_ENCODED, ";", "(")


def holds_rare(text: str) -> bool:
    """Whether there is work for the normal form that no ``?``, ``%`` or trailing slash announces.

    One look at all URLs of a page at once is far cheaper than one look at each.
    """
    for char in _RARE:  # noqa: SIM110 - a third of the time that any() and a generator take
        if char in text:
            return True
    return False


def _spellings(bare: frozenset[str]) -> dict[str, str]:
    """What each pair of hexadecimal digits after a ``%`` becomes."""
    pairs = {high + low: chr(int(high + low, 16)) for high in _HEX for low in _HEX}
    return {pair: char if char in bare else "%" + pair.upper() for pair, char in pairs.items()}


_IN_PATH = _spellings(_BARE)
_IN_QUERY = _spellings(_BARE | {"/", "?"})


def _respelled(text: str, spellings: dict[str, str]) -> str:
    """The text with every percent-encoding in its one spelling; a ``%`` that begins none is encoded."""
    first, *rest = text.split("%")
    parts = [first]
    for piece in rest:
        spelling = spellings.get(piece[:2])
        parts += ("%25", piece) if spelling is None else (spelling, piece[2:])
    return "".join(parts)


_SESSION_IN_PATH = re.compile(
    ";(?:" + "|".join(map(re.escape, sorted(SESSION_NAMES))) + r")=[^/;]*"  # a path parameter
    r"|/\((?:[A-Z]\([0-9A-Za-z]+\))+\)(?=/|$)",  # ASP.NET without cookies: a segment such as (S(lit3py55t21z5v55))
    re.IGNORECASE,
)
_DOT_SEGMENT = re.compile(r"/\.\.?(?:/|$)")

_MEMO_NAMES = 10_000
"""Parameter names remembered as kept or dropped: a crawl meets far fewer, a hostile site may mint any number."""


class NormalForm:
    """The normal form under one set of rules (overrides are the caller's to look up)."""

    def __init__(self, rules: NormalRules) -> None:
        self._rules = rules
        self._drop_slash = rules.drop_trailing_slash
        self._drops = _DroppedNames(rules)

    def of(self, url: str, path_at: int, rare: bool = True) -> str:
        """The normal form of an http(s) serialisation without fragment and userinfo whose path begins at `path_at`.

        `rare` may be False where the caller knows that `holds_rare` is not true of the URL.
        """
        if "?" in url:
            query_at = url.index("?")
            query = self._query(url[query_at + 1 :], rare)
            url = url[:query_at]
        else:
            query = ""
        if rare or "%" in url or url[-2:] == "//":
            url = url[:path_at] + self._path(url[path_at:], rare)
        elif url[-1] == "/" and self._drop_slash and len(url) > path_at + 1:
            url = url[:-1]
        return url + query

    def _path(self, path: str, rare: bool) -> str:
        rules = self._rules
        if rules.tidy_percent:
            if rare:
                path = path.translate(_ENCODE)
            if "%" in path:
                path = _respelled(path, _IN_PATH)
        # Looked for whatever `rare` says: the parenthesis may have been percent-encoded.
        if (";" in path or "/(" in path) and rules.drop_sessions:
            path = _without_sessions(path)
        if path[-1] == "/" and self._drop_slash:
            path = path.rstrip("/") or "/"
        return path

    def _query(self, query: str, rare: bool) -> str:
        """The query with its question mark, or nothing."""
        rules = self._rules
        if rules.tidy_percent:
            if rare:
                query = query.translate(_ENCODE)
            if "%" in query:
                query = _respelled(query, _IN_QUERY)
        if rules.tidy_query:
            query = query.replace("+", "%20")
        parameters = query.split("&")
        if rules.tidy_query and ("=&" in query or query[-1:] == "=" or "" in parameters):
            parameters = [_without_blank(parameter) for parameter in parameters if parameter]
        drops = self._drops
        kept = [parameter for parameter in parameters if not drops[parameter.partition("=")[0]]]
        if len(kept) > 1 and rules.sort_query:
            kept.sort(key=_name)
        query = "&".join(kept)
        return "?" + query if query else ""


class _DroppedNames(dict[str, bool]):
    """Parameter names and whether they are dropped; an unknown one is judged and remembered."""

    def __init__(self, rules: NormalRules) -> None:
        super().__init__()
        names: set[str] = set()
        prefixes: list[str] = []
        if rules.drop_tracking:
            names |= TRACKING_NAMES
            prefixes += TRACKING_PREFIXES
        if rules.drop_sessions:
            names |= SESSION_NAMES
            prefixes += SESSION_PREFIXES
        for pattern in map(str.lower, rules.extra_tracking):
            if pattern.endswith("*"):
                prefixes.append(pattern[:-1])
            else:
                names.add(pattern)
        self._names = frozenset(names)
        self._prefixes = tuple(prefixes)

    def __missing__(self, name: str) -> bool:
        # `amp;` is left over where a page's ampersands were escaped twice.
        bare = name.lower().removeprefix("amp;")
        drop = bare in self._names or bare.startswith(self._prefixes)
        if len(self) >= _MEMO_NAMES:
            self.clear()
        self[name] = drop
        return drop


def _name(parameter: str) -> str:
    return parameter.partition("=")[0]


def _without_blank(parameter: str) -> str:
    """``a=`` as ``a``; a lone ``=`` is a parameter without a name and stays."""
    if parameter[-1] == "=" and 0 < parameter.find("=") == len(parameter) - 1:
        return parameter[:-1]
    return parameter


def _without_sessions(path: str) -> str:
    """Again and again, because one that is gone may lay another one bare: ``/(S(a));jsessionid=b``."""
    while (bare := _SESSION_IN_PATH.sub("", path) or "/") != path and not _DOT_SEGMENT.search(bare):
        path = bare
    return path
