"""The noun that every source yields, and what a source is.

A source does not judge: it finds pieces of text that are meant to be seeds, and says where each stood, so that a
refusal can point at the very line. Sources are read once, in order, and never hold more than a few lines in memory: a
list of ten million lines costs no more than a list of ten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from nephila.model.task import Level

SEED_LEVEL = Level.HIGH
"""What somebody asked for goes before what was merely found; IMMEDIATE stays free for what cannot wait."""


class Seed(NamedTuple):
    """A piece of text that is meant to be a URL or a domain. A tuple, because there may be ten million."""

    text: str
    """As it was written, white space around it taken off."""
    origin: str
    """Where it stood, for people: ``argument``, ``file list.txt:12``, ``standard input:3``."""
    level: Level = SEED_LEVEL
    lists: bool = False
    """It is a document whose entries are the seeds: a sitemap, a feed, an outline, a list of URLs."""


class SeedSource(Protocol):
    """Anything that yields seeds. May raise `UsageError` when what it was pointed at cannot be read."""

    def __iter__(self) -> Iterator[Seed]:
        """The seeds, in the order in which they were given; streaming."""
