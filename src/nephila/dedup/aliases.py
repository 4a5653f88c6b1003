"""Aliases learned while crawling (D4, T3): evidence becomes tallies, tallies become rules, rules act on links.

`comparing` makes evidence of what was seen, `alias_tally` decides what it proves, `alias_rules` applies what is proven.
Here it is put together for one process: tallies at hand, what has not been written yet, and what others have learned.

What must stay true: what this process learned acts at once; evidence reaches the disk with `flush`, which may run in a
thread; a host without rules costs a look into a dictionary for each link.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from xxhash import xxh3_64_hexdigest

from nephila.model.alias import AliasKind, AliasRule, AliasState, Sighting
from nephila.model.errors import MemoryShortageError, StorageError
from nephila.urls import Address, registrable_domain

from .alias_rules import DomainAliases
from .alias_storage import AliasStorage, Tallies, applied
from .alias_tally import AliasTally, Evidence, Subject, redone, undone
from .comparing import Comparer

REFRESH_MS = 1_000
"""How often is looked whether somebody else has learned something."""
SAMPLING_DOUBLINGS = 6
"""Each URL that is let through to test a rule doubles the number of those caught before the next, up to 64 times: a
page may have 500 links under a rule, and those let through must bring less than one more each."""
RULES_SAMPLED = 65_536
"""Rules of which it is known when one is let through next; one that is forgotten is verified more often."""
DOMAINS_AT_HAND = 16_384
"""Domains whose tallies, and as many whose rules, are in memory: the others are read when they are met."""
HOSTS_AT_HAND = 65_536
SHOWN_STATES = frozenset({AliasState.TRIED, AliasState.IN_FORCE, AliasState.SUSPENDED, AliasState.UNDONE})


@dataclass(frozen=True, slots=True)
class LearningRules:
    """What learning is to go by."""

    votes: int = 5
    """Comparisons in a row that must agree."""
    verify_every: int = 50
    """One of so many URLs that a rule catches is let through, to see whether it still holds; 0 trusts it."""
    enabled: bool = True
    """Off learns nothing and acts on nothing; rules can be listed and undone all the same."""


class _Hosts(dict[str, DomainAliases | None]):
    """Rules by host; a host that was not met before is looked up by its domain."""

    def __init__(self, find: Callable[[str], DomainAliases | None]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, host: str) -> DomainAliases | None:
        if len(self) >= HOSTS_AT_HAND:
            self.clear()
        found = self[host] = self._find(registrable_domain(host))
        return found


class LearnedAliases:
    """Implements `interfaces.aliases.Aliases` on a storage."""

    def __init__(
        self,
        storage: AliasStorage,
        rules: LearningRules,
        identify: Callable[[str], Address | None],
        steady_ms: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        self._storage = storage
        self._rules = rules
        self._steady_ms = steady_ms
        self._wall_ms = wall_ms
        self._comparer = Comparer(storage, identify)
        self._lock = threading.Lock()
        self._tallies: dict[str, Tallies] = {}
        self._acting: dict[str, DomainAliases] = {}
        """Of the domains that have rules, and only of these; the youngest, when there are too many."""
        self._more = False
        """Whether others are on disk."""
        self._hosts = _Hosts(self._find)
        self._evidence: dict[str, list[Evidence]] = {}
        self._caught: dict[tuple[str, Subject], int] = {}
        self._sampling: dict[tuple[str, Subject], tuple[int, int]] = {}
        """By rule: after how many one is let through, and how many of these are left."""
        self._looked_at = steady_ms()
        self._mark = storage.changed(0)[0]
        for domain, tallies in storage.domains() if rules.enabled else ():
            if len(self._acting) >= DOMAINS_AT_HAND:
                self._more = True
                break
            self._act_on(domain, tallies)

    # Acting

    def in_force(self) -> Mapping[str, DomainAliases | None] | None:
        """As the interface."""
        now = self._steady_ms()
        if now - self._looked_at >= REFRESH_MS and self._rules.enabled:
            self._looked_at = now
            self._refresh()
        return self._hosts if self._acting or self._more else None

    def _find(self, domain: str) -> DomainAliases | None:
        """The rules of a domain."""
        return self._build(domain, self._known(domain)) if self._more else self._acting.get(domain)

    def _refresh(self) -> None:
        """Take in what was written since, by whomever."""
        mark, domains = self._storage.changed(self._mark)
        if domains is None:  # too much happened: all is read anew
            domains = {domain for domain, _ in self._storage.domains()} | self._acting.keys()
            with self._lock:
                self._tallies = {}
        self._mark = mark
        for domain in domains:
            self._take_in(domain, self._storage.tallies(domain))

    def _take_in(self, domain: str, stored: Tallies) -> None:
        """Take what is stored for what is known, with what was seen since."""
        with self._lock:
            tallies = applied(stored, self._evidence.get(domain, ()), self._rules.votes)
            self._tallies[domain] = tallies
        self._act_on(domain, tallies)

    def take_in(self, domain: str) -> None:
        """The storage has learned something of a domain from elsewhere: it holds at once."""
        if not self._rules.enabled:
            return
        stored = self._storage.tallies(domain)
        if self._tallies.get(domain) != stored:
            self._take_in(domain, stored)

    def _act_on(self, domain: str, tallies: Tallies) -> None:
        """From now on these are the rules of a domain."""
        before, acting = domain in self._acting, self._build(domain, tallies)
        if before or acting is not None or self._more:
            self._hosts.clear()

    def _build(self, domain: str, tallies: Tallies) -> DomainAliases | None:
        def catch(tally: AliasTally) -> bool:
            return self._catch(domain, tally.subject)

        acting = DomainAliases(domain, tallies.values(), catch)
        self._acting.pop(domain, None)
        if not acting:
            return None
        if len(self._acting) >= DOMAINS_AT_HAND:
            del self._acting[next(iter(self._acting))]
            self._more = True
        self._acting[domain] = acting
        return acting

    def _catch(self, domain: str, subject: Subject) -> bool:
        """Count what a rule catches; False for those that are let through."""
        key, every = (domain, subject), self._rules.verify_every
        if every:
            gap, left = self._sampling.get(key, (every, every))
            if left <= 1:
                gap = min(gap * 2, every << SAMPLING_DOUBLINGS)
                self._sampling[key] = gap, gap
                return False
            if key not in self._sampling and len(self._sampling) >= RULES_SAMPLED:
                del self._sampling[next(iter(self._sampling))]
            self._sampling[key] = gap, left - 1
        caught = self._caught  # without the lock: a count that goes astray while it is written is not missed
        caught[key] = caught.get(key, 0) + 1
        return True

    # Learning

    def observe(self, seen: Sighting) -> None:
        """As the interface."""
        if not self._rules.enabled:
            return
        tallies = self._known(seen.domain)
        acting = self._hosts[seen.host] if self._acting or self._more else None
        evidence = self._comparer.compare(seen, tallies, acting.names if acting is not None else None)
        if not evidence:
            return
        with self._lock:
            self._evidence.setdefault(seen.domain, []).extend(evidence)
            after = self._tallies[seen.domain] = applied(tallies, evidence, self._rules.votes)
        if any(_standing(tallies, one.subject) != _standing(after, one.subject) for one in evidence):
            self._act_on(seen.domain, after)

    def _known(self, domain: str) -> Tallies:
        tallies = self._tallies.get(domain)
        if tallies is None:
            with self._lock:
                if len(self._tallies) >= DOMAINS_AT_HAND:
                    self._tallies = {name: self._tallies[name] for name in self._evidence if name in self._tallies}
            tallies = self._tallies[domain] = self._storage.tallies(domain)
        return tallies

    # Listing and undoing

    def rules(self, domain: str = "") -> list[AliasRule]:
        """As the interface."""
        known = [(domain, self._storage.tallies(domain))] if domain else self._storage.domains()
        found = [
            _shown(name, tally) for name, tallies in known for tally in tallies.values() if tally.state in SHOWN_STATES
        ]
        return sorted(found, key=lambda rule: (rule.since, rule.id))

    def undo(self, rule_id: str) -> AliasRule | None:
        """As the interface."""
        return self._decide(rule_id, undone)

    def redo(self, rule_id: str) -> AliasRule | None:
        """As the interface."""

        def give_back(tally: AliasTally, at_s: int) -> AliasTally | None:
            return redone(tally, at_s, self._rules.votes) if tally.state == AliasState.UNDONE else None

        return self._decide(rule_id, give_back)

    def _decide(self, rule_id: str, act: Callable[[AliasTally, int], AliasTally | None]) -> AliasRule | None:
        self.flush()
        named = (
            (domain, tally)
            for domain, tallies in self._storage.domains()
            for tally in tallies.values()
            if _rule_id(domain, tally.subject) == rule_id
        )
        domain, tally = next(named, ("", None))
        named.close()  # a reader of the store must be gone before it is written
        changed = None if tally is None else act(tally, self._wall_ms() // 1000)
        if changed is None:
            return None
        self._take_in(domain, self._storage.put(domain, changed))
        return _shown(domain, changed)

    # Keeping

    def flush(self) -> None:
        """As the interface."""
        votes = self._comparer.take_votes()
        with self._lock:
            evidence, caught = self._evidence, self._caught
            self._evidence, self._caught = {}, {}
        if not (evidence or votes or caught):
            return
        try:
            self._storage.write(evidence, votes, caught)
        except StorageError:
            self._comparer.give_back(votes)
            with self._lock:
                for domain, later in self._evidence.items():
                    evidence.setdefault(domain, []).extend(later)
                for key, count in self._caught.items():
                    caught[key] = caught.get(key, 0) + count
                self._evidence, self._caught = evidence, caught
            raise

    def close(self) -> None:
        """As the interface. What a full disk does not take is lost; whoever called `flush` before has been told."""
        with suppress(StorageError, MemoryShortageError):
            self.flush()
        self._storage.close()


def _standing(tallies: Tallies, subject: Subject) -> tuple[str, bool]:
    """What about a tally decides how links are treated."""
    tally = tallies.get(subject)
    return (AliasState.WATCHED, False) if tally is None else (tally.state, tally.doubtful)


def _rule_id(domain: str, subject: Subject) -> str:
    """Eight hexadecimal digits: long enough for what one crawl learns, short enough to type."""
    return xxh3_64_hexdigest("\n".join((domain, *subject)).encode())[:8]


def _shown(domain: str, tally: AliasTally) -> AliasRule:
    parameter = tally.kind == AliasKind.PARAMETER
    return AliasRule(
        id=_rule_id(domain, tally.subject),
        kind=AliasKind(tally.kind),
        domain=domain,
        pattern=f"{tally.scope}?{tally.name}" if parameter else tally.scope,
        target=tally.target,
        state=AliasState(tally.state),
        since=tally.since_s * 1000,
        agreed=tally.agreed,
        against=tally.against,
        hints=tally.hints,
        places=tally.places,
        caught=tally.caught,
        example=tally.example,
        counter_example=tally.counter_example,
    )
