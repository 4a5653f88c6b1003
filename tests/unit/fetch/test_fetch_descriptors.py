"""File descriptors."""

from __future__ import annotations

import resource

import pytest

from nephila.fetch.descriptors import raise_descriptor_limit


class Limits:
    """Stands in for the operating system's."""

    def __init__(self, soft: int, hard: int, *, forbidden: bool = False) -> None:
        self.now = (soft, hard)
        self._forbidden = forbidden

    def get(self, _: int) -> tuple[int, int]:
        return self.now

    def set(self, _: int, limits: tuple[int, int]) -> None:
        if self._forbidden:
            raise ValueError("not allowed")
        self.now = limits


@pytest.mark.parametrize(
    ("limits", "wanted", "possible", "soft"),
    [
        (Limits(1024, 1_000_000), 256, 256, 1024),
        (Limits(1024, 1_000_000), 2000, 2000, 4128),
        (Limits(1024, 2048), 2000, 960, 2048),
        (Limits(1024, 1_000_000, forbidden=True), 2000, 448, 1024),
        (Limits(1024, resource.RLIM_INFINITY), 5000, 5000, 10_128),
        (Limits(64, 64), 10, 1, 64),
    ],
)
def test_the_limit_is_raised_as_needed_and_concurrency_sized_from_it(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, wanted: int, possible: int, soft: int
) -> None:
    """H1: never more than the hard limit, never less than one exchange."""
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    assert raise_descriptor_limit(wanted) == possible
    assert limits.now[0] == soft
