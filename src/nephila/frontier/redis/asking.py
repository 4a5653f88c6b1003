"""What is asked of a shard, in words that its functions read: candidates, refusals, settlements as arguments.

Candidates are packed, all of a host together, because a page brings eighty of them; the rest is MessagePack. Packing
them is written in C too (`native/groups.c`), which is used where it was built; what stands here is what it does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest, xxh32_digest

from nephila.frontier import rank as ranks
from nephila.frontier import traps
from nephila.frontier.change import as_seen, said_mark
from nephila.interfaces.recrawl import History, RecrawlPolicy, Visit
from nephila.interfaces.repute import Repute
from nephila.model.outcome import (
    Dead,
    Deferred,
    Done,
    Dropped,
    Outcome,
    Release,
    Respelled,
    Retry,
    RulesLearned,
    RulesMoved,
)
from nephila.model.policy import Tier
from nephila.model.task import Candidate, PageTask, Refusal
from nephila.native import AVAILABLE, native
from nephila.urls import Address, Fingerprint, host_of

from .shards import Shards, domain_of

LONGEST_GAP_S = 30 * 86_400
"""Between two visits: then the second is a whole vote again (R1)."""
NO_LEVEL = 255
NO_GRADE = 255
"""Of a host whose domain no computation over the link graph knows (`lua/grades.lua`)."""
_GROUP = struct.Struct(">4sHB")
_CANDIDATE = struct.Struct(">8sBBBhI4sI")
_LONG = struct.Struct(">H")
_ALIKE = 1 << 15
"""Beside the length of the base: all candidates of the group have the same depth, class, hops and bonus."""
_KIND = slice(8, 13)
"""Where these are in the facts of a candidate."""
_SHARED = 255
"""Bytes of the base that a tail may begin with; and a rest that is as long says its length in two bytes more."""
MANY = b"\1"
"""Behind the facts of a group: each of its links stands for several."""
_HOMES = frozenset({b"s/", b"h/"})

Args = list[Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a shard told of a page when it was claimed: what its links bring and its next visit follow from it."""

    fetched: int = 0
    history: History = History()
    rank: int = 0
    domain_pages: int = 0
    tier: Tier = Tier.NORMAL
    recrawl_s: float | None = None


@dataclass(slots=True)
class Asked:
    """Candidates and refusals for one shard."""

    groups: dict[str, list[Candidate]] = field(default_factory=dict)
    """By host."""
    again: dict[str, list[Candidate]] = field(default_factory=dict)
    """What was told before, and stands for several links (`told`)."""
    refused: list[Refusal] = field(default_factory=list)

    @property
    def group_count(self) -> int:
        """Groups of candidates that it comes to as arguments."""
        return len(self.groups) + len(self.again)


def tail_of(host: str, url: str) -> bytes:
    """A URL without what its host tells: a mark of the scheme and the rest, or the whole behind a =."""
    for mark, scheme in (("s", "https://"), ("h", "http://")):
        rest = url.removeprefix(scheme + host)
        if rest is not url and rest[:1] in {"/", ":", "?"}:
            return (mark + rest).encode()
    return b"=" + url.encode()


def divided(
    shards: Shards, candidates: Sequence[Candidate], refused: Sequence[Refusal]
) -> tuple[dict[int, Asked], int]:
    """Candidates by shard and host, each URL once, and refusals by shard; and how many candidates were of a URL twice.

    Of two for one URL, what is best of both: the least depth, the most urgent class.
    """
    hosts: dict[str, dict[bytes, Candidate]] = {}
    twice = 0
    for candidate in candidates:
        _, host, _, name = candidate[0]
        group = hosts.get(host)
        if group is None:
            hosts[host] = {name: candidate}
        elif name not in group:
            group[name] = candidate
        else:
            one, twice = group[name], twice + 1
            levels = [level for level in (one.level, candidate.level) if level is not None]
            group[name] = one._replace(depth=min(one.depth, candidate.depth), level=min(levels, default=None))
    found: dict[int, Asked] = {}
    for host, group in hosts.items():
        found.setdefault(shards.of_host(host), Asked()).groups[host] = list(group.values())
    for refusal in refused:
        found.setdefault(shards.of_host(refusal.address.host), Asked()).refused.append(refusal)
    return found, twice


def grade_in(repute: Repute | None, host: str) -> int:
    """The grade of a host's domain, as it is given to a shard; `repute` is None where there are no grades."""
    grade = None if repute is None else repute.grade_of(host)
    return NO_GRADE if grade is None else grade


def grades_of(repute: Repute | None, hosts: Iterable[bytes]) -> dict[str, int]:
    """The grades of hosts that a shard asks for."""
    return {host: grade_in(repute, host) for host in (name.decode() for name in hosts)}


def divided_again(shards: Shards, again: Sequence[Candidate], found: dict[int, Asked]) -> int:
    """The same for what was told before, into what was found; how many candidates were of a URL twice."""
    parts, twice = divided(shards, again, ())
    for shard, asked in parts.items():
        found.setdefault(shard, Asked()).again = asked.groups
    return twice


def link_args(asked: Asked, seed: int, salt: int | None, repute: Repute | None = None) -> Args:
    """The candidates of a shard as arguments: first those that are told as they are."""
    args = group_args(asked.groups, seed, salt, repute)
    if not asked.again:
        return args
    again = group_args(asked.again, seed, salt, repute)
    again[2::4] = [facts + MANY for facts in again[2::4]]
    return args + again


def group_args(
    groups: Mapping[str, Sequence[Candidate]], seed: int, salt: int | None, repute: Repute | None = None
) -> Args:
    """Candidates as arguments, four for each host (`lua/links.lua` says what is in them).

    Their tails come as they are to lie in a bundle, without what they have in common with one of them, so that the
    engine has only to cut out those that are new. `salt` is what the draws of their page have in common, None where
    nothing is drawn. `repute` knows the grades of their domains, None where there are none.
    """
    args: Args = []
    for host, candidates in groups.items():
        args += (host, domain_of(host), *pack_group(host, candidates, seed & 0xFFFF_FFFF, salt, grade_in(repute, host)))
    return args


def plain_pack_group(
    host: str, candidates: Sequence[Candidate], seed: int, salt: int | None, grade: int
) -> tuple[bytes, bytes]:
    """Facts and items of a host's candidates."""
    name, pack = host.encode(), _CANDIDATE.pack
    tails = [tail_of(host, candidate.address.url) for candidate in candidates]
    base = tails[len(tails) // 2]  # what stands in the middle of a page is like most of it; menus come first
    facts: list[bytes] = []
    items, begin = [base], len(base)
    for (address, depth, level, hops, bonus), tail in zip(candidates, tails, strict=True):
        facts.append(
            pack(
                address.fingerprint[:8],
                min(depth, 255),
                NO_LEVEL if level is None else level,
                min(hops, 255),
                bonus,
                0 if salt is None else ranks.chance_of(address.key.encode(), salt),
                xxh32_digest(name + tail, seed),
                begin,
            )
        )
        item = _item(address.fingerprint, base, tail)
        items.append(item)
        begin += len(item)
    alike = _ALIKE if len({fact[_KIND] for fact in facts}) == 1 else 0
    return b"".join([_GROUP.pack(xxh32_digest(name, seed), len(base) | alike, grade), *facts]), b"".join(items)


pack_group: Callable[[str, Sequence[Candidate], int, int | None, int], tuple[bytes, bytes]] = (
    native.pack_group if AVAILABLE else plain_pack_group
)


def _item(fingerprint: bytes, base: bytes, tail: bytes) -> bytes:
    """A URL as it lies in a bundle with that base (`lua/bundles.lua`)."""
    most = min(len(base), len(tail), _SHARED)
    differing = int.from_bytes(base[:most]) ^ int.from_bytes(tail[:most])  # zeros as far as they are alike
    begins = most - (differing.bit_length() + 7) // 8
    rest = tail[begins:]
    if len(rest) < _SHARED:
        return b"%b%c%c%b" % (fingerprint, begins, len(rest), rest)
    return b"%b%c%c%b%b" % (fingerprint, begins, _SHARED, _LONG.pack(len(rest)), rest)


def refusal_args(refused: Sequence[Refusal]) -> Args:
    """Refusals as arguments."""
    args: Args = []
    for address, reason, detail in refused:
        args += (address.host, address.fingerprint, address.url, reason, detail)
    return args


def patterns_of(urls: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """The patterns that URLs are counted under, each with the name of its shelf."""
    return {url: [(one, xxh3_64_hexdigest(one.encode())) for one in traps.patterns(url)] for url in urls}


def domain_bit(domain: str) -> int:
    """Which bit stands for a domain among those that link to a host (F5)."""
    return xxh3_64_intdigest(domain.encode()) % 64


def source_of(url: str = "", first_rank: int = ranks.SEED_RANK) -> dict[str, Any]:
    """A source that shares nothing out: seeds, lists."""
    return {"via": url, "bit": -1, "domain": "", "salt": 0, "first_rank": first_rank}


def source_of_page(task: PageTask, domain: str, outcome: Done, links: int, facts: Facts, wall_s: int) -> dict[str, Any]:
    """A page as the source of links to other shards: its own shard works the same out when it is settled."""
    outlinks = max(outcome.outlinks, links)
    weight = ranks.weight_of(wall_s - facts.history.last_s, LONGEST_GAP_S) if facts.fetched else 1.0
    source: dict[str, Any] = {
        "via": task.url,
        "bit": domain_bit(domain),
        "domain": domain,
        "salt": salt_of(task, facts),
        "first_rank": ranks.SEED_RANK,
    }
    if outlinks:
        source["share"] = ranks.steps(facts.rank, outlinks, facts.domain_pages + 1, weight)
    return source


def salt_of(task: PageTask, facts: Facts) -> int:
    """What the draws of a page's links have in common."""
    return ranks.salt_of(task.url.encode(), facts.fetched)


def page_outcome(  # noqa: PLR0911 - one for each kind
    task: PageTask,
    host: str,
    outcome: Outcome,
    facts: Facts,
    recrawl: RecrawlPolicy | None,
    wall_s: int,
    patterns: Callable[[str], None],
) -> dict[str, Any]:
    """How a page ended; `patterns` is told the URLs whose patterns are needed for it."""
    match outcome:
        case Done():
            patterns(task.url)
            return _done(task, host, outcome, facts, recrawl, wall_s)
        case Retry(wait_ms, kind, detail):
            return {"kind": "retry", "wait_ms": wait_ms, "reason": kind, "detail": detail}
        case Deferred(wait_ms, reason):
            return {"kind": "deferred", "wait_ms": wait_ms, "reason": str(reason)}
        case Dropped(reason, detail):
            return {"kind": "dropped", "reason": reason, "detail": detail}
        case Dead(kind, detail):
            return {"kind": "dead", "reason": kind, "detail": detail}
        case Respelled(address):
            return {"kind": "respelled", "tail": tail_of(host, address.url).decode()}
        case _:
            return {"kind": "wrong", "why": "a page cannot end with the rules of an origin"}


def _done(
    task: PageTask, host: str, done: Done, facts: Facts, recrawl: RecrawlPolicy | None, wall_s: int
) -> dict[str, Any]:
    root, done = task.url[: task.url.find("/", 8) + 1], as_seen(facts.history, done)
    told: dict[str, Any] = {
        "kind": "done",
        "status": done.status,
        "segment": done.ref.segment,
        "offset": done.ref.offset,
        "finish": done.ref.end,
        "etag": done.validators.etag,
        "last_modified": done.validators.last_modified,
        "changed": done.changed,
        "page": done.page,
        "lied": done.lied,
        "duplicate": done.duplicate,
        "near": done.near,
        "outlinks": done.outlinks,
        "salt": salt_of(task, facts),
        "bit": domain_bit(domain_of(host)),
        "found_on": traps.patterns(task.via) if task.via.startswith(root) else (),
        "abroad": 0,
    }
    if recrawl is not None:
        home = tail_of(host, task.url) in _HOMES
        visit = Visit(
            wall_s,
            done.status,
            done.changed,
            home,
            facts.tier,
            facts.recrawl_s,
            done.listing,
            done.expected_s,
            said_mark(done),
        )
        planned = recrawl.plan(facts.history, visit)
        told["plan"] = {
            "history": planned.history,
            "wait_s": planned.wait_s,
            "gone": planned.gone,
            "tier": str(facts.tier),
            "recrawl_s": -1 if facts.recrawl_s is None else facts.recrawl_s,
        }
    return told


def poured(url: str, candidates: Sequence[Candidate]) -> str:
    """Which of a host's candidates a page pours out (T1): 0 or 1 for each, empty where it is none of them."""
    prefix = traps.pour_prefix(url)
    return "".join("01"[one.address.url.startswith(prefix)] for one in candidates) if prefix else ""


def rules_told(learned: RulesLearned) -> dict[str, Any]:
    """Rules without their text."""
    rules = learned.rules
    return {
        "origin": rules.origin,
        "host": host_of(rules.origin),
        "kind": str(rules.kind),
        "stored_at": rules.stored_at,
        "fresh_until": rules.fresh_until,
        "status": rules.status,
        "failing_since": rules.failing_since,
        "detail": rules.detail,
    }


def target_told(moved: RulesMoved) -> dict[str, Any]:
    """Where the next hop of a robots.txt waits."""
    address: Address = moved.address
    return {
        "origin": moved.origin,
        "host": address.host,
        "domain": domain_of(address.host),
        "url": address.url,
        "hops": moved.hops,
    }


def release_told(release: Release, wait_ms: int) -> dict[str, Any]:
    """How a host is freed."""
    told: dict[str, Any] = {
        "wait_ms": wait_ms,
        "delay_ms": release.pace.delay_ms,
        "crawl_delay_ms": release.pace.crawl_delay_ms,
        "elapsed_ms": release.elapsed_ms,
    }
    if release.reason is not None:
        told["reason"] = str(release.reason)
    return told


def changed_by_position(
    groups: Mapping[str, Sequence[Candidate]], changed: Mapping[Fingerprint, int]
) -> dict[str, int]:
    """When candidates are said to have changed, by their position in the call."""
    at, found = 0, dict[str, int]()
    for candidates in groups.values():
        for candidate in candidates:
            at += 1
            said = changed.get(candidate.address.fingerprint, 0)
            if said:
                found[str(at)] = said
    return found
