"""Where things are: which shard keeps a domain, what its keys are called, and which shards a worker asks first.

A crawl has a fixed number of shards. The names of its keys hold the crawl and the shard in braces, so that a cluster
keeps a shard in one place, and several crawls live side by side (N7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from xxhash import xxh3_64_intdigest

from nephila.model.errors import UsageError
from nephila.urls import host_of, registrable_domain

DEFAULT_SHARDS = 256
MOST_SHARDS = 16384
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(crawl: str) -> str:
    """The name of a crawl, if it can be one."""
    if not _NAME.fullmatch(crawl):
        raise UsageError(
            f"{crawl!r} cannot be the name of a crawl", hint="letters, digits, dot, dash and underscore, at most 64"
        )
    return crawl


def crawl_key(crawl: str, what: str) -> str:
    """A key of the crawl as a whole."""
    return f"nephila:{{{crawl}}}:{what}"


def shard_key(crawl: str, shard: int) -> str:
    """What all keys of a shard begin with."""
    return f"nephila:{{{crawl}:{shard}}}"


class Shards:
    """The shards of one crawl."""

    def __init__(self, crawl: str, count: int) -> None:
        self.crawl, self.count = crawl, count
        self.keys = tuple(shard_key(crawl, shard) for shard in range(count))

    def of_domain(self, domain: str) -> int:
        """The shard of a registrable domain."""
        return xxh3_64_intdigest(domain.encode()) % self.count if self.count > 1 else 0

    def of_host(self, host: str) -> int:
        """The shard of a host."""
        return self.of_domain(domain_of(host)) if self.count > 1 else 0

    def of_token(self, token: int) -> int:
        """The shard that gave a lease."""
        return token % self.count

    def of_origin(self, origin: str) -> int:
        """The shard that keeps the rules of an origin."""
        return self.of_host(host_of(origin))

    def preferred(self, worker: str, workers: Iterable[str]) -> tuple[list[int], list[int]]:
        """The shards that fall to a worker among those alive, and the others (rendezvous hashing)."""
        mine: list[int] = []
        others: list[int] = []
        for shard, owner in enumerate(self.owners({worker, *workers})):
            (mine if owner == worker else others).append(shard)
        return mine, others

    def owners(self, workers: Iterable[str]) -> list[str]:
        """To whom each shard falls."""
        alive = sorted(workers)
        return [_chosen(shard, alive) for shard in range(self.count)]


def _chosen(shard: int, workers: Sequence[str]) -> str:
    return max(workers, key=lambda one: xxh3_64_intdigest(f"{shard} {one}".encode()))


@lru_cache(maxsize=65536)  # every link of a page asks
def domain_of(host: str) -> str:
    """The registrable domain of a host."""
    return registrable_domain(host)
