"""Takedowns on whole simulated crawls: nothing is left, everything else is untouched, and it can be proven."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import cut_takedowns
import pytest
from simulation import PATIENT, Simulated, simulate
from warc_checks import check_archives

from nephila.config import write_stored
from nephila.engines.disk import LocalDisk
from nephila.model.events import Event, EventKind
from nephila.node.audit import audit
from nephila.node.reporting import report_on
from nephila.node.takedown import Order, Takedown, TakedownFolder, TakedownState
from nephila.store.readback import units
from nephila.store.reader import WarcReader, WarcRecord
from nephila.store.rewriting import Rewriting, write_draft
from nephila.store.tombstone import is_tombstone
from nephila.store.warc import PROFILE_NOT_MODIFIED
from nephila.testing.clock import VirtualClock
from nephila.testing.renderer import SimulatedRenderer
from nephila.testing.web import ScriptSite, SimulatedWeb, WebSpec
from nephila.testing.web.atlas import Spot
from nephila.testing.web.roles import Role
from nephila.testing.web.spec import PageMix, WireMix
from nephila.testing.web.wire import ServedAnswer, write_answer

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
COPIES = replace(
    WebSpec.standard(5),
    hosts=12,
    pages=150,
    page_bytes=1500,
    links_per_page=10,
    page_mix=PageMix(duplicate=0.2, near=0.1),
    wire=WireMix(0, 0, 0, 0, 0, 0, 0, 0),
)
"""Much is said twice, in the same bytes."""


class AskedConditionally(SimulatedWeb):
    """Every page has a validator of its own, and is answered with 304 by it; pages that say the same, too."""

    def _content(self, spot: Spot, role: Role, headers: Mapping[str, str], now: int) -> ServedAnswer:
        etag = f'"{spot.host}-{spot.page}"'
        if headers.get("if-none-match") == etag:
            return write_answer(304, [("ETag", etag)], b"")
        answer = super()._content(spot, role, headers, now)
        head = answer.head.replace(b"\r\nETag:", b"\r\nX-Was:").replace(b"\r\nLast-Modified:", b"\r\nX-Then:")
        return replace(answer, head=head.removesuffix(b"\r\n") + f"ETag: {etag}\r\n\r\n".encode())


ROLLING = replace(PATIENT, archive=replace(PATIENT.archive, max_bytes=30_000))


@dataclass(frozen=True)
class Crawled:
    """A crawl that has ended, and what time it is."""

    ended: Simulated
    clock: VirtualClock

    @property
    def out(self) -> Path:
        return self.ended.out


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    clock = VirtualClock()
    return Crawled(
        simulate(SimulatedWeb(COPIES), tmp_path_factory.mktemp("web") / "crawl", ROLLING, clock=clock), clock
    )


@pytest.fixture
def crawled(template: Crawled, tmp_path: Path) -> Crawled:
    shutil.copytree(template.out, tmp_path / "crawl", ignore=shutil.ignore_patterns("lock.mdb"))
    return Crawled(replace(template.ended, out=tmp_path / "crawl"), template.clock)


def rows(out: Path, query: str, *values: object) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(out / "catalogue.sqlite")
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def records(out: Path) -> Iterator[tuple[str, WarcRecord]]:
    disk = LocalDisk()
    for path in sorted((out / "warc").glob("*.warc.gz")):
        file = disk.open(path)
        try:
            for record in WarcReader(file, path.name):
                yield path.name, record
        finally:
            file.close()


def places(out: Path) -> dict[tuple[str, int], bytes]:
    """Every record that is no tombstone, by where it lies."""
    return {(name, one.offset): one.block for name, one in records(out) if not is_tombstone(one)}


def copied(out: Path) -> tuple[str, str]:
    """A page that another one is a revisit of, and that other one."""
    found = rows(
        out, "SELECT duplicate_of, url FROM captures WHERE kind = 'revisit' AND status = 200 AND duplicate_of != ''"
    )
    original, copy = next((str(one), str(other)) for one, other in found if one != other)
    return original, copy


def order(out: Path, *, urls: tuple[str, ...] = (), domains: tuple[str, ...] = ()) -> Takedown:
    return TakedownFolder(out / "takedowns").add(Order(urls, domains, "they asked us", "test"), 1)


def carried_out(crawled: Crawled, **wanted: tuple[str, ...]) -> Takedown:
    """Order it, and let a run that fetches nothing carry it out."""
    ordered = order(crawled.out, **wanted)
    settings = replace(ROLLING, limits=replace(ROLLING.limits, max_wait_s=0.0))
    simulate(crawled.ended.web, crawled.out, settings, seeds=[], clock=crawled.clock)
    done = TakedownFolder(crawled.out / "takedowns").get(ordered.id)
    assert done is not None
    return done


def everything(out: Path) -> bytes:
    """What a crawl directory says of pages, unpacked, but for what keeps a URL from being fetched again."""
    blocks = [one.block + repr(one.fields).encode() for _, one in records(out)]
    indexes = [path.read_bytes() for path in sorted((out / "warc").glob("*.cdxj"))]
    events = [path.read_bytes() for path in sorted((out / "events").glob("*.jsonl"))]
    return b"\n".join([*blocks, *indexes, *events])


def test_a_page_is_gone_from_everything_and_all_else_lies_where_it_lay(crawled: Crawled) -> None:
    """K2, W5: archives, index, catalogue, events; every other record keeps its place and its bytes."""
    out = crawled.out
    original, copy = copied(out)
    before, pages = places(out), len(rows(out, "SELECT 1 FROM pages"))
    done = carried_out(crawled, urls=(original,))
    assert done.state is TakedownState.DONE
    assert done.captures >= 1
    assert done.emptied >= 1, "the copy has lost its payload, and the record says so"
    assert not rows(out, "SELECT 1 FROM captures WHERE url = ? OR duplicate_of = ?", original, original)
    assert len(rows(out, "SELECT 1 FROM pages")) == pages - 1
    assert [one for _, one in records(out) if one.target == original] == []
    refers = {one.get("warc-refers-to-target-uri") for _, one in records(out)}
    assert original not in refers
    after = places(out)
    assert after.keys() <= before.keys()
    changed = [place for place in after if after[place] != before[place]]
    assert len(changed) <= done.emptied, "only the metadata of what was nearly the same, or the same"
    for path in (out / "events").glob("*.jsonl"):
        assert f'"url":"{original}"'.encode() not in path.read_bytes()
    check_archives(out)
    assert rows(out, "SELECT 1 FROM captures WHERE url = ?", copy)


def test_a_page_that_has_not_changed_does_not_name_what_it_was_a_copy_of(tmp_path: Path) -> None:
    """K2, H3: a 304 refers to whoever had its content first; nothing in the catalogue says so."""
    clock, web = VirtualClock(), AskedConditionally(COPIES)
    simulate(web, tmp_path / "crawl", ROLLING, clock=clock)
    ended = simulate(web, tmp_path / "crawl", ROLLING, clock=clock, new_cycle=True)
    out = ended.out
    unchanged = [one for _, one in records(out) if one.get("warc-profile") == PROFILE_NOT_MODIFIED]
    original = next(one for each in unchanged if (one := each.get("warc-refers-to-target-uri")) != each.target)
    done = carried_out(Crawled(ended, clock), urls=(original,))
    assert done.state is TakedownState.DONE
    assert original not in {one.get("warc-refers-to-target-uri") for _, one in records(out)}
    kept = [one for _, one in records(out) if one.get("warc-profile") == PROFILE_NOT_MODIFIED]
    assert {one.target for one in kept} == {one.target for one in unchanged} - {original}
    copies = rows(out, "SELECT count(*) FROM captures WHERE kind = 'revisit' AND duplicate_of = '' AND status = 200")
    assert done.emptied == copies[0][0], "a 304 had no payload to lose"
    check_archives(out)
    found = audit(out)
    assert found.is_clean, (found.findings[:3], found.trail.breaches[:3])


def test_what_a_browser_was_given_for_a_page_goes_with_it(tmp_path: Path) -> None:
    """K2, J4: what the scripts made of it, and what they had asked for; those of other pages stay."""
    clock = VirtualClock()
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(ScriptSite(6, label="spa"),)))
    ended = simulate(web, tmp_path / "crawl", ROLLING, clock=clock, renderer=SimulatedRenderer())
    url = "http://spa-0.test/view/1"
    text = next(one.block for _, one in records(ended.out) if one.target == "http://spa-0.test/data/view/1.json")
    done = carried_out(Crawled(ended, clock), urls=(url,))
    assert done.captures == 2, "the page, and its data"
    left = {one.target for _, one in records(ended.out)}
    assert not left & {url, f"urn:nephila:rendered:{url}", "http://spa-0.test/data/view/1.json"}
    assert left >= {"http://spa-0.test/data/view/2.json", "http://spa-0.test/static/app.js"}
    assert text[-200:] not in everything(ended.out)
    found = audit(ended.out)
    assert found.is_clean, (found.findings[:3], found.trail.breaches[:3])


def test_what_is_taken_down_is_not_fetched_again_and_its_copies_are(crawled: Crawled) -> None:
    """K2, T7: not in a new cycle, not by another spelling; a page that lost its payload is stored in full."""
    out = crawled.out
    original, copy = copied(out)
    carried_out(crawled, urls=(original,))
    again = simulate(crawled.ended.web, out, ROLLING, seeds=[f"{original}#x"], clock=crawled.clock, new_cycle=True)
    asked = [f"http://{one.host}{one.target}" for one in again.sent]
    assert original not in asked
    assert copy in asked
    assert rows(out, "SELECT 1 FROM captures WHERE url = ? AND kind = 'response'", copy)
    assert not rows(out, "SELECT 1 FROM captures WHERE url = ?", original)
    assert audit(out).is_clean


def test_the_audit_accepts_it_with_its_receipt_and_notices_one_without(crawled: Crawled) -> None:
    """K1, K2: the receipt is the proof; the same bytes without it are tampering."""
    out = crawled.out
    original, _ = copied(out)
    done = carried_out(crawled, urls=(original,))
    found = audit(out, expect=(done.head,))
    assert found.is_clean, (found.findings[:3], found.trail.breaches[:3])
    assert found.taken_out == done.captures
    assert {one.file for one in done.files} == {receipt.file for _, receipt in found.trail.receipts}
    assert all(receipt.why == f"takedown {done.id}" for _, receipt in found.trail.receipts)
    assert original.encode() not in b"".join(path.read_bytes() for path in (out / "chain").iterdir())
    secretly(out)
    assert not audit(out).is_clean


def secretly(out: Path) -> None:
    """Take a capture out as a takedown does, but without a word in the chain."""
    path = max((out / "warc").glob("*.warc.gz"))
    disk = LocalDisk()
    file = disk.open(path)
    unit = [unit for unit in units(WarcReader(file, path.name)) if unit[0].kind == "response"][-1]
    file.close()
    work = Rewriting(path.name, gone={unit[0].offset})  # type: ignore[arg-type]  # a name
    draft = write_draft(disk, path.parent, work, takedown="000001", at=1, mentions=lambda *_: False)
    assert draft is not None
    path.with_name(draft).replace(path)


def test_a_domain_goes_with_all_its_hosts_and_their_rules(crawled: Crawled) -> None:
    """K2, W5: pages, robots.txt, errors, figures; the audit still knows that requests were made."""
    out = crawled.out
    ((domain, count),) = rows(out, "SELECT domain, count(*) FROM captures GROUP BY domain ORDER BY 2 DESC LIMIT 1")
    requests = audit(out).requests
    done = carried_out(crawled, domains=(str(domain),))
    assert done.captures >= int(str(count))
    for table, column in (("captures", "domain"), ("domains", "domain"), ("errors", "host"), ("page_states", "host")):
        assert not rows(out, f"SELECT 1 FROM {table} WHERE {column} = ?", domain), table  # noqa: S608 - our own names
    assert [one for _, one in records(out) if f"//{domain}" in one.target] == []
    said = everything(out)
    kept = said.replace(f"//{domain}/***".encode(), b"")
    assert f'"url":"http://{domain}/'.encode() not in kept.replace(f'"url":"http://{domain}/"'.encode(), b"")
    found = audit(out)
    assert found.is_clean, (found.findings[:3], found.trail.breaches[:3])
    assert found.requests == requests, "the event log still tells of them"
    again = simulate(crawled.ended.web, out, ROLLING, clock=crawled.clock, new_cycle=True)
    assert not [one for one in again.sent if one.host == domain]


def test_the_report_after_a_takedown_counts_what_its_tables_count(crawled: Crawled) -> None:
    """K2, O3: pages and domains of the headline are those that are still there."""
    write_stored(crawled.out, ROLLING)
    before = report_on(crawled.out)
    leading = before.coverage.leading[0]
    carried_out(crawled, domains=(leading.domain,))
    report = report_on(crawled.out)
    assert leading.pages
    assert report.pages == before.pages - leading.pages
    assert report.coverage.domains == before.coverage.domains - 1
    for told in (one.pages for one in report.coverage.leading), report.depths.values():
        assert sum(told) == report.pages
    assert sum(one.pages for one in report.timeline.moments) == report.pages


def test_a_takedown_while_the_crawl_runs_reaches_what_was_on_its_way(tmp_path: Path) -> None:
    """K2, C1: whatever was under way and in open files when it was ordered is gone when the crawl ends."""
    web, out = SimulatedWeb(SMALL), tmp_path / "crawl"

    class Ordering:
        """Orders a takedown of the first host that has brought ten answers."""

        def __init__(self) -> None:
            self.counts: dict[str, int] = {}
            self.ordered: tuple[str, Takedown] | None = None
            self.later = 0

        def emit(self, event: Event) -> None:
            if event.kind is not EventKind.FETCH_OK:
                return
            if self.ordered is not None:
                self.later += event.host == self.ordered[0]
                return
            self.counts[event.host] = self.counts.get(event.host, 0) + 1
            if self.counts[event.host] == 5:
                self.ordered = (event.host, order(out, domains=(event.host,)))

        def flush(self) -> None:
            pass

        def close(self) -> None:
            pass

    ordering = Ordering()
    settings = replace(PATIENT, archive=replace(PATIENT.archive, max_bytes=10_000_000))
    simulate(web, out, settings, listeners=[ordering])
    assert ordering.ordered is not None
    host, ordered = ordering.ordered
    done = TakedownFolder(out / "takedowns").get(ordered.id)
    assert done is not None
    assert done.state is TakedownState.DONE
    assert done.captures == ordering.counts[host] + ordering.later + robots_of(done, out)
    assert ordering.later <= 12, "it is blocked within the five seconds that a crawl looks"
    assert [one for _, one in records(out) if f"//{host}" in one.target] == []
    assert not rows(out, "SELECT 1 FROM captures WHERE host = ?", host)
    assert audit(out).is_clean


def robots_of(done: Takedown, out: Path) -> int:
    """Answers to robots.txt are told by an event of their own."""
    told = sum(is_tombstone(one) for _, one in records(out))
    assert told == done.captures
    events = b"".join(path.read_bytes() for path in (out / "events").glob("*.jsonl"))
    host = done.order.domains[0].encode()
    return sum(
        b'"event":"robots_fetched"' in line and b'"host":"' + host + b'"' in line and b'"status"' in line
        for line in events.splitlines()
    )


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
def test_a_takedown_that_is_cut_off_anywhere_ends_the_same(tmp_path: Path, power: bool) -> None:
    """K2, F10, Q4: at any write, sync or commit; repeated, it ends in the same archive, and the trail holds."""
    world, host = cut_takedowns.crawled(SMALL, tmp_path, ROLLING, power=power)
    url = str(rows(world.out, "SELECT url FROM captures WHERE host != ? AND robots = 0 LIMIT 1", host)[0][0])
    assert cut_takedowns.carried_out(world, urls=(url,), domains=(host,)).captures > 5
    assert not rows(world.out, "SELECT 1 FROM captures WHERE host = ? OR url = ?", host, url)
    for name, data in world.archive().items():
        if name.endswith(".cdxj"):
            assert host.encode() not in data
