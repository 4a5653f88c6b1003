"""Tallies of domains that go along with their hosts from worker to worker (D4, N3).

Here lies a copy: what the servers have of the domains that this worker meets, and what it has learned itself since.
What it learns is applied here at once, and remembered as evidence until it was told: the servers' tallies are read, the
evidence applied to those, and the result exchanged for them (`shared_notes`). What comes back takes the place of what
is here, with what was learned meanwhile on top. Votes are not shared: they wait a day at most for a page to compare
with, and whoever takes a host over meets its pages itself.

What must stay true: what was brought is seen at once and written to disk with the next `write`, which may run in a
thread; evidence is told once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nephila.model.alias import AliasState

from .alias_lmdb import LmdbAliasStorage
from .alias_storage import Tallies, Vote, applied, with_caught
from .alias_tally import AliasTally, Evidence, Subject

EVIDENCE = 2_000
"""Pieces of evidence of one domain that wait to be told; what comes after holds here alone."""


@dataclass(slots=True)
class Findings:
    """What was learned of a domain and was not told yet."""

    evidence: list[Evidence] = field(default_factory=list)
    caught: Counter[tuple[str, Subject]] = field(default_factory=Counter)
    urgent: bool = False
    """Links are treated otherwise because of it."""
    whole: bool = False
    """All that is known here, for servers that know nothing of the domain."""

    def onto(self, domain: str, tallies: Tallies, votes: int) -> dict[Subject, AliasTally]:
        """What tallies are with it."""
        return with_caught(domain, applied(tallies, self.evidence, votes), self.caught)

    def before(self, later: Findings) -> Findings:
        """Both together, the other one being younger."""
        evidence = [*self.evidence, *later.evidence][:EVIDENCE]
        urgent, whole = self.urgent or later.urgent, self.whole or later.whole
        return Findings(evidence, self.caught + later.caught, urgent, whole)


class TravellingAliasStorage:
    """Implements `AliasStorage` over one on disk."""

    def __init__(self, own: LmdbAliasStorage, votes: int) -> None:
        self._own = own
        self.votes = votes
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        """Held while something is written to disk, and never waited for by who may not."""
        self._brought: dict[str, Tallies] = {}
        self._findings: dict[str, Findings] = {}

    # As the interface

    def tallies(self, domain: str) -> Tallies:
        """As the interface."""
        brought = self._brought.get(domain)
        return self._own.tallies(domain) if brought is None else brought

    def domains(self) -> Iterator[tuple[str, Tallies]]:
        """As the interface."""
        with self._lock:
            brought = dict(self._brought)
        for domain, tallies in self._own.domains():
            yield domain, brought.pop(domain, tallies)
        yield from brought.items()

    def vote(self, key: bytes) -> Vote | None:
        """As the interface."""
        return self._own.vote(key)

    def write(
        self,
        evidence: Mapping[str, Sequence[Evidence]],
        votes: Mapping[bytes, Vote],
        caught: Mapping[tuple[str, Subject], int],
    ) -> dict[str, Tallies]:
        """As the interface."""
        with self._writing:
            self._persist()
            before = {domain: standing(self._own.tallies(domain)) for domain in evidence}
            written = self._own.write(evidence, votes, caught)
        with self._lock:
            for domain, tallies in written.items():
                own = Counter({key: count for key, count in caught.items() if key[0] == domain})
                urgent = domain in before and before[domain] != standing(tallies)
                fresh = Findings(list(evidence.get(domain, ())), own, urgent)
                self._findings[domain] = self._findings.get(domain, Findings()).before(fresh)
                if domain in self._brought:  # while this was written
                    self._brought[domain] = fresh.onto(domain, self._brought[domain], self.votes)
        return written

    def put(self, domain: str, tally: AliasTally) -> Tallies:
        """Nobody decides for one worker alone."""
        raise TypeError(f"rules of a fleet are undone on its servers: {domain}, {tally}")

    def changed(self, since: int) -> tuple[int, set[str] | None]:
        """As the interface."""
        return self._own.changed(since)

    def close(self) -> None:
        """As the interface."""
        self._own.close()

    # Between here and the servers

    def persist(self) -> None:
        """Write to disk what was brought."""
        with self._writing:
            self._persist()

    def _persist(self) -> None:
        with self._lock:
            brought = dict(self._brought)
        if not brought:
            return
        self._own.replace(brought)
        with self._lock:
            for domain, tallies in brought.items():
                if self._brought.get(domain) is tallies:
                    del self._brought[domain]

    def take_findings(self, *, urgent: bool) -> dict[str, Findings]:
        """What is to be told: all, or only what cannot wait."""
        with self._lock:
            taken = {domain: found for domain, found in self._findings.items() if found.urgent or not urgent}
            for domain in taken:
                del self._findings[domain]
        return taken

    def give_back(self, findings: Mapping[str, Findings]) -> None:
        """These could not be told."""
        with self._lock:
            for domain, found in findings.items():
                self._findings[domain] = found.before(self._findings.get(domain, Findings()))

    def tell_all(self, domain: str) -> None:
        """The servers know nothing of a domain: they are told what is known here."""
        with self._lock:
            self._findings.setdefault(domain, Findings()).whole = True

    def bring(self, domain: str, tallies: Tallies) -> None:
        """The servers have these."""
        with self._lock:
            later = self._findings.get(domain)
            self._brought[domain] = tallies if later is None else later.onto(domain, tallies, self.votes)


def standing(tallies: Tallies) -> frozenset[tuple[Subject, str]]:
    """What about the tallies of a domain decides how links are treated."""
    watched = AliasState.WATCHED
    return frozenset((tally.subject, tally.state) for tally in tallies.values() if tally.state != watched)
