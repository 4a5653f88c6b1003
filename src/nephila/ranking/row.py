"""What the graph keeps of one capture: what it is, and which names its links have."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """What a capture says of its URL. Another value is another format of the files."""

    PAGE = 1
    """It is a page, with links."""
    MOVED = 2
    """It redirects to its only link, and is no page."""
    GONE = 3
    """There is no page, or it is none that is read: a missing one, a list of URLs."""


class Row(NamedTuple):
    """One capture. A tuple: there are millions."""

    name: int
    """Of the URL: see `words`."""
    rest: int
    """The other half of its fingerprint."""
    at: int
    """When it was asked for, UTC milliseconds: the newest counts."""
    kind: Kind
    domain: int
    """The name of its registrable domain."""
    segment: int
    """The name of the file of the archive that holds it."""
    offset: int
    """And where."""
    canonical: int
    """The name of the page that it says it stands for; 0 for none, or for itself."""
    links: Sequence[int]
    """Names of the URLs that it votes for, each once, none its own."""
    foreign: Sequence[int]
    """Names of the other domains that these lie in, each once."""
