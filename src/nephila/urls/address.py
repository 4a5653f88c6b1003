"""The noun that a URL becomes once it has been read: a spelling to fetch and a key to know it by."""

from __future__ import annotations

from typing import NamedTuple, NewType

Fingerprint = NewType("Fingerprint", bytes)
"""16 bytes: xxh3-128 of the normal form, seeded with the crawl's secret (U3)."""


class Address(NamedTuple):
    """A URL in its two spellings. A tuple, because a page brings eighty of them."""

    url: str
    """What is fetched: the WHATWG serialisation of what the site wrote, without fragment and userinfo."""
    host: str
    """The politeness key: ASCII host name or address literal, no scheme, port or trailing dot."""
    key: str
    """The normal form (U2): what is deduplicated."""
    fingerprint: Fingerprint


LONGEST_HOST = 253
LONGEST_LABEL = 63
"""Characters of a name and of its parts (RFC 1035, 2.3.4). Browsers take longer ones, and never find anybody."""


def is_possible(host: str) -> bool:
    """Whether a server can be called so: stores and engines count on names that are no longer."""
    if len(host) <= LONGEST_LABEL:
        return True
    return len(host) <= LONGEST_HOST and all(len(label) <= LONGEST_LABEL for label in host.split("."))


def origin_of(url: str) -> str:
    """Scheme, host and port of a serialised http(s) URL: what its robots.txt belongs to."""
    end = url.find("/", 8)
    return url if end < 0 else url[:end]


def host_of(url: str) -> str:
    """The politeness key of a serialised http(s) URL, or of an origin: without port, userinfo and trailing dot."""
    authority = origin_of(url).partition("://")[2].rpartition("@")[2]
    name = authority.partition("]")[0] + "]" if authority.startswith("[") else authority.partition(":")[0]
    return name.rstrip(".")
