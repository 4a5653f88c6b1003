"""Where the trail of a worker lies in a store of objects: its event files, and its chain in stretches.

    PREFIX/trail/WORKER/events-000017.jsonl
    PREFIX/trail/WORKER/chain-000000000120-000000000181-9f...e4.jsonl

A stretch of a chain is called by the numbers of its first and last line and by the hash of the last: so whoever lists
the keys knows the heads of all chains, and nothing is written twice under different names. The archive itself lies
beside them, under the prefix (`place`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nephila.model.noun import noun

from .place import ArchivePlace
from .rotation import INDEX_SUFFIX, WARC_SUFFIXES

FOLDER = "trail"
_OWNER = r"(?P<owner>[0-9a-z_-]+)"
_STRETCH = re.compile(
    rf"{FOLDER}/{_OWNER}/chain-(?P<first>\d{{12,}})-(?P<last>\d{{12,}})-(?P<head>[0-9a-f]{{64}})\.jsonl"
)
_EVENTS = re.compile(rf"{FOLDER}/{_OWNER}/(?P<name>events-\d{{6,}}\.jsonl)")


@noun
class Stretch:
    """A stretch of a chain, as its key tells of it."""

    first: int
    last: int
    head: str
    """The hash of its last line."""
    key: str


def events_key(place: ArchivePlace, owner: str, name: str) -> str:
    """The key of an event file."""
    return place.key(f"{FOLDER}/{owner}/{name}")


def stretch_key(place: ArchivePlace, owner: str, first: int, last: int, head: str) -> str:
    """The key of a stretch of a chain."""
    return place.key(f"{FOLDER}/{owner}/chain-{first:012d}-{last:012d}-{head}.jsonl")


class TrailListing:
    """What of archives and trails lies under a prefix."""

    def __init__(self, place: ArchivePlace, keys: Iterable[str]) -> None:
        self.archives: dict[str, str] = {}
        """Keys of archive files and their indexes by name."""
        self.chains: dict[str, list[Stretch]] = {}
        """Of each worker, in the order of the lines."""
        self.events: dict[str, dict[str, str]] = {}
        """Of each worker, keys by name."""
        for name, key in place.names(keys).items():
            if name.endswith((*WARC_SUFFIXES, INDEX_SUFFIX)):
                self.archives[name] = key
            elif found := _STRETCH.fullmatch(name):
                stretch = Stretch(int(found["first"]), int(found["last"]), found["head"], key)
                self.chains.setdefault(found["owner"], []).append(stretch)
            elif found := _EVENTS.fullmatch(name):
                self.events.setdefault(found["owner"], {})[found["name"]] = key
        for stretches in self.chains.values():
            stretches.sort(key=lambda one: (one.first, one.last))

    @property
    def owners(self) -> list[str]:
        """Workers of whom there is anything."""
        return sorted(self.chains.keys() | self.events.keys())

    def heads(self) -> dict[str, tuple[int, str]]:
        """The last line of each chain: its number and hash."""
        return {owner: (stretches[-1].last, stretches[-1].head) for owner, stretches in self.chains.items()}
