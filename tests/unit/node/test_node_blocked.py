"""What the catalogue shows of the blocklist."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from nephila.model.errors import EngineAwayError
from nephila.model.policy import Block
from nephila.node.blocked import AGAIN_MS, LOOK_MS, BlockedInStep, blocked_names
from nephila.testing.clock import VirtualClock


@pytest.mark.parametrize(
    ("patterns", "names", "suffixes"),
    [
        (("example.org", "www.example.net", "https://example.com/x"), ["example.org"], []),
        (("co.uk",), ["co.uk"], ["co.uk"]),
        (("uk",), ["uk"], ["uk"]),
        (("192.0.2.7", "[2001:db8::1]"), ["192.0.2.7", "[2001:db8::1]"], []),
        ((), [], []),
    ],
)
def test_domains_that_are_blocked_as_a_whole(patterns: tuple[str, ...], names: list[str], suffixes: list[str]) -> None:
    """T7, W3: hosts and parts of domains do not count; a public suffix stands for all below it."""
    assert blocked_names(Block(pattern, "because") for pattern in patterns) == (names, suffixes)


class Shown:
    """A catalogue that counts what it is told."""

    def __init__(self) -> None:
        self.told: list[list[str]] = []

    def show_blocked(self, names: Collection[str], suffixes: Collection[str] = ()) -> None:
        assert not suffixes
        self.told.append(list(names))


def test_the_catalogue_is_brought_in_step_at_the_start_on_changes_and_now_and_then() -> None:
    """T7, W3: blocks that others made are found; a domain that is listed after it was blocked, too."""
    blocks, shown, clock = list[Block](), Shown(), VirtualClock()
    part = BlockedInStep(lambda: blocks, shown, clock)
    part.flush()
    assert shown.told == [[]], "what an earlier run left may be out of date"
    blocks.append(Block("a.example", "because"))
    part.flush()
    assert len(shown.told) == 1, "not looked at more often than that"
    clock.advance(LOOK_MS / 1000)
    part.flush()
    assert shown.told[1:] == [["a.example"]]
    clock.advance(LOOK_MS / 1000)
    part.flush()
    assert len(shown.told) == 2, "nothing has changed"
    clock.advance(AGAIN_MS / 1000)
    part.flush()
    assert shown.told[2:] == [["a.example"]]
    blocks.clear()
    clock.advance(LOOK_MS / 1000)
    part.flush()
    assert shown.told[3:] == [[]]
    clock.advance(10 * AGAIN_MS / 1000)
    part.flush()
    assert len(shown.told) == 4, "nothing is blocked: nothing to be written again"


def test_books_do_not_wait_for_an_engine_that_is_away() -> None:
    """T7, N4: a worker goes on without it, asks again a minute later, and shows what is blocked then."""
    asked, shown, clock = list[int](), Shown(), VirtualClock()

    def blocks() -> list[Block]:
        asked.append(clock.steady_ms())
        if len(asked) == 1:
            raise EngineAwayError("Valkey does not answer")
        return [Block("a.example", "because")]

    part = BlockedInStep(blocks, shown, clock)
    for _ in range(3):
        part.flush()
        clock.advance(LOOK_MS / 1000)
    assert (len(asked), shown.told) == (1, [])
    clock.advance(AGAIN_MS / 1000)
    part.flush()
    assert shown.told == [["a.example"]]
