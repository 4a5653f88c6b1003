"""Aliases: URLs that are another spelling of a URL we know, by what a site itself has shown (D4, T3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .noun import noun
from .page import Page

EVERYWHERE = "*"
"""The scope of a rule that holds for all paths of a domain."""


class AliasKind(StrEnum):
    """What makes the difference that is none."""

    PARAMETER = "parameter"
    """A query parameter whose value changes and whose page does not."""
    HOST = "host"
    """An origin that answers every question with the same path of another origin."""


class AliasState(StrEnum):
    """How far a rule has come."""

    WATCHED = "watched"
    """Something speaks for it, or against it; it does nothing."""
    TRIED = "tried"
    """The values of a parameter make no difference; whether leaving it out does is being tried."""
    IN_FORCE = "in force"
    SUSPENDED = "suspended"
    """It was in force until something spoke against it; it may be learned again."""
    UNDONE = "undone"
    """Taken back by a person, for good."""


class Aliased(NamedTuple):
    """What the rules make of a URL."""

    url: str
    """The spelling to ask for instead; empty when no rule in force catches it."""
    detail: str
    """The rules that catch it and their evidence, for `why`."""
    also: str = ""
    """A spelling that is wanted beside it, to find out whether it can stand in for it."""


@dataclass(frozen=True, slots=True)
class AliasRule:
    """A rule with its evidence, as people are shown it. Instants are UTC ms."""

    id: str
    kind: AliasKind
    domain: str
    pattern: str
    """``/item/{n}?ref`` for a parameter of such paths, ``*?ref`` for one of all; the origin of a host that moved."""
    target: str
    """The origin that a host redirects to; empty for a parameter."""
    state: AliasState
    since: int
    """When that state began."""
    agreed: int
    """Comparisons that speak for it."""
    against: int
    hints: int
    """Of those that speak for it, canonical links and redirects: a site's own word, not a comparison."""
    places: int
    """Different pages (or paths) on which it was seen to hold."""
    caught: int
    """URLs that were admitted under another name because of it."""
    example: tuple[str, str]
    """Two URLs with the same page behind them."""
    counter_example: tuple[str, str]
    """The last two that were not alike; empty when there were none."""


@noun
class Sighting:
    """What one URL was found to be: what aliases are learned from."""

    url: str
    host: str
    domain: str
    at: int
    """UTC milliseconds."""
    page: Page | None = None
    """What was read, when it was a whole page; None for every other answer."""
    location: str = ""
    """Where it redirects to."""
