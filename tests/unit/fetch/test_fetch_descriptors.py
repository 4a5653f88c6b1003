"""File descriptors."""

from __future__ import annotations

import resource

import pytest

from nephila.fetch.descriptors import archive_files, raise_descriptor_limit
from nephila.model.errors import NephilaError


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
        (Limits(1024, 1_000_000), (256, 0), (256, 0), 1024),
        (Limits(1024, 1_000_000), (2000, 0), (2000, 0), 4128),
        (Limits(1024, 2048), (2000, 0), (960, 0), 2048),
        (Limits(1024, 1_000_000, forbidden=True), (2000, 0), (448, 0), 1024),
        (Limits(1024, resource.RLIM_INFINITY), (5000, 0), (5000, 0), 10_128),
        (Limits(64, 64), (10, 0), (10, 0), 64),
        (Limits(64, 64), (256, 0), (16, 0), 64),
        (Limits(1024, 1_000_000), (256, 4096), (256, 4096), 4480),
        (Limits(1024, 4096), (256, 4096), (256, 3712), 4096),
        (Limits(1024, 1_000_000, forbidden=True), (256, 4096), (256, 640), 1024),
        (Limits(1024, 1024), (2000, 4096), (448, 448), 1024),
        (Limits(1024, 1_000_000), (256, 100), (256, 100), 1024),
        (Limits(64, 64), (256, 4096), (16, 16), 64),
        (Limits(resource.RLIM_INFINITY, resource.RLIM_INFINITY), (9, 4096), (9, 4096), resource.RLIM_INFINITY),
    ],
)
def test_the_limit_is_raised_as_needed_and_connections_are_sized_from_it(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, wanted: tuple[int, int], possible: tuple[int, int], soft: int
) -> None:
    """H1: never more than the hard limit; of little, half is left for files; exchanges go first."""
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    assert raise_descriptor_limit(*wanted) == possible
    assert limits.now[0] == soft


def test_too_few_descriptors_for_any_crawl_are_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: a sentence, before anything is opened."""
    monkeypatch.setattr(resource, "getrlimit", Limits(20, 20).get)
    with pytest.raises(NephilaError, match="20 files") as raised:
        raise_descriptor_limit(10)
    assert "ulimit -n" in raised.value.hint


@pytest.mark.parametrize(("soft", "files"), [(64, 8), (1024, 64), (resource.RLIM_INFINITY, 64)])
def test_archive_files_leave_room_for_the_rest(monkeypatch: pytest.MonkeyPatch, soft: int, files: int) -> None:
    """H1, W1: in the layout domain-hour thousands of files grow, few of them are open."""
    monkeypatch.setattr(resource, "getrlimit", Limits(soft, soft).get)
    assert archive_files() == files
