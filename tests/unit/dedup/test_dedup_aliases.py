"""Learning aliases: what the contract of all storages does not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from nephila.dedup import (
    LearnedAliases,
    LearnedEnvironment,
    LearningRules,
    LmdbAliasStorage,
    MemoryAliasStorage,
    alias_lmdb,
    alias_storage,
)
from nephila.dedup import aliases as module
from nephila.model.alias import AliasState, Sighting
from nephila.model.errors import StorageError
from nephila.testing.contracts.aliases import DOMAIN, ORIGIN, Hand, identify, page_of, resolved, see, teach

RULES = LearningRules()


def opened(storage: alias_storage.AliasStorage, hand: Hand, rules: LearningRules = RULES) -> LearnedAliases:
    return LearnedAliases(storage, rules, identify, hand.now, hand.now)


def teach_domain(aliases: LearnedAliases, hand: Hand, domain: str) -> None:
    for number in range(1, 7):
        for query in ("?ref=a", "?ref=b", ""):
            url = f"https://{domain}/item/{number}{query}"
            aliases.observe(Sighting(url, domain, domain, hand.ms, page_of(url, f"text {number}")))


def test_rules_of_more_domains_than_fit_into_memory_act_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """D4, F8: the others are read when they are met, by this process and by the next."""
    monkeypatch.setattr(module, "DOMAINS_AT_HAND", 2)
    hand, storage = Hand(), MemoryAliasStorage(RULES.votes)
    aliases = opened(storage, hand)
    domains = [f"site{number}.example" for number in range(6)]
    for domain in domains:
        teach_domain(aliases, hand, domain)
        aliases.flush()
    for one in (aliases, opened(storage, hand)):
        for domain in [*domains, *domains]:
            assert resolved(one, f"https://{domain}/item/77?ref=zz") is not None
        assert resolved(one, "https://other.example/item/77?ref=zz") is None
    hand.ms += 1001
    assert resolved(aliases, "https://site0.example/item/77?ref=zz") is not None


def test_when_rules_are_verified_is_known_of_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """D4, Q5: a crawl of months meets rules of more domains than memory is for."""
    monkeypatch.setattr(module, "RULES_SAMPLED", 2)
    hand = Hand()
    aliases = opened(MemoryAliasStorage(RULES.votes), hand)
    for number in range(6):
        teach_domain(aliases, hand, f"site{number}.example")
        assert resolved(aliases, f"https://site{number}.example/item/77?ref=zz") is not None
    assert len(aliases._sampling) == 2


def test_a_redirect_that_leaves_a_parameter_out_needs_no_other_proof() -> None:
    """D4: where it leads is what would be asked for instead."""
    hand = Hand()
    aliases = opened(MemoryAliasStorage(RULES.votes), hand)
    for number in range(1, 8):
        see(aliases, hand, f"/item/{number}?ref=x", None, location=f"{ORIGIN}/item/{number}")
        see(aliases, hand, f"/item/{number}", f"text {number}")
    found = resolved(aliases, f"{ORIGIN}/item/77?ref=zz")
    assert found is not None
    assert found.url == f"{ORIGIN}/item/77"


def test_a_redirect_that_puts_a_parameter_in_speaks_against_leaving_it_out() -> None:
    """D4: a page that cannot be had without a session."""
    hand = Hand()
    aliases = opened(MemoryAliasStorage(RULES.votes), hand)
    for number in range(1, 9):
        for value in "abc":
            see(aliases, hand, f"/item/{number}?ref={value}", f"text {number}")
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is not None
    see(aliases, hand, "/item/1", None, location=f"{ORIGIN}/item/1?ref=new")
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is None


def test_a_session_in_every_path_is_learned_for_the_domain() -> None:
    """T3: paths of three shapes and more, each with one page; one page against it exempts its shape."""
    hand = Hand()
    aliases = opened(MemoryAliasStorage(RULES.votes), hand)
    words = ("red", "blue", "green", "white", "black", "brown")
    for word in words:
        for query in ("?visit=a", "?visit=b", ""):
            see(aliases, hand, f"/{word}{query}", word)
    found = resolved(aliases, f"{ORIGIN}/orange?visit=zz")
    assert found is not None
    assert f"parameter visit changes nothing on {DOMAIN}" in found.detail
    aliases.flush()
    assert [rule.pattern for rule in aliases.rules() if rule.state is AliasState.IN_FORCE] == ["*?visit"]


def test_switched_off_it_learns_nothing_and_acts_on_nothing() -> None:
    """D4: but what was learned before can be listed and undone."""
    hand, storage = Hand(), MemoryAliasStorage(RULES.votes)
    learned = opened(storage, hand)
    teach(learned, hand)
    learned.flush()
    off = opened(storage, hand, LearningRules(enabled=False))
    hand.ms += 1001
    assert off.in_force() is None
    teach(off, hand, "via", path="/note/")
    assert [rule.pattern for rule in off.rules()] == ["/item/{n}?ref"]
    assert off.undo(off.rules()[0].id) is not None
    hand.ms += 1001
    assert resolved(learned, f"{ORIGIN}/item/77?ref=zz") is None


def test_what_a_disk_refuses_is_kept_for_the_next_time(tmp_path: Path) -> None:
    """D4, F10: and told in a sentence; nothing is counted twice."""
    hand = Hand()
    environment = LearnedEnvironment(tmp_path / "aliases", sync=False, map_bytes=1 << 17)
    aliases = opened(LmdbAliasStorage(environment, RULES.votes), hand)
    teach(aliases, hand, pages=400)
    with pytest.raises(StorageError, match="learned of sites"):
        aliases.flush()
    environment.close()
    wider = LearnedEnvironment(tmp_path / "aliases", sync=False)
    aliases._storage = LmdbAliasStorage(wider, RULES.votes)
    aliases.flush()
    (rule,) = [rule for rule in aliases.rules() if rule.state is AliasState.IN_FORCE]
    assert rule.places == 400
    wider.close()


def test_votes_on_disk_are_bounded_by_domain_and_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D4, F8: the oldest go; whole domains that were not met for long when there are too many."""
    monkeypatch.setattr(alias_lmdb, "VOTES", 50)
    monkeypatch.setattr(alias_lmdb, "ALL_VOTES", 200)
    hand, environment = Hand(), LearnedEnvironment(tmp_path / "aliases", sync=False)
    storage = LmdbAliasStorage(environment, RULES.votes)
    aliases = opened(storage, hand)

    def votes() -> int:
        with environment.reading() as txn:
            return int(txn.stat(environment.db["votes"])["entries"])

    for number in range(300):
        hand.ms += 1000
        see(aliases, hand, f"/x/{number}?a={number}", f"text {number}")
        aliases.flush()
        assert votes() <= 50 + 3
    for number in range(300):
        hand.ms += 1000
        domain = f"site{number}.example"
        aliases.observe(Sighting(f"https://{domain}/?a=1", domain, domain, hand.ms, page_of("", f"text {number}")))
        aliases.flush()
        assert votes() <= 200 + 3
    environment.close()


def test_who_was_away_for_too_long_reads_everything_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D4: the log of changes is bounded."""
    monkeypatch.setattr(alias_lmdb, "LOGGED", 3)
    hand, environment = Hand(), LearnedEnvironment(tmp_path / "aliases", sync=False)
    here = opened(LmdbAliasStorage(environment, RULES.votes), hand)
    there = opened(LmdbAliasStorage(environment, RULES.votes), hand)
    for number in range(8):
        teach_domain(there, hand, f"site{number}.example")
        there.flush()
    hand.ms += 1001
    for number in range(8):
        assert resolved(here, f"https://site{number}.example/item/77?ref=zz") is not None
    environment.close()
