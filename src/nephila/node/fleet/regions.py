"""Regions (N6): domains that one group of workers alone may ask, by top-level domain or by list.

A region is a crawl of its own: its frontier, its tables and its part of the archive have the crawl's name with the
group's behind it. So nobody outside the group ever has such a URL in a queue that it claims from. A worker that meets a
link into another region hands it over to that region's frontier before its page is settled, as links to other shards
are; admission is idempotent, so a crash in between costs nothing. In its own frontier the URL is remembered as refused,
for `why`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nephila.frontier.moving import DomainRow, HostRow, OriginRow, RobotsRow, Row, TallyRow, UrlRow
from nephila.interfaces.frontier import Admission, Frontier
from nephila.model.errors import UsageError
from nephila.model.outcome import Settlement
from nephila.model.settings import Settings
from nephila.model.task import Candidate, Refusal
from nephila.urls import Address, Identifier, host_of, origin_of, registrable_domain, resolve

REASON = "region"
_GROUP = re.compile(r"[a-z][a-z0-9]{0,15}")
_HINT = "write GROUP=NAME,NAME, such as eu=de,fr,example.org"


class Regions:
    """Which group a domain belongs to."""

    def __init__(self, entries: Sequence[str]) -> None:
        """Raise `UsageError` for an entry that cannot be read."""
        self._pinned: dict[str, str] = {}
        for entry in entries:
            group, equals, names = entry.partition("=")
            if not equals or not _GROUP.fullmatch(group) or not names.strip():
                raise UsageError(f"fleet.regions: {entry!r} is not GROUP=NAME,NAME", _HINT)
            for name in names.split(","):
                known = _spelled(name)
                if self._pinned.setdefault(known, group) != group:
                    raise UsageError(f"fleet.regions: {known!r} is pinned twice", _HINT)

    def __bool__(self) -> bool:
        return bool(self._pinned)

    @property
    def groups(self) -> frozenset[str]:
        """Those that have a region."""
        return frozenset(self._pinned.values())

    def of(self, host: str) -> str:
        """The group that alone may ask a host; empty for those that are nobody's."""
        name = registrable_domain(host)
        while name:
            if (group := self._pinned.get(name)) is not None:
                return group
            name = name.partition(".")[2]
        return ""


def _spelled(name: str) -> str:
    """A name as hosts spell it; ``*.`` in front says nothing more. `UsageError` for one that no domain could have."""
    bare = name.strip().removeprefix("*").strip(".")
    url = resolve(None, f"https://{bare}/")
    host = "" if url is None else host_of(origin_of(url))
    if not host or url != f"https://{host}/" or ":" in bare or ".." in bare:
        raise UsageError(f"fleet.regions: {name!r} is no domain", _HINT)
    if (domain := registrable_domain(host)) != host:
        raise UsageError(f"fleet.regions: {name!r} is a part of {domain}, which is pinned as a whole or not", _HINT)
    return host


def unknown_group(settings: Settings) -> str:
    """What to say of a group that has no region where others have; empty where there is nothing to say."""
    groups = Regions(settings.fleet.regions).groups
    if not settings.fleet.group or not groups or settings.fleet.group in groups:
        return ""
    return f"the group {settings.fleet.group!r} has no region: fleet.regions names {', '.join(sorted(groups))}"


def regional(settings: Settings, group: str | None = None) -> Settings:
    """The settings of a group's crawl: those of its region where it has one, else those of the crawl as a whole.

    For who asks for the settings' own group, one without a region where others have is a slip: raises `UsageError`,
    since another crawl than was meant would answer.
    """
    if group is None and (told := unknown_group(settings)):
        raise UsageError(told, "name one of them, or none for what is nobody's")
    chosen = settings.fleet.group if group is None else group
    if chosen not in Regions(settings.fleet.regions).groups:
        return settings
    catalogue = settings.catalogue.name or settings.fleet.crawl
    return replace(
        settings,
        fleet=replace(settings.fleet, crawl=f"{settings.fleet.crawl}-{chosen}", group=chosen),
        catalogue=replace(settings.catalogue, name=f"{catalogue}-{chosen}"),
        archive=replace(settings.archive, url=f"{settings.archive.url.rstrip('/')}/{chosen}"),
    )


class AtHome:
    """Leaves out what is asked by others, of the rows of a frontier that was built from an archive (N8)."""

    def __init__(self, regions: Regions, group: str) -> None:
        self._regions = regions
        self._home = group if group in regions.groups else ""
        self.left_out = 0
        """URLs."""

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Those of our own hosts, and what belongs to no host."""
        kept = True
        for row in rows:
            match row:
                case DomainRow(name=host) | HostRow(name=host):
                    kept = here = self._regions.of(host) == self._home
                case UrlRow() | RobotsRow() | TallyRow():  # of the host above
                    here = kept
                    self.left_out += isinstance(row, UrlRow) and not kept
                case OriginRow(origin=origin):
                    here = self._regions.of(host_of(origin)) == self._home
                case _:
                    here = True
            if here:
                yield row


@dataclass(frozen=True, slots=True)
class Abroad:
    """The frontier of another region."""

    frontier: Frontier
    identifier: Identifier
    """Fingerprints are seeded with the secret of each crawl."""


class Border:
    """Sorts what is admitted by region, and hands over what belongs to others."""

    def __init__(self, regions: Regions, home: str, visit: Callable[[str], Awaitable[Abroad]]) -> None:
        """`home` is our own group, if it has a region; `visit` opens the frontier of another, once for each."""
        self._regions = regions
        self._home = home if home in regions.groups else ""
        self._visit = visit

    async def admit(self, candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Refusal], Admission]:
        """Hand over what belongs to others: what stays, what is refused here, and what became of the rest."""
        own, refused, abroad = self._sorted(candidates)
        added = known = 0
        for group, handed in abroad.items():
            told = await self._hand_over(group, handed)
            added, known = added + told.added, known + told.known
        return own, refused, Admission(added, known)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        """The same with the links of tasks that end."""
        kept: list[Settlement] = []
        for one in settlements:
            own, refused, _ = await self.admit(one.links)
            kept.append(replace(one, links=own, refused=[*one.refused, *refused]) if refused else one)
        return kept

    def check_own(self, domain: str) -> None:
        """UsageError for a domain that another group asks."""
        group = self._regions.of(domain)
        if group != self._home:
            who = f"the group {group}" if group else "the workers without a region"
            raise UsageError(f"{domain} is asked by {who} only", "serve that group: serve --config FILE --group GROUP")

    def _sorted(
        self, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], list[Refusal], Mapping[str, list[Candidate]]]:
        own: list[Candidate] = []
        refused: list[Refusal] = []
        abroad: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            group = self._regions.of(candidate.address.host)
            if group == self._home:
                own.append(candidate)
            else:
                abroad.setdefault(group, []).append(candidate)
                who = f"the workers of the group {group}" if group else "workers without a region"
                refused.append(Refusal(candidate.address, REASON, f"asked by {who} only"))
        return own, refused, abroad

    async def _hand_over(self, group: str, candidates: Sequence[Candidate]) -> Admission:
        abroad = await self._visit(group)
        there = [
            candidate._replace(address=address)
            for candidate in candidates
            if isinstance(address := abroad.identifier.identify(candidate.address.url), Address)
        ]
        return await abroad.frontier.admit(there)
