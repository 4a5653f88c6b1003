"""Aliases on disk: tallies a record for each domain, votes a record each, and a log of the domains that were written.

| database | key | value |
|---|---|---|
| tallies | domain | all its tallies |
| votes | hash of the domain, hash of place and parameter | Vote |
| counts | hash of the domain | its votes, and when the last one came |
| changes | number | domain |
| meta | `mark`, `votes` | the last number of a change; votes in all |
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from .alias_storage import ALL_VOTES, VOTES, Tallies, Vote, applied, with_caught
from .alias_tally import AliasTally, Evidence, Subject
from .learned import LearnedEnvironment

if TYPE_CHECKING:
    from .learned import Txn

LOGGED = 10_000
"""Changes that are remembered: who was away for longer reads everything anew."""
_KEPT_SHARE = 0.9
_NUMBER = struct.Struct(">Q")
_COUNT = struct.Struct(">IQ")
_pack = msgspec.msgpack.Encoder().encode
_read_tallies = msgspec.msgpack.Decoder(list[AliasTally]).decode
_read_vote = msgspec.msgpack.Decoder(Vote).decode


class LmdbAliasStorage:
    """Implements `AliasStorage`. Does not close the environment: others may use it too."""

    def __init__(self, environment: LearnedEnvironment, votes: int) -> None:
        self._env = environment
        self._db = environment.db
        self._votes_needed = votes

    def tallies(self, domain: str) -> Tallies:
        """As the interface."""
        with self._env.reading() as txn:
            return self._tallies(txn, domain)

    def domains(self) -> Iterator[tuple[str, Tallies]]:
        """As the interface."""
        with self._env.reading() as txn:
            for name, packed in txn.cursor(db=self._db["tallies"]):
                yield name.decode(), {tally.subject: tally for tally in _read_tallies(packed)}

    def vote(self, key: bytes) -> Vote | None:
        """As the interface."""
        packed = self._env.get("votes", key)
        return None if packed is None else _read_vote(packed)

    def write(
        self,
        evidence: Mapping[str, Sequence[Evidence]],
        votes: Mapping[bytes, Vote],
        caught: Mapping[tuple[str, Subject], int],
    ) -> dict[str, Tallies]:
        """As the interface."""
        written: dict[str, Tallies] = {}
        with self._env.writing() as txn:
            for domain in sorted(evidence.keys() | {domain for domain, _ in caught}):
                result = applied(self._tallies(txn, domain), evidence.get(domain, ()), self._votes_needed)
                written[domain] = with_caught(domain, result, caught)
                self._put(txn, domain, written[domain])
            if votes:
                self._put_votes(txn, votes)
        return written

    def put(self, domain: str, tally: AliasTally) -> Tallies:
        """As the interface."""
        with self._env.writing() as txn:
            tallies = {**self._tallies(txn, domain), tally.subject: tally}
            self._put(txn, domain, tallies)
        return tallies

    def replace(self, domains: Mapping[str, Tallies]) -> None:
        """Put what is known elsewhere in the place of what is known here, where it differs; durably."""
        with self._env.writing() as txn:
            for domain, tallies in sorted(domains.items()):
                if tallies != self._tallies(txn, domain):
                    self._put(txn, domain, tallies)

    def changed(self, since: int) -> tuple[int, set[str] | None]:
        """As the interface."""
        with self._env.reading() as txn:
            mark = self._number(txn, b"mark")
            if mark == since:
                return mark, set()
            with txn.cursor(db=self._db["changes"]) as cursor:
                if not cursor.set_range(_NUMBER.pack(since + 1)) or cursor.key() != _NUMBER.pack(since + 1):
                    return mark, None
                return mark, {name.decode() for name in cursor.iternext(keys=False, values=True)}

    def close(self) -> None:
        """Nothing is held."""

    def _tallies(self, txn: Txn, domain: str) -> Tallies:
        packed = txn.get(domain.encode(), db=self._db["tallies"])
        return {} if packed is None else {tally.subject: tally for tally in _read_tallies(packed)}

    def _put(self, txn: Txn, domain: str, tallies: Tallies) -> None:
        txn.put(domain.encode(), _pack(list(tallies.values())), db=self._db["tallies"])
        mark = self._number(txn, b"mark") + 1
        txn.put(_NUMBER.pack(mark), domain.encode(), db=self._db["changes"])
        txn.delete(_NUMBER.pack(max(0, mark - LOGGED)), db=self._db["changes"])
        txn.put(b"mark", _NUMBER.pack(mark), db=self._db["meta"])

    def _number(self, txn: Txn, name: bytes) -> int:
        packed = txn.get(name, db=self._db["meta"])
        return 0 if packed is None else int(_NUMBER.unpack(packed)[0])

    def _put_votes(self, txn: Txn, votes: Mapping[bytes, Vote]) -> None:
        added: dict[bytes, list[int]] = {}
        for key, vote in sorted(votes.items()):
            new = txn.get(key, db=self._db["votes"]) is None
            txn.put(key, _pack(vote), db=self._db["votes"])
            count = added.setdefault(key[:8], [0, 0])
            count[0] += new
            count[1] = max(count[1], vote.at_s)
        total = self._number(txn, b"votes")
        for domain, (more, last_s) in added.items():
            packed = txn.get(domain, db=self._db["counts"])
            known = more + (_COUNT.unpack(packed)[0] if packed else 0)
            total += more
            if known > VOTES:
                dropped = self._drop_oldest(txn, domain)
                known, total = known - dropped, total - dropped
            txn.put(domain, _COUNT.pack(known, last_s), db=self._db["counts"])
        if total > ALL_VOTES:
            total -= self._drop_domains(txn, total - int(ALL_VOTES * _KEPT_SHARE))
        txn.put(b"votes", _NUMBER.pack(total), db=self._db["meta"])

    def _keys(self, txn: Txn, domain: bytes) -> list[tuple[int, bytes]]:
        """The votes of a domain, the oldest first."""
        found: list[tuple[int, bytes]] = []
        with txn.cursor(db=self._db["votes"]) as cursor:
            if cursor.set_range(domain):
                for key, packed in cursor:
                    if key[:8] != domain:
                        break
                    found.append((_read_vote(packed).at_s, key))
        return sorted(found)

    def _drop_oldest(self, txn: Txn, domain: bytes) -> int:
        """Half of a domain's votes: seldom, and then for a while."""
        gone = self._keys(txn, domain)[: VOTES // 2]
        for _, key in gone:
            txn.delete(key, db=self._db["votes"])
        return len(gone)

    def _drop_domains(self, txn: Txn, wanted: int) -> int:
        """All votes of the domains that were not met for the longest time, until there is room."""
        with txn.cursor(db=self._db["counts"]) as cursor:
            ages = sorted((_COUNT.unpack(packed)[1], domain) for domain, packed in cursor)
        dropped = 0
        for _, domain in ages:
            if dropped >= wanted:
                break
            for _, key in self._keys(txn, domain):
                dropped += txn.delete(key, db=self._db["votes"])
            txn.delete(domain, db=self._db["counts"])
        return dropped
