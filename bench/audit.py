"""K1, Q1: what the trail costs a page while it is written, and how fast `audit` reads it back.

A crawl is laid down without a network: pages of 30 KB (gzip on the wire, some 8 KB in the archive) from many hosts, at
500 a second and polite, through the archive and the event log as a crawl writes them; once without the trail (no seals,
no times and addresses in events and metadata), once with it, in alternating rounds. Figures are CPU microseconds a
page, the best of three rounds, syncs included; the difference is what the trail costs. Then the directory is audited.

Usage: python bench/audit.py [--pages N] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nephila.model.events import Event, EventKind
from nephila.model.exchange import Fetched
from nephila.model.record import Capture
from nephila.model.settings import ArchiveSettings, ObserveSettings, Settings
from nephila.model.task import RobotsTask, Token
from nephila.model.terms import Terms
from nephila.node.audit import audit
from nephila.node.directory import FORMAT
from nephila.observe import JsonlEventSink
from nephila.store import CrawlIdentity, LocalArchive, LocalDisk, Trail
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.archive import decode_sample, fetched_sample, page_capture

HOSTS = 2000
PAGE_S = 0.002
"""500 pages a second."""
SYNC_PAGES = 50
"""A sync every 100 ms."""
ADDRESS = "93.184.216.34"
RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 1\n"
TEXTS = 40


def text(number: int, size: int = 30_000) -> bytes:
    """Words that compress about as well as pages do (four to one)."""
    draw = random.Random(number)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(900)]
    return " ".join(draw.choices(words, k=size // 4)).encode()[:size]


class Writer:
    """Lays a crawl down in a directory, with or without a trail."""

    def __init__(self, root: Path, *, traced: bool) -> None:
        self._clock = VirtualClock()
        self._traced = traced
        (root / "nephila-crawl").write_text(FORMAT, encoding="utf-8")
        (root / "warc").mkdir()
        terms = Terms.of(Settings()).to_json()
        identity = CrawlIdentity(secret=1, terms=terms)
        self._archive = LocalArchive(
            root / "warc", ArchiveSettings(), self._clock, identity, LocalDisk(), decode_sample
        )
        opening = self._opening(terms) if traced else None
        self._sink = JsonlEventSink(
            root / "events", ObserveSettings(), self._clock.wall_ms(), "0", lambda _: None, opening
        )
        self._trail = Trail(root, 0, LocalDisk(), self._clock) if traced else None
        if self._trail is not None:
            self._trail.event_marks = self._sink.marks
            self._archive.trail = self._trail
        bodies = [text(number) for number in range(TEXTS)]
        self._bodies = [(zlib.compress(body, 6, 31), body) for body in bodies]
        self._links = tuple(f"https://spiders.example/page/{link}?ref=list a" for link in range(80))
        self._written = 0

    def _opening(self, terms: str) -> Callable[[], Event]:
        clock = self._clock
        counts = (("steady_ms", clock.steady_ms()),)
        return lambda: Event(EventKind.TERMS, clock.wall_ms(), reason=clock.boot_id(), detail=terms, counts=counts)

    def rules(self) -> None:
        """A robots.txt of every host."""
        for host in range(HOSTS):
            origin = f"https://h{host}.example"
            fetched = fetched_sample(f"{origin}/robots.txt", RULES, RULES)
            self._keep(Capture(RobotsTask(origin, fetched.url), Token(10_000_000 + host), 0, fetched, rules=RULES))

    def page(self) -> None:
        """One page more."""
        number = self._written
        payload, body = self._bodies[number % TEXTS]
        url = f"https://h{number % HOSTS}.example/{number}"
        fetched = fetched_sample(url, payload, body, Content_Encoding="gzip")
        self._keep(replace(page_capture(number, fetched), outlinks=self._links))

    def _keep(self, capture: Capture) -> None:
        self._clock.advance(PAGE_S)
        clock = self._clock
        sent_at = clock.wall_ms()
        steady = clock.steady_ms() if self._traced else 0
        fetched: Fetched = replace(
            capture.fetched, sent_at=sent_at, ended_at=sent_at + 20, elapsed_ms=20, sent_ms=steady, address=ADDRESS
        )
        fetched = replace(fetched, address=f"93.{self._written % HOSTS // 250}.{self._written % HOSTS % 250}.1")
        self._archive.append(replace(capture, fetched=fetched))
        robots = isinstance(capture.task, RobotsTask)
        host = fetched.url.split("/")[2]
        event = Event(
            EventKind.ROBOTS_FETCHED if robots else EventKind.FETCH_OK,
            sent_at + 20,
            fetched.url,
            b"" if robots else b"0123456789abcdef",
            host,
            status=200,
            bytes=len(fetched.payload),
            elapsed_ms=20,
            via=capture.task.origin if isinstance(capture.task, RobotsTask) else "",
            address=fetched.address if self._traced else "",
            sent_ms=steady or None,
        )
        self._sink.emit(event)
        self._written += 1
        if self._written % SYNC_PAGES == 0:
            if self._written % (SYNC_PAGES * 10) == 0:
                self._sink.flush()
            self._archive.sync()

    def close(self) -> None:
        """End it as a crawl ends."""
        self._archive.close()
        self._sink.close()
        if self._trail is not None:
            self._trail.close()


def writing_us(pages: int, *, traced: bool) -> float:
    """CPU microseconds a page."""
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Path(folder), traced=traced)
        start = time.process_time()
        for _ in range(pages):
            writer.page()
        writer.close()
        return (time.process_time() - start) / pages * 1e6


def auditing(pages: int) -> dict[str, float]:
    """How long an audit takes, and what it holds in memory while it does."""
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Path(folder), traced=True)
        writer.rules()
        for _ in range(pages):
            writer.page()
        writer.close()
        start, spent = time.perf_counter(), time.process_time()
        found = audit(Path(folder))
        if not found.is_clean or found.requests != pages + HOSTS:
            raise SystemExit(f"the audit is wrong: {found.counts}, {found.trail.breaches[:3]}, {found.findings[:3]}")
        return {
            "audit seconds": time.perf_counter() - start,
            "audit us a request": (time.process_time() - spent) / found.requests * 1e6,
            "sealed MB": found.trail.sealed_bytes / 1e6,
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="nephila bench audit", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=100_000, metavar="N", help="that are audited")
    parser.add_argument("--quick", action="store_true", help="end within 45 seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    pages, written = (10_000, 2000) if chosen.quick else (chosen.pages, 5000)
    rounds = [(writing_us(written, traced=False), writing_us(written, traced=True)) for _ in range(3)]
    plain, traced = min(one for one, _ in rounds), min(one for _, one in rounds)
    figures = {"written us": plain, "with trail us": traced, "trail us": traced - plain, **auditing(pages)}
    if chosen.json:
        print(json.dumps({name: round(value, 2) for name, value in figures.items()}))
        return
    for name, value in figures.items():
        print(f"{name:20s} {value:10.1f}")


if __name__ == "__main__":
    main()
