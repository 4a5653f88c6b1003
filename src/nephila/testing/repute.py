"""Grades of domains that a test decides on."""

from __future__ import annotations

from collections.abc import Mapping

from nephila.urls import registrable_domain


class GivenRepute:
    """Implements `interfaces.repute.Repute`: `turn` chooses which grades hold; at 0 there are none."""

    def __init__(self, *turns: Mapping[str, int], turn: int = 1) -> None:
        self._turns: tuple[Mapping[str, int], ...] = ({}, *turns)
        self.turn = turn

    def look(self) -> bool:
        """As the interface."""
        return self.turn % len(self._turns) > 0

    def grade_of(self, host: str) -> int | None:
        """As the interface."""
        return self._turns[self.turn % len(self._turns)].get(registrable_domain(host))
