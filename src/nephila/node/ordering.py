"""What a person orders at the desk while a crawl runs or stands still: seeds, re-crawls, policies, blocks (C1, R4, T7).

Every order is judged before anything is opened for writing, so that nothing is half done, and is durable when it
returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from nephila.frontier.blocklist import Blocklist, check_pattern
from nephila.frontier.score import level_of
from nephila.interfaces.frontier import UrlStory
from nephila.model.errors import UsageError
from nephila.model.policy import Block, DomainPolicy
from nephila.model.task import Candidate, Level
from nephila.seeds import Seed
from nephila.urls import Address, registrable_domain

from .blocked import show_blocked
from .desk import Desk, stories_of
from .operating import check_policy
from .sowing import Sown

DEAD_AT_ONCE = 1000
ORDINARY = DomainPolicy()


@dataclass(frozen=True, slots=True)
class Recalled:
    """What became of an order to fetch URLs once more."""

    queued: int
    unknown: tuple[str, ...]
    """Never met by this crawl: to be given as seeds."""
    refused: tuple[tuple[str, str, str], ...]
    """Text, reason and rule."""


def level_named(desk: Desk, priority: str | int) -> Level:
    """The class that a priority means: its name, or points from 0 to 100 by the weights of the crawl."""
    if isinstance(priority, int):
        return level_of(desk.settings.priority, priority)
    return Level[priority.upper()]


async def sow(desk: Desk, urls: Sequence[str], level: Level, origin: str) -> Sown:
    """Admit seeds; the scope grows by what they stand for, as with seeds of the command line."""
    desk.follow_scope()
    blocks = Blocklist(await desk.look(lambda view: view.blocks()))
    sown = await desk.sower.sow_some([Seed(url.strip(), origin, level) for url in urls], blocks)
    if sown.added:
        desk.nudge()
    return sown


async def recall(desk: Desk, urls: Sequence[str], level: Level) -> Recalled:
    """Fetch URLs that are known once more, whatever was planned for them."""
    ended: list[UrlStory] = []
    waiting: list[Candidate] = []
    unknown: list[str] = []
    refused: list[tuple[str, str, str]] = []
    blocks = Blocklist(await desk.look(lambda view: view.blocks()))
    stories = await stories_of(desk, list(dict.fromkeys(urls)))
    for url, story in stories.items():
        address = desk.identify(url)
        if not isinstance(address, Address):
            refused.append((url, *address))
            continue
        block = blocks.find(address.host, address.url, address.fingerprint)
        if block is not None:
            refused.append((url, "blocked", f"{block.pattern}: {block.reason}"))
        elif story is None:
            unknown.append(url)
        elif story.state == "refused":
            refused.append((url, story.reason, story.detail))
        elif story.state in {"queued", "parked", "in_progress"}:
            waiting.append(Candidate(address, story.depth, level))
        else:
            ended.append(story)
    if waiting:
        await desk.frontier.admit(waiting)
    recalled = await desk.frontier.recall(ended, level) if ended else 0
    if waiting or recalled:
        desk.nudge()
    return Recalled(recalled + len(waiting), tuple(unknown), tuple(refused))


# Policies


def domain_named(desk: Desk, text: str) -> str:
    """The registrable domain that a domain, a host or a URL stands for."""
    address = desk.identify(text)
    if not isinstance(address, Address):
        raise UsageError(f"{text!r} is no domain", "write it like example.org")
    return registrable_domain(address.host)


def check(policy: DomainPolicy | None) -> None:
    """UsageError for a policy that cannot be kept."""
    if policy is not None:
        check_policy(policy)


async def set_policy(desk: Desk, domain: str, policy: DomainPolicy | None, was: DomainPolicy) -> bool:
    """Let a policy hold from the next claim on, or none any more; False where `was` does not hold any more."""
    check(policy)
    is_set = await desk.frontier.set_policy(domain, None if policy == ORDINARY else policy, was)
    desk.nudge()
    return is_set


# Blocks


async def block_on(desk: Desk, pattern: str) -> Block | None:
    """The block with exactly that pattern, as it is kept or as it was written."""
    known = {block.pattern: block for block in await desk.look(lambda view: view.blocks())}
    return known.get(pattern) or known.get(check_pattern(pattern))


def block_of(desk: Desk, pattern: str, reason: str) -> Block:
    """A block on a domain, a host or URLs that begin so; UsageError for one that makes no sense."""
    kept, told = check_pattern(pattern), " ".join(reason.split())
    if not told:
        raise UsageError("a block needs a reason", "whoever asks `why` later is told it")
    return Block(kept, told, desk.clock.wall_ms())


async def block(desk: Desk, entry: Block) -> None:
    """Let a block hold from the next claim on."""
    await desk.frontier.block(entry)
    await _show_blocked(desk)


async def unblock(desk: Desk, entry: Block) -> bool:
    """Take a block back; False when there was none."""
    removed = await desk.frontier.unblock(entry.pattern)
    await _show_blocked(desk)
    desk.nudge()
    return removed


async def _show_blocked(desk: Desk) -> None:
    """Have the catalogue show it, in a thread: another process may be writing."""
    secret, view = desk.frontier.secret, desk.frontier.view
    await asyncio.to_thread(show_blocked, desk.directory, desk.settings, secret, view.blocks)


# Dead letters


async def revive(desk: Desk, stories: Sequence[UrlStory] | None) -> int:
    """Put dead letters back into their queues, retries forgiven, all of them for None; how many."""
    count = 0
    if stories is not None:
        count = await desk.frontier.revive(stories)
    else:
        while letters := await desk.look(lambda view: view.dead(DEAD_AT_ONCE)):
            revived = await desk.frontier.revive(letters)
            count += revived
            if not revived:
                break
    desk.nudge()
    return count
