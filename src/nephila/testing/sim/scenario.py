"""A scenario: one small web, the settings of its crawl and the faults that are to meet it, all from one number.

Shares and times are chosen so that an ordinary scenario costs a fifth of a second, and that whatever a setting makes
possible (many requests a lease, tiny archive files, leases that end soon) is met within a few dozen seeds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import StrEnum

from nephila.model.settings import Settings
from nephila.testing.web.spec import MIXED_ROBOTS, HostMix, PageMix, RobotsKind, Timing, WebSpec, WireMix

DAY_S = 86_400.0
MAX_WAIT_S = 400.0
"""A crawl ends when nothing can run within so long: more than any passing trouble of these scenarios lasts."""
NEVER_AGAIN_S = 1000.0
"""How long a robots.txt that cannot be read is left alone at last."""


TIGHT_BYTES = 4_000
"""Bodies in flight: less than one page, so that connections are held back all the time."""


USUAL_LINGER_MS = Settings().frontier.linger_ms


class Ending(StrEnum):
    """How one life of a crawl is to end, unless it comes to its own end before."""

    NATURAL = "natural"
    KILL = "kill"
    """Killed between two callbacks of the loop: nothing that was written is lost, nothing else is done."""
    KILL_IN_WRITE = "kill in write"
    """The same, inside an operation of the disk."""
    POWER = "power"
    """The machine loses power: what was not synced may be lost."""
    POWER_IN_WRITE = "power in write"
    WRITE_ERROR = "write error"
    SYNC_ERROR = "sync error"
    DISK_FULL = "disk full"
    STOP = "stop"
    """Somebody presses Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Storm:
    """How rough the network is; shares of answers, names and connections."""

    answers: float = 0.0
    connects: float = 0.0
    names: float = 0.0
    dribbles: float = 0.0
    walls: float = 0.0
    """Share of hosts that put up a wall of 429 or 503 for a while."""
    flapping: float = 0.0
    """Share of hosts whose robots.txt changes and fails."""
    moving: float = 0.0
    """Share of hosts whose address changes."""
    overloaded: float = 0.0
    """Share of hosts that slow down under load."""
    lasts_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Stalls:
    """How slow what is written beside the archive is, while fetching and settling go on."""

    catalogue: float = 0.0
    """Share of the writes to the catalogue that stall."""
    index: float = 0.0
    """Share of the indexes that take long to write."""
    longest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Life:
    """One run of a crawl, what happens to it, and what happens before the next one."""

    ending: Ending = Ending.NATURAL
    at: int = 0
    """The turn of the loop, the operation of the disk, or the hundredth of a second at which it ends."""
    place: float = 0.0
    """Where in that turn, or whether before or after that operation."""
    unplugged: bool = False
    """The machine is switched off afterwards, however it ended."""
    freezes: tuple[tuple[float, float], ...] = ()
    """When a process is frozen, and for how long: seconds from the start of this life."""
    worker_deaths: tuple[float, ...] = ()
    """When a worker is killed."""
    wall_jumps: tuple[tuple[float, float], ...] = ()
    """When somebody sets the wall clock, and by how much."""
    pause_s: float = 0.0
    """Until the next life begins."""
    jump_s: float = 0.0
    """By how much the wall clock is set meanwhile."""
    reboot: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a world is made of."""

    seed: int
    web: WebSpec
    settings: Settings
    storm: Storm
    lives: tuple[Life, ...]
    """All but the last, which is calm and ends by itself."""
    workers: int = 1
    """1: one process. More: a supervisor and so many workers."""
    negligent: bool = False
    """Leases are returned when they expire, though their holder may be alive."""
    learns: bool = False
    """Aliases and pages that stand for missing ones are learned: URLs may then be known under another name."""
    sitemaps: float = 0.0
    """The share of hosts that have a sitemap."""
    stalls: Stalls = Stalls()


def draw_scenario(seed: int) -> Scenario:
    """The scenario of a seed."""
    draw = random.Random(f"nephila sim {seed}")
    workers = draw.choice((2, 2, 3)) if draw.random() < 0.25 else 1
    large = draw.random() < 0.02
    negligent = workers > 1 and draw.random() < 0.5
    learns = draw.random() < 0.15
    web = _web(draw, large=large)
    settings = _settings(draw, workers, learns=learns, negligent=negligent)
    if large or web.host_mix.max_addresses or web.host_mix.shared_addresses > 0.5:
        settings = _at_ease(settings)
    count = 1 if large else draw.choice((0, 1, 1, 2, 2, 3, 4))
    lives = tuple(_life(draw, number, workers, settings) for number in range(count))
    if negligent:
        lives = (_slow_life(draw, settings), *lives[:2])
    scenario = _archived(Scenario(seed, web, settings, _storm(draw), lives, workers, negligent, learns))
    scenario = _stalled(scenario)
    return scenario if large else _with_sitemaps(scenario)


def _archived(scenario: Scenario) -> Scenario:
    """In some scenarios the archive is laid out by a key, or packed by Zstandard; drawn apart, as sitemaps are."""
    draw, archive = random.Random(f"nephila sim {scenario.seed} keys"), scenario.settings.archive
    if draw.random() < 0.15:
        key = draw.choice((archive.key, "{domain}/{host}/{date}.warc.gz", "{date}/{hour}.warc.gz"))
        archive = replace(archive, layout="key", key=key)
    if random.Random(f"nephila sim {scenario.seed} zstd").random() < 0.15:
        archive = replace(archive, compression="zstd")
    return replace(scenario, settings=replace(scenario.settings, archive=archive))


def _stalled(scenario: Scenario) -> Scenario:
    """In some scenarios the catalogue or the disk of the indexes is slow; drawn apart, as sitemaps are."""
    draw = random.Random(f"nephila sim {scenario.seed} stalls")
    if draw.random() >= 0.25:
        return scenario
    stalls = Stalls(draw.choice((0.0, 0.3, 1.0)), draw.choice((0.3, 1.0)), draw.choice((0.05, 0.5, 3.0, 20.0)))
    # And so are commits of the frontier: captures lie in the archive for a while before they are settled.
    frontier = replace(scenario.settings.frontier, linger_ms=draw.choice((USUAL_LINGER_MS, 40.0, 400.0)))
    return replace(scenario, settings=replace(scenario.settings, frontier=frontier), stalls=stalls)


def _with_sitemaps(scenario: Scenario) -> Scenario:
    """In some scenarios hosts have sitemaps; drawn apart, so that all else of a seed is as it was."""
    draw = random.Random(f"nephila sim {scenario.seed} sitemaps")
    if draw.random() >= 0.3:
        return scenario
    sitemaps = replace(scenario.settings.sitemaps, batch=draw.choice((1, 1, 3, 500)))
    return replace(
        scenario, settings=replace(scenario.settings, sitemaps=sitemaps), sitemaps=draw.choice((0.3, 1.0, 1.0))
    )


def _slow_life(draw: random.Random, settings: Settings) -> Life:
    """A life in which workers are frozen past their leases, and go on."""
    lease_s = settings.frontier.lease_s
    freezes = tuple((draw.uniform(0.0, 10.0), draw.uniform(1.0, 2.5) * lease_s) for _ in range(draw.choice((1, 2, 3))))
    return Life(freezes=freezes, pause_s=draw.choice((0.0, 0.3)))


def _at_ease(settings: Settings) -> Settings:
    """Many hosts at one address take turns: with rules that are old at once they would never get to their pages."""
    politeness, robots = settings.politeness, settings.robots
    return replace(
        settings,
        politeness=replace(politeness, address_rate=max(3.0, politeness.address_rate)),
        robots=replace(robots, fresh_s=max(60.0, robots.fresh_s)),
    )


def _web(draw: random.Random, *, large: bool) -> WebSpec:
    hosts = draw.randint(20, 40) if large else draw.randint(2, 12)
    pages = draw.randint(150, 300) if large else max(hosts, draw.randint(5, 60))
    rich = draw.random() < 0.7
    return WebSpec(
        seed=draw.randrange(1 << 32),
        hosts=hosts,
        pages=pages,
        page_bytes=draw.choice((300, 600, 1200, 4000)),
        links_per_page=draw.choice((4, 8, 12)),
        host_mix=replace(
            HostMix(),
            robots=tuple(kind for kind in MIXED_ROBOTS if kind is not RobotsKind.HUGE),
            shared_addresses=draw.choice((0.0, 0.3, 0.9)),
            max_addresses=draw.choice((0, 0, 2)),
            slow=draw.choice((0.0, 0.1)),
            refusing=draw.choice((0.0, 0.05)),
            nameless=draw.choice((0.0, 0.05)),
        ),
        page_mix=replace(PageMix(), failing=0.1, redirecting=0.1, dripping=0.0) if rich else _PLAIN_PAGES,
        wire=replace(WireMix(), changing=0.0),
        timing=Timing(
            latency_ms=draw.choice((5.0, 20.0, 200.0)),
            slow_ms=1500.0,
            crawl_delay_s=draw.choice((1.0, 4.0)),
            retry_after_s=draw.choice((0.0, 2.0, 20.0)),
        ),
    )


_PLAIN_PAGES = PageMix(0, (), 0, (), (), 0, 0, 0, 0, 0, 0, 0, 0, 0)


def _settings(draw: random.Random, workers: int, *, learns: bool, negligent: bool) -> Settings:
    base = Settings()
    timeout_s = draw.choice((3.0, 6.0, 15.0))
    lease_s = timeout_s + draw.choice((2.0, 5.0, 30.0))
    return replace(
        base,
        scope=replace(base.scope, mode="all"),
        limits=replace(base.limits, max_wait_s=MAX_WAIT_S),
        politeness=replace(
            base.politeness,
            delay_s=draw.choice((0.03, 0.2, 0.5, 1.0, 1.0, 2.0)),
            slow_max_s=5.0,
            busy_max_s=8.0,
            address_concurrency=draw.choice((1, 2, 4)),
            address_rate=draw.choice((1.0, 3.0, 10.0)),
            pause_window=draw.choice((10, 20, 100)),
            pause_s=60.0,
        ),
        robots=replace(
            base.robots,
            fresh_s=draw.choice((15.0, 15.0, 60.0, DAY_S)),
            retry_s=draw.choice((5.0, 15.0)),
            retry_max_s=NEVER_AGAIN_S,
        ),
        fetch=replace(
            base.fetch,
            allow_addresses=("127.0.0.0/8",),
            timeout_s=timeout_s,
            connect_timeout_s=min(timeout_s, 3.0),
            concurrency=draw.choice((2, 8, 256)) if workers > 1 else draw.choice((1, 4, 16, 256)),
            keep_alive_s=draw.choice((0.0, 5.0, 60.0)),
            max_in_flight_bytes=draw.choice((TIGHT_BYTES, 100_000, 100_000, 100_000)),
        ),
        frontier=replace(
            base.frontier,
            commit_ms=1_000,  # longer than usual: there is more that only the journal has
            map_bytes=1 << 28,
            lease_s=lease_s if not negligent else max(lease_s, 3 * timeout_s),
            urls_per_lease=draw.choice((1, 3, 8)),
            max_retries=draw.choice((1, 2, 3)),
            retry_waits_s=(1.0, 3.0, 8.0),
        ),
        archive=replace(
            base.archive,
            layout=draw.choice(("rolling", "rolling", "domain-hour")),
            max_bytes=draw.choice((3_000, 20_000, 10**9)),
            sync_ms=draw.choice((100.0, 100.0, 1000.0, 3000.0)),
        ),
        dedup=replace(base.dedup, near=draw.random() < 0.5),
        aliases=replace(base.aliases, learn=learns, soft_404=learns),
        recrawl=replace(base.recrawl, enabled=False),
        random_seed=draw.randrange(1 << 16),
    )


def _storm(draw: random.Random) -> Storm:
    if draw.random() < 0.15:
        return Storm()
    strength = draw.choice((0.3, 1.0, 2.0))

    def share(most: float) -> float:
        return draw.choice((0.0, 0.5, 1.0)) * most * strength

    return Storm(
        answers=share(0.15),
        connects=share(0.1),
        names=share(0.1),
        dribbles=share(0.05),
        walls=share(0.3),
        flapping=share(0.7),
        moving=share(0.2),
        overloaded=share(0.2),
        lasts_s=draw.choice((20.0, 60.0, 180.0)),
    )


_JUMPS_S = (-400 * DAY_S, -3 * DAY_S, -3600.0, -1.0, 1.0, 3600.0, 3 * DAY_S, 400 * DAY_S)

_ENDINGS = (
    *(Ending.KILL, Ending.KILL, Ending.KILL_IN_WRITE, Ending.POWER, Ending.POWER, Ending.POWER_IN_WRITE),
    *(Ending.WRITE_ERROR, Ending.SYNC_ERROR, Ending.DISK_FULL, Ending.STOP, Ending.NATURAL),
)


def _life(draw: random.Random, number: int, workers: int, settings: Settings) -> Life:
    ending = draw.choice(_ENDINGS)
    early = number > 0 and draw.random() < 0.4
    """In the middle of a recovery, perhaps."""
    match ending:
        case Ending.KILL | Ending.POWER:
            at = draw.randint(1, 80) if early else draw.randint(1, draw.choice((400, 1500, 4000)))
        case Ending.KILL_IN_WRITE | Ending.POWER_IN_WRITE | Ending.WRITE_ERROR:
            at = draw.randint(1, 8) if early else draw.randint(1, draw.choice((20, 100)))
        case Ending.SYNC_ERROR:
            at = draw.randint(1, 4) if early else draw.randint(1, 30)
        case Ending.DISK_FULL:
            at = draw.randint(0, 40_000)
        case _:
            at = draw.randint(1, 6000)
    freezes: tuple[tuple[float, float], ...] = ()
    if draw.random() < (0.6 if workers > 1 else 0.2):
        lease_s = settings.frontier.lease_s
        freezes = tuple(
            (draw.uniform(0.0, 30.0), draw.choice((0.5, 1.05, 1.5, 4.0)) * lease_s) for _ in range(draw.choice((1, 2)))
        )
    deaths = tuple(draw.uniform(0.1, 30.0) for _ in range(draw.choice((0, 0, 1, 2)))) if workers > 1 else ()
    jumps = ((draw.uniform(0.0, 20.0), draw.choice(_JUMPS_S)),) if draw.random() < 0.15 else ()
    reboot = ending in (Ending.POWER, Ending.POWER_IN_WRITE) or draw.random() < 0.1
    return Life(
        ending=ending,
        at=at,
        place=draw.random(),
        unplugged=draw.random() < 0.25,
        freezes=freezes,
        worker_deaths=deaths,
        wall_jumps=jumps,
        pause_s=draw.choice((0.0, 0.0, 0.3, 20.0)),
        jump_s=draw.choice(_JUMPS_S) if draw.random() < 0.25 else 0.0,
        reboot=reboot,
    )
