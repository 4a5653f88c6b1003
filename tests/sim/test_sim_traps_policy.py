"""The trap policy alone, set loose on endless sites: a breadth-first crawler of thirty lines that obeys the tallies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from nephila.frontier.scope import Scope
from nephila.frontier.traps import (
    Observation,
    SkeletonTally,
    TrapState,
    count_outside,
    held_until_s,
    judge,
    needs_links,
    patterns,
    pour_prefix,
    take_turn,
)
from nephila.model.settings import ScopeSettings, TrapSettings
from nephila.parse import parse_html
from nephila.testing.web import (
    Calendar,
    EndlessPath,
    RandomLinks,
    SessionMaze,
    Shop,
    SimulatedWeb,
    TrapFigures,
    TrapSite,
    WebSpec,
)
from nephila.testing.web.trap_hosts import TrapWitness
from nephila.urls import Identifier, NormalRules, UrlLimits, UrlRefused

START_S = 1_900_000_000
DAY_S = 86_400
Say = Callable[[str], None]


class Waiting(NamedTuple):
    url: str
    depth: int
    via: str
    tallies: list[SkeletonTally]


@dataclass
class Wanderer:
    """Fetches breadth first, one page a second; what the policy holds back waits until nothing else is left."""

    site: TrapSite
    max_fetches: int = 100_000
    max_depth: int = 15
    settings: TrapSettings = field(default_factory=TrapSettings)
    tallies: dict[str, SkeletonTally] = field(default_factory=dict)
    states: set[TrapState] = field(default_factory=set)
    now_s: int = START_S
    left: int = 0

    def __post_init__(self) -> None:
        self.web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(self.site,)))
        (self.host,) = self.web.traps
        self.witness = TrapWitness(self.web.traps)
        self.identifier = Identifier(7, NormalRules(), UrlLimits())
        self.scope = Scope(ScopeSettings(mode="all"), max_depth=self.max_depth)
        self.queue: deque[Waiting] = deque()
        self.seen: set[str] = set()
        self.contents: set[bytes] = set()

    def run(self, for_s: int) -> TrapFigures:
        """Crawl until nothing may be fetched within the time."""
        end_s = self.now_s + for_s
        self.admit(self.web.trap_seeds(), 0, "")
        fetched, held = 0, list[Waiting]()
        while self.now_s < end_s and fetched < self.max_fetches:
            if not self.queue:
                if not held:
                    break
                self.now_s = max(self.now_s, min(held_until_s(one.tallies, self.settings) for one in held))
                self.queue, held = deque(held), []
                continue
            one = self.queue.popleft()
            if held_until_s(one.tallies, self.settings) > self.now_s:
                held.append(one)
                continue
            take_turn(one.tallies, self.settings, self.now_s)
            self.fetch(one)
            self.now_s, fetched = self.now_s + 1, fetched + 1
        self.left = len(self.queue) + len(held)
        return self.witness.figures()[self.host.name]

    def tallies_of(self, url: str) -> list[SkeletonTally]:
        return [self.tallies.setdefault(pattern, SkeletonTally(pattern)) for pattern in patterns(url)]

    def admit(self, urls: list[str], depth: int, via: str) -> list[str]:
        new = []
        for url in urls:
            address = self.identifier.identify(url)
            if isinstance(address, UrlRefused) or address.key in self.seen or self.scope.judge(address, depth):
                continue
            self.seen.add(address.key)
            self.queue.append(Waiting(address.url, depth, via, self.tallies_of(address.url)))
            new.append(address.url)
        return new

    def fetch(self, one: Waiting) -> None:
        url, depth, via, tallies = one
        target = "/" + url.split("/", 3)[3]
        self.witness.asked(self.host, target)
        answer = self.web.answer(self.host.name, target, {}, 0)
        page = parse_html(answer.payload, url, "text/html", agent="nephila")
        new = self.admit([link.url for link in page.links], depth + 1, url) if answer.status == 200 else []
        prefix = pour_prefix(url)
        seen = Observation(
            url,
            found_on=patterns(via) if via else (),
            error=answer.status >= 400,
            duplicate=answer.payload in self.contents,
            text=page.text_hash,
            shape=page.shape_hash,
            outlinks=len(page.links),
            inside=sum(link.startswith(prefix) for link in new) if prefix else 0,
        )
        self.contents.add(answer.payload)
        if needs_links(tallies, seen):
            outside = count_outside(patterns(url), [patterns(link) for link in new], self.tallies.get)
            seen = seen._replace(outside=outside)
        judge(tallies, seen, self.settings, self.now_s)
        self.states.update(tally.state for tally in tallies)


def told(figures: TrapFigures) -> str:
    return (
        f"{figures.requests} fetched, {figures.wasted} wasted, {figures.found} of {figures.real_pages} real pages found"
    )


@pytest.mark.parametrize(
    "site",
    [Calendar(), SessionMaze(), RandomLinks(), EndlessPath(), EndlessPath(branches=12), EndlessPath(branches=2)],
    ids=["calendar", "session maze", "random links", "endless path", "wide endless path", "narrow endless path"],
)
def test_a_trap_costs_less_than_200_fetches_and_nothing_real_is_missed(site: TrapSite, say: Say) -> None:
    """T1, T2, T5: in six days nothing but the trap is stopped, and nothing but real pages is fetched past 200."""
    wanderer = Wanderer(site)
    figures = wanderer.run(6 * DAY_S)
    say(told(figures))
    assert figures.wasted < 200
    assert figures.found == figures.real_pages
    assert wanderer.left, "the trap has more to offer, and it is left there"


@pytest.mark.parametrize(
    "site",
    [Shop(), Shop(numbers_only=True, related=0), Shop(numbers_only=True, reach=20)],
    ids=["own texts", "numbers only", "numbers only, related"],
)
def test_a_shop_of_100_000_products_is_neither_slowed_nor_stopped(site: Shop, say: Say) -> None:
    """T2, T5: one skeleton, found on lists and on each other, goes on for as long as it brings something."""
    wanderer = Wanderer(site, max_fetches=5_000, max_depth=200)
    figures = wanderer.run(6 * DAY_S)
    say(told(figures))
    assert wanderer.states == {TrapState.NORMAL}
    assert figures.wasted == 0
    assert figures.requests == 5_000


def test_a_trap_is_tried_again_by_single_pages(say: Say) -> None:
    """T2: in the five weeks after it was stopped it costs a few fetches."""
    wanderer = Wanderer(RandomLinks())
    stopped = wanderer.run(6 * DAY_S)
    later = wanderer.run(35 * DAY_S)
    say(f"{later.requests - stopped.requests} more fetches in five weeks")
    assert 0 < later.requests - stopped.requests <= 12
