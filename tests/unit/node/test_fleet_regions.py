"""Domains that one group of workers alone may ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from nephila.frontier.moving import DomainRow, HostRow, OriginRow, Row, ScopeRow, TallyRow, UrlRow
from nephila.interfaces.frontier import Admission
from nephila.model.errors import UsageError
from nephila.model.outcome import Dropped, Settlement
from nephila.model.settings import ArchiveSettings, FleetSettings, Settings
from nephila.model.task import Candidate, Level, PageTask
from nephila.node.fleet.regions import REASON, Abroad, AtHome, Border, Regions, regional, unknown_group
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

ENTRIES = ("eu=de,fr,example.org", "uk=co.uk")
HOME, ELSEWHERE = (Identifier(secret, NormalRules(), UrlLimits()) for secret in (1, 2))


class Frontier:
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.admitted: list[Candidate] = []

    async def admit(self, candidates: Sequence[Candidate], *_: object) -> Admission:
        self.admitted += candidates
        return Admission(len(candidates), 0)


def candidate(url: str) -> Candidate:
    address = HOME.identify(url)
    assert isinstance(address, Address)
    return Candidate(address, 3, Level.HIGH, hops=1)


def test_a_domain_is_pinned_by_its_name_or_by_what_stands_above_it() -> None:
    """N6: hosts follow their registrable domain; who is pinned nowhere is nobody's."""
    regions = Regions(ENTRIES)
    assert regions.groups == {"eu", "uk"}
    pinned = {"www.spinne.de": "eu", "example.org": "eu", "a.b.example.org": "eu", "shop.co.uk": "uk"}
    assert {host: regions.of(host) for host in pinned} == pinned
    assert {regions.of(host) for host in ("example.com", "notexample.org", "de.example.com", "192.0.2.1")} == {""}
    assert not Regions(())


def test_a_name_is_pinned_however_it_is_spelled() -> None:
    """N6: hosts of links are in ASCII, and small."""
    regions = Regions(("eu=Spinnen-Köln.de, *.fr", "jp=.jp"))
    hosts = ("www.xn--spinnen-kln-zfb.de", "example.fr", "example.jp", "example.de")
    assert [regions.of(host) for host in hosts] == ["eu", "eu", "jp", ""]


@pytest.mark.parametrize("name", ["www.example.org", "https://example.org", "example.org/de", "de:443", "a..b", "d e"])
def test_a_name_that_would_pin_nothing_is_refused(name: str) -> None:
    """N6, C4: else its domain would be asked from everywhere, and nobody would know."""
    with pytest.raises(UsageError, match=r"is no domain|is a part of example\.org"):
        Regions((f"eu=de,{name}",))


@pytest.mark.parametrize("entry", ["eu", "eu=", "=de", "EU=de", "eu=de,,fr", "a b=de"])
def test_an_entry_that_makes_no_sense_is_refused(entry: str) -> None:
    """N6, C4: with a sentence that says how it is written."""
    with pytest.raises(UsageError, match=r"fleet\.regions"):
        Regions((entry,))


def test_a_domain_cannot_be_pinned_to_two_groups() -> None:
    """N6: else two groups would ask it."""
    with pytest.raises(UsageError, match="pinned twice"):
        Regions(("eu=de", "jp=jp,de"))


def test_a_region_is_a_crawl_of_its_own() -> None:
    """N6, N7: names, tables and archive; a group without a region works on the crawl itself."""
    settings = Settings(fleet=FleetSettings(crawl="web", regions=ENTRIES), archive=ArchiveSettings(url="s3://b/web/"))
    there = regional(replace(settings, fleet=replace(settings.fleet, group="eu")))
    assert (there.fleet.crawl, there.catalogue.name, there.archive.url) == ("web-eu", "web-eu", "s3://b/web/eu")
    assert regional(settings) is settings
    assert regional(settings, "other") is settings


def test_a_region_that_is_not_there_is_not_taken_for_the_whole() -> None:
    """N6: who mistypes a group is told which there are; a group is but a name where there are no regions."""
    fleet = FleetSettings(crawl="web", regions=ENTRIES, group="ue")
    with pytest.raises(UsageError, match=r"the group 'ue' has no region: fleet\.regions names eu, uk"):
        regional(Settings(fleet=fleet))
    plain = Settings(fleet=replace(fleet, regions=()))
    assert regional(plain) is plain
    assert unknown_group(plain) == ""


def test_what_belongs_to_another_group_is_handed_over_and_refused_here() -> None:
    """N6: known there under that crawl's own fingerprints, before the page it was found on is settled."""
    abroad, visited = {group: Frontier() for group in ("", "eu", "uk")}, list[str]()

    async def visit(group: str) -> Abroad:
        visited.append(group)
        return Abroad(abroad[group], ELSEWHERE)  # type: ignore[arg-type]  # as much of one as is asked

    async def run() -> None:
        border = Border(Regions(ENTRIES), "eu", visit)
        own, refused, told = await border.admit(
            [candidate("https://spinne.de/a"), candidate("https://shop.co.uk/b"), candidate("https://example.com/c")]
        )
        assert [one.address.url for one in own] == ["https://spinne.de/a"]
        assert [(one.address.url, one.reason) for one in refused] == [
            ("https://shop.co.uk/b", REASON),
            ("https://example.com/c", REASON),
        ]
        assert told == Admission(2, 0)
        (handed,) = abroad["uk"].admitted
        assert handed == candidate("https://shop.co.uk/b")._replace(address=ELSEWHERE.identify("https://shop.co.uk/b"))
        task = PageTask("https://spinne.de/", candidate("https://spinne.de/").address.fingerprint, 0, Level.HIGH)
        plain = Settlement(task, Dropped("x"), [candidate("https://spinne.de/d")])
        mixed = Settlement(task, Dropped("x"), [candidate("https://spinne.de/d"), candidate("https://shop.co.uk/e")])
        assert await border.settle([plain]) == [plain]
        (kept,) = await border.settle([mixed])
        assert [one.address.url for one in kept.links] == ["https://spinne.de/d"]
        assert [one.address.url for one in kept.refused] == ["https://shop.co.uk/e"]
        assert set(visited) == {"uk", ""}

    asyncio.run(run())


def test_an_order_about_a_domain_of_another_group_is_refused() -> None:
    """N6, R4: a policy would hold for nobody there; the sentence says who asks it."""

    async def visit(group: str) -> Abroad:
        raise AssertionError(group)

    border = Border(Regions(ENTRIES), "eu", visit)
    border.check_own("example.org")
    with pytest.raises(UsageError, match="the group uk only"):
        border.check_own("shop.co.uk")
    with pytest.raises(UsageError, match="without a region"):
        border.check_own("example.net")


def test_what_was_built_from_an_archive_holds_no_url_of_another_group() -> None:
    """N6, N8: links into other regions stand in the archive; nobody outside the group has them in a queue."""

    def of(host: str) -> list[Row]:
        origin = OriginRow(f"http://{host}:81", "rules", 1, 2)
        url = UrlRow(fp="0" * 32, url=f"http://{host}/", rank=1, level=2, depth=1, admitted_s=1)
        return [DomainRow(name=host), HostRow(name=host), url, TallyRow({}), origin]

    everything: list[Row] = [ScopeRow("a"), *of("a.de"), *of("b.com"), *of("c.co.uk")]
    for group, wanted in (("", of("b.com")), ("eu", of("a.de")), ("uk", of("c.co.uk")), ("none", of("b.com"))):
        home = AtHome(Regions(ENTRIES), group)
        assert list(home.rows(iter(everything))) == [ScopeRow("a"), *wanted]
        assert home.left_out == 2
    assert list(AtHome(Regions(()), "").rows(iter(everything))) == everything
