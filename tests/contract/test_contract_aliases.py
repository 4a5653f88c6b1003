"""The promises of what is learned of sites, on LMDB and in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nephila.dedup import (
    LearnedAliases,
    LearnedEnvironment,
    LearningRules,
    LmdbAbsences,
    LmdbAliasStorage,
    MemoryAbsences,
    MemoryAliasStorage,
)
from nephila.dedup.alias_travelling import TravellingAliasStorage
from nephila.testing.contracts import absences, aliases
from nephila.testing.contracts.aliases import Hand, OpenAliases, identify

RULES = LearningRules()


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[LearnedEnvironment]:
    opened = LearnedEnvironment(tmp_path / "aliases", sync=False)
    yield opened
    opened.close()


@pytest.mark.parametrize("check", [*aliases.CHECKS, *aliases.DURABLE_CHECKS], ids=lambda check: check.__name__)
def test_lmdb_aliases_keep_the_contract(check: Callable[[OpenAliases], None], environment: LearnedEnvironment) -> None:
    """D4, T3: every check of the suite."""

    def open_aliases(hand: Hand) -> LearnedAliases:
        storage = LmdbAliasStorage(environment, RULES.votes)
        return LearnedAliases(storage, RULES, identify, hand.now, hand.now)

    check(open_aliases)


@pytest.mark.parametrize("check", [*aliases.CHECKS, *aliases.DURABLE_CHECKS], ids=lambda check: check.__name__)
def test_memory_aliases_keep_the_contract(check: Callable[[OpenAliases], None]) -> None:
    """D4, T3: every check; the storage outlives those who share it."""
    storage = MemoryAliasStorage(RULES.votes)
    check(lambda hand: LearnedAliases(storage, RULES, identify, hand.now, hand.now))


DECIDED = {"check_an_undone_rule_is_not_learned_again", "check_what_another_process_decides_holds_within_a_second"}
"""Rules of a fleet are undone on its servers: tests/integration/fleet."""


@pytest.mark.parametrize(
    "check",
    [check for check in (*aliases.CHECKS, *aliases.DURABLE_CHECKS) if check.__name__ not in DECIDED],
    ids=lambda check: check.__name__,
)
def test_aliases_that_travel_keep_the_contract(
    check: Callable[[OpenAliases], None], environment: LearnedEnvironment
) -> None:
    """D4, T3, N3: in a worker whose servers never answer; nobody decides there."""

    def open_aliases(hand: Hand) -> LearnedAliases:
        storage = TravellingAliasStorage(LmdbAliasStorage(environment, RULES.votes), RULES.votes)
        return LearnedAliases(storage, RULES, identify, hand.now, hand.now)

    check(open_aliases)


@pytest.mark.parametrize("check", [*absences.CHECKS, *absences.DURABLE_CHECKS], ids=lambda check: check.__name__)
def test_lmdb_absences_keep_the_contract(
    check: Callable[[absences.OpenAbsences], None], environment: LearnedEnvironment
) -> None:
    """T4: every check of the suite."""
    check(lambda: LmdbAbsences(environment))


@pytest.mark.parametrize("check", absences.CHECKS, ids=lambda check: check.__name__)
def test_memory_absences_keep_the_contract(check: Callable[[absences.OpenAbsences], None]) -> None:
    """T4: every check that does not ask for a disk."""
    check(MemoryAbsences)
