"""Plugins that behave, and plugins that do not."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from nephila.model.events import Event
from nephila.model.page import Link
from nephila.model.plugin import (
    Document,
    Extract,
    Glimpse,
    IncomingAnswer,
    OutgoingRequest,
    PageRecord,
    RequestAdvice,
)


class KeepsOut:
    """A filter that keeps out what has a word in its URL; how is the option."""

    def __init__(self, word: str = "draft", misbehave: str = "") -> None:
        self.word = word
        self.misbehave = misbehave
        self.name = "keeps-out"

    def filter_links(self, page: Glimpse, links: Sequence[Link]) -> list[bool | str]:
        del page
        match self.misbehave:
            case "raise":
                raise ValueError("no idea\nat all")
            case "exit":
                raise SystemExit(3)
            case "die":
                os._exit(7)
            case "hang":
                time.sleep(600)
            case "nonsense":
                return ["only one"]
            case "wrong type":
                return 42  # type: ignore[return-value]
            case "hoard":
                return [bool(bytearray(8 << 30))]
        return [f"has {self.word}" if self.word in link.url else True for link in links]


class Quick(KeepsOut):
    """The same on the crawl's own loop."""

    quick = True

    def __init__(self, word: str = "draft", misbehave: str = "") -> None:
        super().__init__(word, misbehave)
        self.name = "quick"


class Awaited(KeepsOut):
    """The same, asynchronous."""

    def __init__(self, word: str = "draft", misbehave: str = "") -> None:
        super().__init__(word, misbehave)
        self.name = "awaited"
        self.cancelled = 0

    async def filter_links(self, page: Glimpse, links: Sequence[Link]) -> list[bool | str]:  # type: ignore[override]
        if self.misbehave == "hang":
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.misbehave == "stubborn":
            while True:
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    self.cancelled += 1
                    if self.cancelled > 1:
                        raise
        return super().filter_links(page, links)


class Misfit(Awaited):
    """The same with a method that takes something else than it is given."""

    async def filter_links(self, page: Glimpse) -> list[bool | str]:  # type: ignore[override]
        return await super().filter_links(page, [])


class Favours:
    """A scorer that favours a word."""

    name = "favours"

    def __init__(self, word: str, points: int = 50) -> None:
        self.word = word
        self.points = points

    def score_links(self, page: Glimpse, links: Sequence[Link]) -> list[int]:
        del page
        return [self.points if self.word in link.url else 0 for link in links]


class Counts:
    """Counts its calls, in memory: what it remembers is lost with its process."""

    name = "counts"

    def __init__(self) -> None:
        self.calls = 0

    def score_links(self, page: Glimpse, links: Sequence[Link]) -> list[int]:
        self.calls += 1
        if page.title == "hang":
            time.sleep(600)
        return [self.calls] * len(links)


class Lengths:
    """An extractor that measures HTML, and finds one link more."""

    name = "lengths"
    media_types = ("text/html",)

    def extract(self, document: Document) -> Extract:
        link = Link(document.url.rstrip("/") + "/found", "lengths", "", "")
        return Extract((link,), fields=(("bytes", str(len(document.body))),))


class Seeds:
    """Brings seeds, a few at a time."""

    name = "seeds"

    def __init__(self, *batches: Sequence[str]) -> None:
        self.batches = list(batches)

    def more_seeds(self) -> Sequence[str]:
        return self.batches.pop(0) if self.batches else ()


class Lines:
    """A sink that writes a line for each page and each event, and one when it is closed."""

    name = "lines"

    def __init__(self, file: str, *, fail_first: int = 0) -> None:
        self.file = file
        self.fail_first = fail_first

    def _write(self, line: str) -> None:
        with Path(self.file).open("a", encoding="utf-8") as out:
            out.write(line + "\n")

    def write_records(self, records: Sequence[PageRecord]) -> None:
        if self.fail_first:
            self.fail_first -= 1
            raise OSError("not yet")
        for record in records:
            self._write(f"page {record.url} {len(record.links)} {len(record.body)}")

    def hear_events(self, events: Sequence[Event]) -> None:
        for event in events:
            self._write(f"event {event.kind}")

    def close(self) -> None:
        self._write("closed")


class Hook:
    """Adds headers, stops some requests, and takes answers down."""

    name = "hook"
    quick = True

    def __init__(self, headers: Sequence[tuple[str, str]] = (), veto: str = "") -> None:
        self.headers = tuple(headers)
        self.veto = veto
        self.asked: list[str] = []
        self.answers: list[IncomingAnswer] = []

    def before_fetch(self, request: OutgoingRequest) -> RequestAdvice | None:
        self.asked.append(request.url)
        if self.veto and self.veto in request.url:
            return RequestAdvice(veto="not this one")
        return RequestAdvice(self.headers) if self.headers else None

    def after_fetch(self, answer: IncomingAnswer) -> None:
        self.answers.append(answer)


class Unloadable(KeepsOut):
    """Cannot be made again in its own process."""

    def __setstate__(self, _: object) -> None:
        raise RuntimeError("no home here")


class Bodies:
    """A sink that wants bodies, or does not."""

    quick = True

    def __init__(self, *, wants: bool) -> None:
        self.name = f"bodies-{wants}"
        self.wants_bodies = wants
        self.sizes: dict[str, int] = {}

    def write_records(self, records: Sequence[PageRecord]) -> None:
        self.sizes |= {record.url: len(record.body) for record in records}
