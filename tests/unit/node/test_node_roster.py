"""The list of domains: filled beside, searched and sorted, walked no more often than it is worth."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nephila.interfaces.census import DomainFigures
from nephila.node import roster
from nephila.node.roster import Roster


class Domains:
    """A census of made-up domains; each step may be held up."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.walks = 0
        self.gate: asyncio.Event | None = None

    def domains(self, after: bytes, limit: int) -> tuple[list[DomainFigures], bytes]:
        first = int(after or b"0")
        self.walks += first == 0
        last = min(self.count, first + limit)
        found = [_figures(number) for number in range(first, last)]
        return found, str(last).encode() if last < self.count else b""


def _figures(number: int) -> DomainFigures:
    return DomainFigures(f"d{number:05d}.test", number % 7, 1, number % 11, 0, number % 3, 1000, 50, "idle", "")


async def complete(one: Roster) -> None:
    """Wait for the walk that is under way."""
    await asyncio.shield(one._walking or asyncio.sleep(0))


def listed(found: Roster, **asked: Any) -> Any:
    order = {"search": "", "sort": "domain", "descending": False, "offset": 0, "limit": 5, **asked}
    return found.list(**order)


def test_domains_are_searched_sorted_and_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    """C3: by any column, either way, equals by name; a search counts what matches."""
    monkeypatch.setattr(roster, "PATIENCE_S", 60.0)  # however busy the machine is

    async def main() -> None:
        one = Roster(Domains(1200))  # type: ignore[arg-type]
        first = await listed(one)
        assert (first.names[:2], first.total, first.complete) == (["d00000.test", "d00001.test"], 1200, True)
        most = await listed(one, sort="queued", descending=True)
        assert most.names == [f"d{n:05d}.test" for n in (10, 21, 32, 43, 54)]
        assert (await listed(one, sort="pages")).names[0] == "d00000.test"
        found = await listed(one, search="D0010", offset=8, limit=50)
        assert (found.names, found.total) == (["d00108.test", "d00109.test"], 10)
        assert (await listed(one, offset=5000)).names == []

    asyncio.run(main())


def test_a_domain_is_found_by_the_letters_that_people_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """C3: names are kept in ASCII, and searched in either spelling; what only looks like one does no harm."""
    monkeypatch.setattr(roster, "PATIENCE_S", 60.0)
    names = ["xn--bcher-kva.test", "xn--strae-oqa.test", "xn--\u00fc.test", "xn--99999999.test", "bucher.test"]
    figures = [_figures(0)._replace(domain=name) for name in names]
    census = Domains(0)
    monkeypatch.setattr(census, "domains", lambda _after, _limit: (figures, b""))

    async def main() -> None:
        one = Roster(census)  # type: ignore[arg-type]
        assert (await listed(one, search="B\u00dcCH")).names == ["xn--bcher-kva.test"]
        assert (await listed(one, search="\u00dfe.te")).names == ["xn--strae-oqa.test"]
        assert (await listed(one, search="xn--b")).names == ["xn--bcher-kva.test"]
        assert (await listed(one, search="\u00f6")).total == 0

    asyncio.run(main())


def test_a_list_is_walked_again_only_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """C3, O2: never more often than a hundred times as long as a walk takes."""
    monkeypatch.setattr(roster, "PATIENCE_S", 60.0)

    async def main() -> None:
        now = [1000.0]
        domains = Domains(10)
        one = Roster(domains, lambda: now[0])  # type: ignore[arg-type]
        for _ in range(5):
            await listed(one)
        assert domains.walks == 1
        now[0] += 6
        await listed(one)
        await complete(one)  # the walk goes on beside
        assert domains.walks == 2
        await one.close()

    asyncio.run(main())


def test_the_first_list_does_not_wait_for_a_long_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """C3, Q3: it is answered with what there is, says so, and is complete later; too many domains are cut."""

    async def main() -> None:
        monkeypatch.setattr(roster, "STEP", 10)
        monkeypatch.setattr(roster, "PATIENCE_S", 0.0)
        one = Roster(Domains(3000))  # type: ignore[arg-type]
        first = await listed(one)
        assert not first.complete
        await complete(one)
        assert (await listed(one)).complete
        assert (await listed(one)).total == 3000
        monkeypatch.setattr(roster, "MOST", 100)
        cut = Roster(Domains(3000))  # type: ignore[arg-type]
        await listed(cut)
        await complete(cut)
        assert (await listed(cut)).total == 100
        assert not (await listed(cut)).complete
        await one.close()
        await cut.close()

    asyncio.run(main())
