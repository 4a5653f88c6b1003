"""The key of everything (U3): 128 bits of a URL's normal form.

xxh3 is no cryptographic hash, so it is seeded with a secret of the crawl: a site that wants its URLs to collide with
another's cannot try out which do. The same secret must be used for the whole life of a crawl.
"""

from __future__ import annotations

from xxhash import xxh3_128_digest

from .address import Fingerprint

SECRET_BITS = 64
"""What xxh3 takes as its seed."""


def fingerprint(key: str, secret: int) -> Fingerprint:
    """16 bytes that name a normal form within the crawl that `secret` belongs to."""
    return Fingerprint(xxh3_128_digest(key.encode(), secret))
