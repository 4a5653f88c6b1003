"""What a shard answers, as nouns: leases, stories, counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nephila.frontier import order, traps
from nephila.frontier.change import outlook_of
from nephila.interfaces.frontier import FrontierSnapshot, UrlStory
from nephila.interfaces.recrawl import History
from nephila.model.outcome import DeferReason, OriginRules, RulesKind
from nephila.model.policy import Tier
from nephila.model.rendering import RenderMode
from nephila.model.task import Lease, Level, Pace, PageTask, RobotsTask, Task, Token, Validators
from nephila.urls import Fingerprint

from .asking import Facts, tail_of

Told = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Verifying:
    """Which pages are asked for in full although there are validators (H3)."""

    every: int
    seed: int


def lease_told(
    told: Told, verifying: Verifying, late_ms: int, behind_ms: int = 0
) -> tuple[Lease, dict[Fingerprint, Facts]]:
    """A lease, and what its pages' links and next visits follow from.

    `late_ms` is how long the answer took: the lease is told to end so much earlier, since nobody knows when in that
    time the shard gave it. `behind_ms`: the shard's clock is so much behind the worker's timeline.
    """
    (token, host, domain, not_before, expires_at, delay, crawl_delay, base, claimed_at, rules_at, agent, lied_in) = (
        told[:12]
    )
    pages, tier, recrawl_s, tasks, cycle, render = told[12:18]
    name = host.decode()
    facts: dict[Fingerprint, Facts] = {}
    found: list[Task] = []
    for task in tasks:
        if task[0] == b"r":
            found.append(RobotsTask(task[1].decode(), task[2].decode(), task[3]))
            continue
        if task[0] == b"n":
            page, fetched, history, rank = _new_page(task), 0, History(), task[8]
        else:
            page, fetched = _page(name, task, verifying, lied_in, cycle)
            history, rank = History(*task[14]), task[15]
        found.append(page)
        interval = float(recrawl_s) if recrawl_s else None
        facts[page.fingerprint] = Facts(fetched, history, rank, pages, Tier(tier.decode()), interval)
    lease = Lease(
        token=Token(token),
        host=name,
        domain=domain.decode(),
        tasks=tuple(found),
        not_before=not_before + behind_ms,
        expires_at=expires_at + behind_ms - late_ms,
        pace=Pace(delay, crawl_delay, base),
        claimed_at=claimed_at,
        rules_at=rules_at,
        user_agent=agent.decode(),
        render=RenderMode(render.decode()),
    )
    return lease, facts


def _new_page(task: Told) -> PageTask:
    """A URL that was never asked for."""
    return PageTask(
        fingerprint=Fingerprint(task[1]),
        url=task[2].decode(),
        depth=task[3],
        level=Level(task[4]),
        hops=task[5],
        retries=0,
        cycle=task[6],
        validators=Validators("", ""),
        digest=b"",
        via=task[7].decode(),
        verify=False,
        trail=(),
    )


def _page(host: str, task: Told, verifying: Verifying, lied_in: int, cycle: int) -> tuple[PageTask, int]:
    url, captured, every = task[2].decode(), bool(task[16]), verifying.every
    caught = bool(lied_in) and cycle <= lied_in + 1
    name = f"{host} {tail_of(host, url).decode()}"
    sample = bool(every) and captured and (caught or order.is_sample(name, cycle, every, verifying.seed))
    page = PageTask(
        fingerprint=Fingerprint(task[1]),
        url=url,
        depth=task[3],
        level=Level(task[4]),
        hops=task[5],
        retries=task[6],
        cycle=task[7],
        validators=Validators(task[8].decode(), task[9].decode()),
        digest=task[10],
        via=task[11].decode(),
        verify=sample,
        trail=tuple(one.decode() for one in task[12]),
    )
    return page, task[13]


def story_told(told: Told, wall_ms: int) -> UrlStory:
    """A story of a known URL."""
    history = History(*told[21])
    story = UrlStory(
        url=told[0].decode(),
        fingerprint=Fingerprint(told[1]),
        host=told[2].decode(),
        state=told[3].decode(),
        level=Level(told[4]),
        depth=told[5],
        via=told[6].decode(),
        hops=told[7],
        retries=told[8],
        cycle=told[9],
        admitted_at=told[10] * 1000,
        settled_at=told[11] * 1000,
        reason=told[12].decode(),
        detail=told[13].decode(),
        status=told[14],
        due_in_ms=None if told[15] < 0 else told[15],
        host_wait_ms=told[16],
        segment=told[17].decode(),
        offset=told[18],
        digest=told[19],
        rank=told[20],
        visits=history.visits,
        changes=history.changes,
        changed_at=told[22] * 1000,
        interval_s=history.interval_s,
        missing=history.gone,
        missing_since=history.gone_since_s * 1000,
        again=bool(told[23]),
        step=told[24],
        outlook=outlook_of(history),
    )
    if told[25]:
        tally = tally_told(told[25])
        wait_ms = max(0, tally.not_before_s * 1000 - wall_ms)
        return replace(story, detail=traps.tell(tally), due_in_ms=wait_ms)
    return story


def task_told(told: Told) -> PageTask:
    """A known URL as a task: what recovery settles from the archive."""
    return PageTask(
        fingerprint=Fingerprint(told[1]),
        url=told[0].decode(),
        depth=told[5],
        level=Level(told[4]),
        hops=told[7],
        retries=told[8],
        cycle=told[9],
        validators=Validators(told[26].decode(), told[27].decode()),
        digest=told[19],
        via=told[6].decode(),
        trail=tuple(one.decode() for one in told[28]),
    )


def refusal_told(told: Told, host: str, fingerprint: Fingerprint) -> UrlStory:
    """The story of a URL that was refused."""
    url, reason, detail, at_s, via = told
    return UrlStory(
        url=url.decode(),
        fingerprint=fingerprint,
        host=host,
        state="refused",
        level=Level.MEDIUM,
        depth=0,
        via=via.decode(),
        hops=0,
        retries=0,
        cycle=0,
        admitted_at=at_s * 1000,
        settled_at=at_s * 1000,
        reason=reason.decode(),
        detail=detail.decode(),
    )


def rules_told(origin: str, told: Told) -> OriginRules | None:
    """The rules of an origin."""
    if not told:
        return None
    kind, stored_at, fresh_until, status, failing_since, detail, _, body = told
    return OriginRules(
        origin=origin,
        kind=RulesKind(kind.decode()),
        body=body,
        stored_at=stored_at,
        fresh_until=fresh_until,
        status=status,
        failing_since=failing_since,
        detail=detail.decode(),
    )


def tally_told(told: Told) -> traps.SkeletonTally:
    """A tally, without its rings."""
    pattern, state, barren, fetched, fresh, duplicates, repeats, errors, since_s, not_before_s, released = told[:11]
    return traps.SkeletonTally(
        pattern=pattern.decode(),
        state=traps.TrapState(state),
        barren=barren,
        fetched=fetched,
        fresh=fresh,
        duplicates=duplicates,
        repeats=repeats,
        errors=errors,
        since_s=since_s,
        not_before_s=not_before_s,
        released=bool(released),
        flagged_s=told[11],
        example=told[12].decode(),
    )


# Counters


@dataclass(slots=True)
class ShardCounters:
    """What one shard counts."""

    now: int = 0
    wall_ms: int = 0
    cycle: int = 1
    next_at: int = -1
    counts: dict[str, int] = field(default_factory=dict)
    ready: int = 0
    waiting: int = 0
    leased: int = 0
    refused: int = 0
    covered: bool = False
    sweeping: bool = False


def counters_told(told: Told) -> ShardCounters:
    """The counters of a shard."""
    now, wall_ms, cycle, next_at, raw, ready, waiting, leased, refused, covered, sweeps = told
    counts = {name.decode(): int(value) for name, value in zip(raw[::2], raw[1::2], strict=True)}
    marks = bool(covered), bool(sweeps)
    return ShardCounters(now, wall_ms, cycle, next_at, counts, ready, waiting, leased, refused, *marks)


def snapshot_of(counters: Iterable[ShardCounters], now: int) -> FrontierSnapshot:
    """The counters of all shards as the interface's record."""
    total: Counter[str] = Counter()
    ready = waiting = leased = refused = 0
    cycle, sweeping, moments = 1, False, []
    for one in counters:
        total.update(one.counts)
        ready, waiting, leased, refused = (
            ready + one.ready,
            waiting + one.waiting,
            leased + one.leased,
            refused + one.refused,
        )
        cycle, sweeping = max(cycle, one.cycle), sweeping or one.sweeping
        if one.next_at >= 0:
            moments.append(one.next_at)
    moment = min(moments, default=None)
    delayed, parked, off = _named(total, "delay:"), _named(total, "parked:"), _named(total, "off:")
    planned = delayed.pop(DeferReason.DUE, 0)
    return FrontierSnapshot(
        now=now,
        cycle=cycle,
        queued={
            level.name.lower(): sum(
                total[f"q{lane}"] for lane in range(order.LANES) if order.level_of_lane(lane) is level
            )
            for level in Level
        },
        delayed=delayed,
        states={
            "pending": total["pending"],
            "completed": total["done"] - total["pending"],
            "dropped": total["dropped"],
            "dead": total["dead"],
            "refused": refused,
        },
        hosts=total["hosts"],
        hosts_ready=ready,
        hosts_waiting=waiting,
        hosts_leased=leased,
        domains=total["domains"],
        pages=total["pages"],
        pages_in_cycle=total[f"pages:{cycle}"],
        next_in_ms=None if moment is None else max(0, moment - now),
        sweeping=sweeping,
        waiting_for=off,
        due_again={order.level_of_lane(lane).name.lower(): total[f"q{lane}"] for lane in range(4, order.LANES)},
        parked=parked,
        planned=planned,
        urls=total["urls"],
        gone=total["gone"],
        traps=total["traps"],
        reserved=total["reserved"],
        draws=total["draws"],
        spilled=total["spilled"],
        chunks=total["chunks"],
    )


def _named(total: Counter[str], prefix: str) -> dict[str, int]:
    return {name[len(prefix) :]: count for name, count in total.items() if name.startswith(prefix) and count}


def ages_of(counters: Iterable[ShardCounters]) -> dict[int, list[int]]:
    """Queued URLs by the time they were admitted, in steps of four hours, and class."""
    found: dict[int, list[int]] = {}
    for one in counters:
        for name, count in one.counts.items():
            if name.startswith("a:") and count:
                _, step, level = name.split(":")
                found.setdefault(int(step), [0, 0, 0, 0])[int(level)] += count
    return found
