"""Is the simulation worth its time? The crawler is broken on purpose, and it must notice, within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mutants import MUTANTS, Mutant

from nephila.testing.sim import run_seed

KNOWN: dict[str, tuple[int, ...]] = {
    "no_sync_before_confirm": (1, 2, 3),
    "settled_before_stored": (1, 19, 24),
    "any_token_settles": (43, 45),
    "no_rest_after_reaping": (25, 39),
    "old_rules_kept": (298, 324),
    "rest_from_the_start": (2, 3),
    "retry_after_forgotten": (7, 8),
    "two_at_once": (2, 3),
    "links_lost": (2, 3),
    "torn_record_kept": (2, 6),
    "new_names_not_synced": (6, 17),
    "no_deadline_check": (45, 134),
    "refused_not_disowned": (37, 43),
    "rules_not_asked": (2, 0),
    "contents_known_at_once": (677,),
    "recovered_name_not_synced": (13541, 27632),
    "addresses_not_counted": (),
    "a_counter_drifts": (),
    "confirmed_past_unsettled": (22, 81),
    "indexed_while_settled": (1553, 11464),
    "listed_before_confirmed": (190, 1578),
    "dropped_bytes_believed": (168, 341),
    "journal_not_synced": (147, 172),
    "journal_not_read": (2,),
    "turns_begun_blindly": (31, 20103),
}
"""Seeds that were found to catch a mutant; a range of others is searched as well, because drawing changes with time."""
MOST = 60
"""Seeds at most until a mutant must have been caught."""
MISFITS = ("TypeError", "AttributeError", "NameError")
"""What is found of a mutant that does not fit into the crawler any more: it shows nothing about the simulation."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.__name__)
def test_a_broken_crawler_is_caught(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch, say: Callable[[str], None]
) -> None:
    """Q4, F3, F10, P1, P2, W2, W3: each way of breaking it is found by some seed, which says so."""
    mutant(monkeypatch)
    known = KNOWN.get(mutant.__name__, ())
    for tried, seed in enumerate([*known, *(seed for seed in range(MOST) if seed not in known)][:MOST], 1):
        verdict = run_seed(seed)
        if verdict.found:
            assert not verdict.found[0].startswith(MISFITS), f"the mutant itself is broken: {verdict.found}"
            say(f"caught by seed {seed}, the {tried}. that was tried: {verdict.found[0][:100]}")
            return
    pytest.fail(f"{MOST} seeds did not notice: {mutant.__doc__}")


def test_there_are_enough_mutants() -> None:
    """Q4: ten at least, and no two of them the same."""
    assert len({one.__doc__ for one in MUTANTS}) == len(MUTANTS) >= 10
