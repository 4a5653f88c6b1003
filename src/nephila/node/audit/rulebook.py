"""Which robots.txt was in force for an origin at which time (P1), as an audit finds it out from the answers on record.

Texts are kept once each in a file beside the sorting, and read again when they are needed: a crawl of a million sites
has a gigabyte of them. What is remembered of an origin is which text holds, since when, and whether it has been
failing since.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from nephila.model.terms import Terms

from .request import Came, Request
from .second_reading import Reading, read_robots

PARSED = 1024
"""Readings that are kept at hand; most sites have one of a few texts."""


class RuleBook:
    """Texts of robots.txt by their SHA-256. A context manager: leaving it closes the file."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("wb+")
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._parsed: OrderedDict[tuple[str, str], Reading] = OrderedDict()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._stream.close()

    def keep(self, text: bytes) -> str:
        """Keep a text; its name."""
        name = sha256(text).hexdigest()
        if name not in self._places:
            self._stream.seek(self._end)
            self._stream.write(text)
            self._places[name] = (self._end, len(text))
            self._end += len(text)
        return name

    def reading(self, name: str, agent: str) -> Reading:
        """What a text says to an agent, by its product token."""
        key = (name, agent.lower())
        known = self._parsed.get(key)
        if known is None:
            start, length = self._places[name]
            self._stream.seek(start)
            known = self._parsed[key] = read_robots(self._stream.read(length), agent)
            if len(self._parsed) > PARSED:
                self._parsed.popitem(last=False)
        else:
            self._parsed.move_to_end(key)
        return known


@dataclass(slots=True)
class Standing:
    """What holds for an origin."""

    came: Came
    """RULES, OPEN, LOST, or FAILING where nothing good was ever known."""
    rules: str = ""
    since_ms: int = 0
    """On the audit's timeline."""
    ended_at: int = 0
    """When it was read, by the wall clock: what pages name it by."""
    failing_since_ms: int | None = None
    failing_wall_at: int = 0
    """Since when it could not be had; None where the last answer was good."""


def after(standing: Standing | None, request: Request, end_ms: int, terms: Terms) -> Standing | None:
    """What holds for an origin after one more answer; None where nothing does yet."""
    match request.came:
        case Came.RULES | Came.OPEN | Came.LOST:
            return Standing(request.came, request.rules, end_ms, request.ended_at)
        case Came.FAILING:
            since, wall = end_ms, request.wall_at
            if standing is not None and standing.failing_since_ms is not None:
                since, wall = standing.failing_since_ms, standing.failing_wall_at
            failing_for = max(end_ms - since, request.wall_at - wall)
            given_up = failing_for >= terms.robots_give_up_ms
            keeps = standing is not None and standing.came in (Came.RULES, Came.LOST) and not given_up
            if standing is not None and keeps:
                return Standing(standing.came, standing.rules, standing.since_ms, standing.ended_at, since, wall)
            came = Came.OPEN if given_up or terms.robots_permissive else Came.FAILING
            return Standing(came, "", end_ms, request.ended_at, since, wall)
        case _:
            return standing
