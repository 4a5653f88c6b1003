"""Does a Bloom filter in front of the exact seen-set pay (D1)? Asks both, for known and for new URLs, in one run.

The exact set is LMDB with the frontier's own keys (host first). The filter is rbloom (Rust), 10 bits and 7 hashes a
URL, fed with the fingerprints that exist anyway. Prints JSON: CPU time a look-up, the filter's measured rate of false
positives, and the whole cost of deciding on a page's links when half of them are new.

    python bench/seen.py [URLS]        (needs: pip install rbloom)
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import lmdb
from rbloom import Bloom
from xxhash import xxh3_64_digest, xxh3_128_digest

ROUNDS = 5
ASKED = 200_000


def key(number: int) -> bytes:
    """A URL's key as the frontier makes it: 9 bytes of host (500 URLs each), 16 of fingerprint."""
    host = (number // 500).to_bytes(8, "big")
    return host[-1:] + xxh3_64_digest(host) + xxh3_128_digest(number.to_bytes(8, "big"))


def as_number(fingerprint: bytes) -> int:
    """The filter takes 128-bit integers for hashes."""
    return int.from_bytes(fingerprint[-16:], "little", signed=True)


def cpu_us(ask: Callable[[Sequence[bytes]], int], keys: Sequence[bytes]) -> float:
    """The least CPU time of several rounds, a key."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        ask(keys)
        best = min(best, time.process_time() - started)
    return best * 1e6 / len(keys)


def main(urls: int) -> None:
    """Build both, ask both, print."""
    known = [key(number) for number in range(urls)]
    new = [key(number) for number in range(urls, urls + ASKED)]
    bloom = Bloom(urls, 0.01, as_number)
    bloom.update(known)
    with tempfile.TemporaryDirectory() as directory:
        env = lmdb.open(directory, map_size=1 << 36, sync=False)
        with env.begin(write=True) as txn:
            for one in sorted(known):
                txn.put(one, b"x" * 90, append=True)
        step = max(1, urls // ASKED)
        asked = known[::step][:ASKED]
        with env.begin() as txn:

            def exact(keys: Sequence[bytes]) -> int:
                get = txn.get
                return sum(get(one) is not None for one in keys)

            def filtered(keys: Sequence[bytes]) -> int:
                get = txn.get
                return sum(one in bloom and get(one) is not None for one in keys)

            half = [one for pair in zip(asked, new, strict=False) for one in pair]
            result = {
                "urls": urls,
                "filter_bytes": bloom.size_in_bits // 8,
                "false_positive_rate": sum(one in bloom for one in new) / len(new),
                "exact_us": {"known": cpu_us(exact, asked), "new": cpu_us(exact, new), "half": cpu_us(exact, half)},
                "filter_us": {
                    "known": cpu_us(filtered, asked),
                    "new": cpu_us(filtered, new),
                    "half": cpu_us(filtered, half),
                },
            }
        env.close()
    result["filter_over_exact_half_new"] = result["filter_us"]["half"] / result["exact_us"]["half"]
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
