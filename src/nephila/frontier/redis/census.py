"""Lists of domains and hosts out of the shards of a crawl (`interfaces.census`).

A shard keeps hosts and domains in hashes that have no order, and does not know which hosts a domain has. It is walked a
few hundred entries a call, so that no call keeps the server from others for more than a millisecond or so, and added up
here. The walk remembers the hosts of a domain where they are not the usual ones, so that single domains
can be read afresh by name; what came since the last walk is missing from such a sum until the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nephila.frontier.embedded.lending import OUTSIDE
from nephila.interfaces.census import HOSTS_ADDED_UP, LIVELIEST, DomainFigures, HostFigures, Loan
from nephila.model.outcome import DeferReason
from nephila.model.task import Token

from .view import RedisFrontierView

HOSTS_AT_ONCE, DOMAINS_AT_ONCE = 200, 500
UNDER_AT_ONCE = 2000
"""Names that are looked through for those of one domain in a call."""
NAMED_AT_ONCE = 200
"""Domains of one shard that are read in one call."""
REMEMBERED = 1_000_000
"""Unusual hosts whose domains are remembered, some 150 MB; of more of them sums are those of the last walk."""
_STATES = ("idle", "waiting", "ready", "parked", "leased")
_HELD = frozenset({DeferReason.PAUSED, DeferReason.BLOCKED, DeferReason.ERRORS, DeferReason.HOURS})


class RedisCensus:
    """A `Census` of a frontier on Valkey."""

    def __init__(self, view: RedisFrontierView) -> None:
        self._view = view
        self._others: dict[str, list[str]] = {}
        """Hosts of domains beside the usual two, as the last walk found them."""
        self._remembered = 0

    def domains(self, after: bytes, limit: int) -> tuple[list[DomainFigures], bytes]:
        """Shard by shard: the mark is the number of the next one."""
        shard, found = int(after or b"0"), list[DomainFigures]()
        if shard == 0:
            self._remembered = 0
        while shard < self._view.shards.count and len(found) < limit:
            found += self._of_shard(shard)
            shard += 1
        return found, b"" if shard >= self._view.shards.count else b"%d" % shard

    def _of_shard(self, shard: int) -> list[DomainFigures]:
        hosts: dict[str, dict[str, HostFigures]] = {}
        for told in self._scan(shard, "census_hosts", HOSTS_AT_ONCE):
            name, domain = told[0].decode(), told[1].decode()
            hosts.setdefault(domain, {})[name] = _host(told, name)
        for domain, own in hosts.items():
            self._remember(domain, own)
        domains = {told[0]: told for told in self._scan(shard, "census_domains", DOMAINS_AT_ONCE)}
        return [_domain(told, hosts.get(told[0].decode(), {}).values()) for told in domains.values()]

    def _remember(self, domain: str, hosts: Iterable[str]) -> None:
        others = sorted(set(hosts) - set(_usual(domain)))[:HOSTS_ADDED_UP]
        if not others or self._remembered + len(others) > REMEMBERED:
            self._others.pop(domain, None)
            return
        self._remembered += len(others)
        self._others[domain] = others

    def _scan(self, shard: int, function: str, count: int, *more: str) -> Iterator[Sequence[Any]]:
        cursor = b"0"
        while True:
            cursor, found = self._view.ask(shard, function, cursor, count, *more)
            yield from found
            if cursor == b"0":
                return

    def named(self, names: Sequence[str]) -> list[DomainFigures]:
        """One call for each shard that has some of them."""
        by_shard: dict[int, list[str]] = {}
        for name in dict.fromkeys(names):
            by_shard.setdefault(self._view.shards.of_domain(name), []).append(name)
        questions: list[tuple[int, tuple[Any, ...]]] = []
        for shard, some in by_shard.items():
            for start in range(0, len(some), NAMED_AT_ONCE):
                part = some[start : start + NAMED_AT_ONCE]
                hosts = [host for name in part for host in (*_usual(name), *self._others.get(name, ()))]
                questions.append((shard, ("census_named", len(part), *part, *hosts)))
        found: dict[str, DomainFigures] = {}
        for domains, hosts in self._view.ask_all(questions):
            own: dict[bytes, list[HostFigures]] = {}
            for told in hosts:
                own.setdefault(told[1], []).append(_host(told, told[0].decode()))
            for told in domains:
                found[told[0].decode()] = _domain(told, own.get(told[0], ()))
        return [found[name] for name in names if name in found]

    def hosts(self, domain: str, limit: int, after: str = "") -> list[HostFigures]:
        """By name."""
        shard = self._view.shards.of_domain(domain)
        found = {
            name: _host(told, name)
            for told in self._scan(shard, "census_under", UNDER_AT_ONCE, domain)
            if (name := told[0].decode()) > after
        }
        return [found[name] for name in sorted(found)[:limit]]

    def longest_wait_s(self) -> float:
        """Over all shards."""
        waits = [now - since for now, since in self._view.ask_every("census_waits") if since >= 0]
        return max(0, *waits) / 1000 if waits else 0.0

    def loan(self, token: Token) -> Loan | None:
        """As the shard that gave the lease knows it."""
        told = self._view.ask(self._view.shards.of_token(token), "census_loan", token, str(OUTSIDE))
        return Loan(told[0].decode(), told[1], told[2]) if told else None


def _usual(domain: str) -> tuple[str, str]:
    """Hosts that most domains have, and have no others."""
    return domain, f"www.{domain}"


def _host(told: Sequence[Any], name: str) -> HostFigures:
    return HostFigures(
        host=name,
        state=_STATES[told[2]],
        reason=told[3].decode(),
        queued=told[4],
        fetched=told[5],
        delay_ms=told[6],
        mean_ms=told[7],
        parked=told[8],
        next_at=told[9],
        last_at=told[10],
    )


def _domain(told: Sequence[Any], hosts: Iterable[HostFigures]) -> DomainFigures:
    name, pages, count, errors, failing = told
    own = list(hosts)
    reasons = {host.reason for host in own}
    reason = next(iter(reasons & _HELD), "") if len(reasons) == 1 else ""
    states = {host.state for host in own}
    return DomainFigures(
        domain=name.decode(),
        pages=pages,
        hosts=count,
        queued=sum(host.queued for host in own),
        parked=sum(host.parked for host in own),
        errors=errors,
        delay_ms=max((host.delay_ms for host in own), default=0),
        mean_ms=max((host.mean_ms for host in own), default=0),
        state=next((state for state in LIVELIEST if state in states), "idle"),
        reason=DeferReason.ERRORS if failing else reason,
    )
