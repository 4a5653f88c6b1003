"""Where what is learned of aliases lies: tallies by domain, and the votes that wait for another one to compare with.

Learning is handed over as *evidence*, never as a result: whoever writes reads the tallies in the same transaction and
applies the evidence to them, so that several processes, and a person who undoes a rule, never overwrite each other.

Bounds: so many tallies a domain, so many votes a domain and in all. The oldest go; a rule that is acted on, or was
undone, stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from nephila.model.alias import AliasState

from .alias_tally import AliasTally, Evidence, Subject, after, fresh

TALLIES = 256
"""Of one domain: parameters times shapes of paths; a site that mints names drives out its own."""
VOTES = 1_000
"""Of one domain."""
ALL_VOTES = 200_000
"""In all: some 30 MB."""


class Vote(msgspec.Struct, array_like=True, frozen=True):
    """What was found at a place under one value of a parameter."""

    value: bytes
    """Eight bytes for the value; empty for its absence."""
    content: bytes
    """What was found; empty for an answer that was no page."""
    at_s: int
    url: str
    agreed: bool = False
    """Another value has brought the same."""


Tallies = Mapping[Subject, AliasTally]


class AliasStorage(Protocol):
    """What learning stands on."""

    def tallies(self, domain: str) -> Tallies:
        """What is known of a domain."""

    def domains(self) -> Iterator[tuple[str, Tallies]]:
        """All of which something is known."""

    def vote(self, key: bytes) -> Vote | None:
        """What was found at a place; the first eight bytes of a key name the domain."""

    def write(
        self,
        evidence: Mapping[str, Sequence[Evidence]],
        votes: Mapping[bytes, Vote],
        caught: Mapping[tuple[str, Subject], int],
    ) -> dict[str, Tallies]:
        """Apply and keep, durably; the tallies of the domains that were written."""

    def put(self, domain: str, tally: AliasTally) -> Tallies:
        """Put one tally in the place of another, durably; what the domain has then."""

    def changed(self, since: int) -> tuple[int, set[str] | None]:
        """The present mark, and the domains that were written after an earlier one; None when that is too long ago."""

    def close(self) -> None:
        """Close it."""


def applied(tallies: Tallies, evidence: Iterable[Evidence], votes: int) -> dict[Subject, AliasTally]:
    """The tallies of a domain after some evidence, within their bounds."""
    result = dict(tallies)
    for one in evidence:
        known = result.get(one.subject) or fresh(one.subject, one.at_s)
        result[one.subject] = after(known, one, votes)
    if len(result) > TALLIES:
        kept = sorted(result.values(), key=_worth, reverse=True)[: TALLIES // 2]
        result = {tally.subject: tally for tally in kept}
    return result


def _worth(tally: AliasTally) -> tuple[bool, bool, int]:
    """What stays when there is too much: what is acted on or was decided, then what is young."""
    return tally.acts or tally.state == AliasState.UNDONE, tally.state == AliasState.SUSPENDED, tally.last_s


class MemoryAliasStorage:
    """In memory: for what was read from elsewhere, for simulations and tests.

    Several `LearnedAliases` may share one, as processes share a disk.
    """

    def __init__(self, votes: int, known: Mapping[str, Tallies] | None = None) -> None:
        self._votes_needed = votes
        self._tallies: dict[str, Tallies] = dict(known or {})
        self._votes: dict[bytes, Vote] = {}
        self._changes: list[str] = []

    def tallies(self, domain: str) -> Tallies:
        """As the interface."""
        return self._tallies.get(domain, {})

    def domains(self) -> Iterator[tuple[str, Tallies]]:
        """As the interface."""
        yield from sorted(self._tallies.items())

    def vote(self, key: bytes) -> Vote | None:
        """As the interface."""
        return self._votes.get(key)

    def write(
        self,
        evidence: Mapping[str, Sequence[Evidence]],
        votes: Mapping[bytes, Vote],
        caught: Mapping[tuple[str, Subject], int],
    ) -> dict[str, Tallies]:
        """As the interface."""
        written: dict[str, Tallies] = {}
        for domain in evidence.keys() | {domain for domain, _ in caught}:
            result = applied(self.tallies(domain), evidence.get(domain, ()), self._votes_needed)
            self._tallies[domain] = written[domain] = with_caught(domain, result, caught)
        self._changes += written
        for key, vote in votes.items():
            self._votes.pop(key, None)
            self._votes[key] = vote
        self._trim({key[:8] for key in votes})
        return written

    def put(self, domain: str, tally: AliasTally) -> Tallies:
        """As the interface."""
        self._tallies[domain] = {**self.tallies(domain), tally.subject: tally}
        self._changes.append(domain)
        return self._tallies[domain]

    def changed(self, since: int) -> tuple[int, set[str]]:
        """As the interface."""
        return len(self._changes), set(self._changes[since:])

    def close(self) -> None:
        """Nothing to do."""

    def _trim(self, domains: set[bytes]) -> None:
        for domain in domains:
            own = [key for key in self._votes if key[:8] == domain]
            for key in own[: max(0, len(own) - VOTES)]:
                del self._votes[key]
        while len(self._votes) > ALL_VOTES:
            del self._votes[next(iter(self._votes))]


def with_caught(
    domain: str, tallies: Mapping[Subject, AliasTally], caught: Mapping[tuple[str, Subject], int]
) -> dict[Subject, AliasTally]:
    """The tallies with what their rules have caught since."""
    return {
        subject: msgspec.structs.replace(tally, caught=tally.caught + caught.get((domain, subject), 0))
        for subject, tally in tallies.items()
    }
