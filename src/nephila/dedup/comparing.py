"""From sightings to evidence: what was found under a URL is compared with what was found under another spelling of it.

Every page whose URL has a query leaves a *vote* for each parameter: at this place, under this value, that was found.
The next sighting of the place under another value makes a comparison, which is counted twice: for paths of that shape,
and for the whole domain. URLs without a query leave a vote only where their domain is known to have queries: they may
be stand-ins for others. Redirects and canonical links that only leave parameters out count as agreement too; but a
canonical link proves no stand-in, for that the page without the parameter must have been compared.

Origins are learned from redirects: the same path of another origin, and no other answer.

What must stay true: a sighting of a URL without query, of a domain without queries and rules, costs a look into a set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import msgspec
from xxhash import xxh3_64_digest

from nephila.model.alias import EVERYWHERE, AliasKind, Sighting
from nephila.urls import Address, origin_of, skeleton

from .alias_storage import AliasStorage, Tallies, Vote
from .alias_tally import Evidence, Subject
from .parameters import Place, content_name, missing, names_in, places

COMPARED_WITHIN_S = 86_400
"""Pages that were seen further apart are not compared: the page may have changed, whatever the parameter does."""
DOMAINS_WITH_QUERIES = 16_384

Standing = Callable[[str], Iterable[str]]
"""By the shape of a path, the parameters that may mean nothing there: a URL without them is a stand-in for others."""


class Comparer:
    """Compares sightings. Holds the votes that are not written yet."""

    def __init__(self, storage: AliasStorage, identify: Callable[[str], Address | None]) -> None:
        self._storage = storage
        self._identify = identify
        self._lock = threading.Lock()
        self._votes: dict[bytes, Vote] = {}
        self._with_queries: set[str] = set()

    def take_votes(self) -> dict[bytes, Vote]:
        """Hand over the votes that are not written yet."""
        with self._lock:
            votes, self._votes = self._votes, {}
        return votes

    def give_back(self, votes: dict[bytes, Vote]) -> None:
        """They could not be written."""
        with self._lock:
            self._votes = votes | self._votes

    def compare(self, seen: Sighting, tallies: Tallies, standing: Standing | None) -> list[Evidence]:
        """What a sighting says for and against rules of its domain."""
        queries = seen.domain in self._with_queries or standing is not None
        if not (tallies or queries or seen.location or "?" in seen.url):
            return []
        address = self._identify(seen.url)
        if address is None:
            return []
        found = self._origin_evidence(seen, address, tallies)
        if "?" in address.key:
            self._note_queries(seen.domain)
            queries = True
        return found + self._parameter_evidence(seen, address, tallies, standing) if queries else found

    def _note_queries(self, domain: str) -> None:
        if len(self._with_queries) >= DOMAINS_WITH_QUERIES:
            self._with_queries.clear()
        self._with_queries.add(domain)

    def _origin_evidence(self, seen: Sighting, address: Address, tallies: Tallies) -> list[Evidence]:
        """Whether an origin that is said to redirect has done so."""
        origin, at_s = origin_of(address.key), seen.at // 1000
        known = next((one for one in tallies if one.kind is AliasKind.HOST and one.scope == origin), None)
        target = self._identify(seen.location) if seen.location else None
        other = origin_of(target.key) if target is not None else ""
        if target is not None and other != origin and target.key[len(other) :] == address.key[len(origin) :]:
            subject = Subject(AliasKind.HOST, origin, "", other)
            if known is None or known == subject:
                path = xxh3_64_digest(address.key.encode())
                return [Evidence(subject, True, at_s, (seen.url, seen.location), path, place=True)]
        if known is None or tallies[known].settled:
            return []
        return [Evidence(known, False, at_s, (seen.url, seen.location or "no redirect"))]

    def _parameter_evidence(
        self, seen: Sighting, address: Address, tallies: Tallies, standing: Standing | None
    ) -> list[Evidence]:
        shape = skeleton(address.key.partition("?")[0])
        wanted = places(address.key, standing(shape) if standing is not None else ())
        unsettled = [place for place in wanted if not _is_settled(tallies, shape, place.name)]
        if not unsettled and tallies and all(tally.settled for tally in tallies.values()):
            return []  # all that is known of its domain matters: there is nothing to stand in for
        own = frozenset(names_in(address.key))
        content = b"" if seen.page is None else content_name(seen.page, own)
        if seen.page is not None and not content:
            return []  # a page without a text proves nothing
        evidence = self._hints(seen, address, shape)
        # A redirect that leaves parameters out is the site's word about these, and not an answer of another kind.
        spoken_for = {one.subject.name for one in evidence} if seen.location else set()
        for place in unsettled:
            if place.name in spoken_for:
                continue
            named = content
            if seen.page is not None and place.value is None:
                named = content_name(seen.page, own | {place.name})
            compared = self._compare(seen, place, named, shape)
            evidence += [compared] if compared is not None else []
        if content:
            bare = Place("", None, address.key)
            self._vote(_vote_key(seen.domain, bare), Vote(b"", content, seen.at // 1000, seen.url))
        return [one for narrow in evidence for one in (narrow, _widened(narrow, tallies))]

    def _compare(self, seen: Sighting, place: Place, content: bytes, shape: str) -> Evidence | None:
        """Leave a vote at a place, or compare with what lies there."""
        at_s, key = seen.at // 1000, _vote_key(seen.domain, place)
        value = b"" if place.value is None else xxh3_64_digest(place.value.encode())
        subject = Subject(AliasKind.PARAMETER, shape, place.name)
        vote = self._found(key, at_s)
        if vote is not None and (vote.value == value or not (vote.content or content)):
            return None  # nothing to compare: the same URL again, or two answers that were no pages
        mine = Vote(value, content, at_s, seen.url)
        if vote is not None and vote.content != content:
            self._vote(key, mine)
            return Evidence(subject, False, at_s, (vote.url, seen.url))
        other = self._bare(seen, place, content, at_s) or vote
        if other is None:
            self._vote(key, mine)
            return None
        new = vote is None or not vote.agreed
        if new:
            self._vote(key, msgspec.structs.replace(mine, agreed=True))
        stand_in = not (value and other.value)
        return Evidence(subject, True, at_s, (other.url, seen.url), content, place=new, stand_in=stand_in)

    def _found(self, key: bytes, at_s: int) -> Vote | None:
        """What was found at a place, unless it is too long ago."""
        vote = self._votes.get(key) or self._storage.vote(key)
        return vote if vote is not None and at_s - vote.at_s <= COMPARED_WITHIN_S else None

    def _bare(self, seen: Sighting, place: Place, content: bytes, at_s: int) -> Vote | None:
        """The same page as it was met without the parameter, before anybody thought of that.

        Another content proves nothing: links on it may carry the parameter, and it was not taken out of them.
        """
        if place.value is None or not content:
            return None
        vote = self._found(_vote_key(seen.domain, Place("", None, place.url)), at_s)
        return vote if vote is not None and vote.content == content else None

    def _hints(self, seen: Sighting, address: Address, shape: str) -> list[Evidence]:
        """Parameters that the site itself leaves out: in its canonical link, or by a redirect.

        Where a redirect leads is what would be asked for instead: it needs no other proof. A canonical link does.
        """
        other = seen.page.canonical if seen.page is not None else seen.location
        target = self._identify(other) if other and "?" in address.key else None
        if target is None:
            return []
        content, pair, at_s = xxh3_64_digest(target.key.encode()), (seen.url, other), seen.at // 1000
        sure = seen.page is None
        return [
            Evidence(
                Subject(AliasKind.PARAMETER, shape, name), True, at_s, pair, content, True, stand_in=sure, hint=True
            )
            for name in missing(address.key, target.key)
        ]

    def _vote(self, key: bytes, vote: Vote) -> None:
        with self._lock:
            self._votes[key] = vote


def _is_settled(tallies: Tallies, shape: str, name: str) -> bool:
    known = tallies.get(Subject(AliasKind.PARAMETER, shape, name))
    return known is not None and known.settled


def _widened(narrow: Evidence, tallies: Tallies) -> Evidence:
    """The same comparison as evidence for all paths of the domain."""
    known = tallies.get(narrow.subject)
    first = narrow.agrees and (known is None or known.agreed == 0)
    return narrow._replace(subject=narrow.subject._replace(scope=EVERYWHERE), shape=first)


def _vote_key(domain: str, place: Place) -> bytes:
    return xxh3_64_digest(domain.encode()) + xxh3_64_digest(f"{place.name}\n{place.url}".encode())
