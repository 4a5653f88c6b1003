"""Orders: seeds, re-crawls, policies, pauses, blocks, dead letters, feedback. Every change is noted."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from nephila.interfaces.frontier import UrlStory
from nephila.model.errors import UsageError
from nephila.model.policy import DomainPolicy, Tier
from nephila.model.rendering import RenderMode
from nephila.node import ordering
from nephila.node.desk import stories_of
from nephila.node.noting import OvertakenError, noted

from . import asked, given
from .access import Role
from .endpoint import Call, Endpoint
from .problems import ProblemError
from .shown import HOUR_S, ORDINARY, block_given, policy_given

ATTEMPTS = 20
"""Each that fails is one at which somebody else's order came through."""


async def add_seeds(call: Call[asked.SeedsOrder, None]) -> given.SeedsAnswer:
    """Admit seeds."""
    level = ordering.level_named(call.desk, call.body.priority)
    wanted = {**noted(call.body.urls), "priority": call.body.priority}
    async with call.changing("seeds", "", wanted=wanted) as change:
        sown = await ordering.sow(call.desk, call.body.urls, level, f"api {call.caller.name}")
        change.after = {**wanted, "added": sown.added}
    refused = [given.Refused(url=one.text, reason=one.reason, detail=one.detail) for one in sown.refused]
    return given.SeedsAnswer(added=sown.added, duplicates=sown.known, refused=refused)


async def recrawl(call: Call[asked.RecrawlOrder, None]) -> given.RecrawlAnswer:
    """Fetch known URLs once more."""
    level = ordering.level_named(call.desk, call.body.priority)
    wanted = noted(call.body.urls)
    async with call.changing("recrawl", "", wanted=wanted) as change:
        recalled = await ordering.recall(call.desk, call.body.urls, level)
        change.after = {**wanted, "queued": recalled.queued}
    refused = [given.Refused(url=url, reason=reason, detail=detail) for url, reason, detail in recalled.refused]
    return given.RecrawlAnswer(queued=recalled.queued, unknown=list(recalled.unknown), refused=refused)


# Policies


def policy_ordered(order: asked.PolicyOrder) -> DomainPolicy:
    """The policy that an order means; UsageError where it contradicts itself."""
    delay_s = order.delay_s
    if order.max_qps is not None:
        by_rate_s = 1 / order.max_qps
        if delay_s is not None and not math.isclose(delay_s, by_rate_s, rel_tol=1e-6):
            raise UsageError("max_qps and delay_s contradict each other", "give one of them")
        delay_s = by_rate_s if delay_s is None else delay_s
    every = order.recrawl_interval_hours
    return DomainPolicy(
        delay_s=delay_s,
        max_depth=order.crawl_depth,
        tier=Tier(order.tier),
        recrawl_s=None if every is None else every * HOUR_S,
        user_agent=order.user_agent,
        hours=tuple(order.hours),
        paused=order.paused,
        quality=order.quality,
        render=RenderMode(order.render),
    )


async def list_policies(call: Call[None, asked.PoliciesAsked]) -> given.PoliciesAnswer:
    """Policies by domain."""
    known = await call.desk.look(lambda view: view.policies())
    names = sorted(name for name in known if name > call.query.after)
    page = names[: call.query.limit]
    following = page[-1] if len(names) > len(page) else ""
    return given.PoliciesAnswer(
        policies=[policy_given(name, known[name]) for name in page], total=len(known), next=following
    )


async def get_policy(call: Call[None, None]) -> given.PolicyGiven:
    """The policy of one domain."""
    domain = ordering.domain_named(call.desk, call.path["domain"])
    return policy_given(domain, await call.desk.look(lambda view: view.policy(domain)))


async def put_policy(call: Call[asked.PolicyOrder, None]) -> given.PolicyGiven:
    """Let a policy hold in place of the one before."""
    domain = ordering.domain_named(call.desk, call.path["domain"])
    wanted = policy_ordered(call.body)
    return await _set(call, domain, "policy", lambda _: wanted)


async def delete_policy(call: Call[None, None]) -> given.PolicyGiven:
    """Take a policy back: the settings of the crawl hold."""
    domain = ordering.domain_named(call.desk, call.path["domain"])
    return await _set(call, domain, "policy", lambda _: None)


async def pause(call: Call[asked.Nothing, None]) -> given.PolicyGiven:
    """Ask nothing more of a domain."""
    return await _pause(call, paused=True)


async def resume(call: Call[asked.Nothing, None]) -> given.PolicyGiven:
    """Go on with a domain."""
    return await _pause(call, paused=False)


async def _pause(call: Call[asked.Nothing, None], *, paused: bool) -> given.PolicyGiven:
    domain = ordering.domain_named(call.desk, call.path["domain"])
    return await _set(call, domain, "pause" if paused else "resume", lambda known: replace(known, paused=paused))


async def feedback(call: Call[asked.FeedbackOrder, None]) -> given.PolicyGiven:
    """What downstream thinks of a domain's pages (F5)."""
    domain = ordering.domain_named(call.desk, call.body.domain)
    return await _set(call, domain, "feedback", lambda known: replace(known, quality=call.body.quality))


async def _set(
    call: Call[asked.PolicyOrder, None]
    | Call[asked.Nothing, None]
    | Call[asked.FeedbackOrder, None]
    | Call[None, None],
    domain: str,
    what: str,
    amended: Callable[[DomainPolicy], DomainPolicy | None],
) -> given.PolicyGiven:
    """Let a policy hold for a domain, with both that and what held before on record.

    It is made from what holds. Where somebody else has changed that before it is in force, it is made anew: of two
    orders for one domain that come at once, none undoes the other.
    """
    for _ in range(ATTEMPTS):
        known = await call.desk.look(lambda view: view.policy(domain)) or ORDINARY
        policy = amended(known)
        ordering.check(policy)
        shown = policy_given(domain, policy)
        with suppress(OvertakenError):
            async with call.changing(what, domain, policy_given(domain, known), shown):
                if not await ordering.set_policy(call.desk, domain, policy, known):
                    raise OvertakenError
            return shown
    raise ProblemError(503, f"others change the policy of {domain} all the time", "send it again")


# Blocks


async def list_blocks(call: Call[None, asked.BlocksAsked]) -> given.BlocksAnswer:
    """Blocks by pattern."""
    known = await call.desk.look(lambda view: view.blocks())
    later = sorted((one for one in known if one.pattern > call.query.after), key=lambda one: one.pattern)
    page = later[: call.query.limit]
    following = page[-1].pattern if len(later) > len(page) else ""
    return given.BlocksAnswer(blocks=[block_given(one) for one in page], total=len(known), next=following)


async def add_block(call: Call[asked.BlockOrder, None]) -> given.BlockGiven:
    """Ask no more for what a pattern names."""
    block = ordering.block_of(call.desk, call.body.pattern, call.body.reason)
    before = await ordering.block_on(call.desk, block.pattern)
    shown = block_given(block)
    async with call.changing("block", block.pattern, None if before is None else block_given(before), shown):
        await ordering.block(call.desk, block)
    return shown


async def remove_block(call: Call[None, asked.UnblockAsked]) -> given.BlockGiven:
    """Take a block back."""
    before = await ordering.block_on(call.desk, call.query.pattern)
    if before is None:
        raise ProblemError(404, f"there is no block on {call.query.pattern!r}", "GET /api/v1/blocklist lists them")
    shown = block_given(before)
    async with call.changing("unblock", before.pattern, shown):
        await ordering.unblock(call.desk, before)
    return shown


# Dead letters


async def list_letters(call: Call[None, asked.LettersAsked]) -> given.LettersAnswer:
    """URLs that were given up."""
    view = call.desk.frontier.view
    try:
        after = bytes.fromhex(call.query.after)
    except ValueError:
        raise ProblemError(422, "`after` is not where a page ended", "give `next` of the page before") from None
    letters = await call.desk.look(lambda known: known.dead(call.query.limit, after))
    following = view.key_of(letters[-1]).hex() if len(letters) == call.query.limit else ""
    total = (await call.desk.counters()).states["dead"]
    return given.LettersAnswer(dead_letters=[_letter(one) for one in letters], total=total, next=following)


def _letter(story: UrlStory) -> given.Letter:
    return given.Letter(
        url=story.url,
        host=story.host,
        kind=story.reason,
        detail=story.detail,
        retries=story.retries,
        at=story.settled_at,
    )


async def retry_letters(call: Call[asked.RetryOrder, None]) -> given.RetryAnswer:
    """Put dead letters back, retries forgiven."""
    order = call.body
    if order.all == bool(order.urls):
        raise ProblemError(422, "give either urls or all", 'write {"urls": [...]} or {"all": true}')
    dead, others = None, list[str]()
    if not order.all:
        stories = await stories_of(call.desk, order.urls)
        dead = [story for story in stories.values() if story is not None and story.state == "dead_letter"]
        others = [url for url, story in stories.items() if story is None or story.state != "dead_letter"]
    wanted = noted(order.urls)
    async with call.changing("retry", "all" if order.all else "", wanted=wanted) as change:
        revived = 0 if dead == [] else await ordering.revive(call.desk, dead)
        change.after = {**wanted, "revived": revived}
    return given.RetryAnswer(revived=revived, not_dead=others)


WRITE = Role.WRITE
ENDPOINTS = (
    Endpoint(
        "POST", "/seeds", "addSeeds", "Add seeds", given.SeedsAnswer, add_seeds, WRITE, asked.SeedsOrder, tag="seeds"
    ),
    Endpoint(
        "POST",
        "/recrawl",
        "recrawl",
        "Fetch known URLs once more",
        given.RecrawlAnswer,
        recrawl,
        WRITE,
        asked.RecrawlOrder,
        tag="seeds",
    ),
    Endpoint(
        "GET",
        "/policies",
        "listPolicies",
        "List policies",
        given.PoliciesAnswer,
        list_policies,
        query=asked.PoliciesAsked,
        tag="policies",
    ),
    Endpoint(
        "GET",
        "/policies/{domain}",
        "getPolicy",
        "Show what holds for a domain",
        given.PolicyGiven,
        get_policy,
        tag="policies",
    ),
    Endpoint(
        "PUT",
        "/policies/{domain}",
        "putPolicy",
        "Set what holds for a domain",
        given.PolicyGiven,
        put_policy,
        WRITE,
        asked.PolicyOrder,
        tag="policies",
    ),
    Endpoint(
        "DELETE",
        "/policies/{domain}",
        "deletePolicy",
        "Take a policy back",
        given.PolicyGiven,
        delete_policy,
        WRITE,
        tag="policies",
    ),
    Endpoint(
        "POST",
        "/domains/{domain}/pause",
        "pauseDomain",
        "Ask nothing more of a domain",
        given.PolicyGiven,
        pause,
        WRITE,
        asked.Nothing,
        tag="domains",
    ),
    Endpoint(
        "POST",
        "/domains/{domain}/resume",
        "resumeDomain",
        "Go on with a domain",
        given.PolicyGiven,
        resume,
        WRITE,
        asked.Nothing,
        tag="domains",
    ),
    Endpoint(
        "POST",
        "/feedback",
        "feedback",
        "Say what a domain's pages are worth",
        given.PolicyGiven,
        feedback,
        WRITE,
        asked.FeedbackOrder,
        tag="policies",
    ),
    Endpoint(
        "GET",
        "/blocklist",
        "listBlocks",
        "List blocks",
        given.BlocksAnswer,
        list_blocks,
        query=asked.BlocksAsked,
        tag="blocklist",
    ),
    Endpoint(
        "POST",
        "/blocklist",
        "addBlock",
        "Block a domain, a host or URLs that begin so",
        given.BlockGiven,
        add_block,
        WRITE,
        asked.BlockOrder,
        status=201,
        tag="blocklist",
    ),
    Endpoint(
        "DELETE",
        "/blocklist",
        "removeBlock",
        "Take a block back",
        given.BlockGiven,
        remove_block,
        WRITE,
        query=asked.UnblockAsked,
        problems=(404,),
        tag="blocklist",
    ),
    Endpoint(
        "GET",
        "/dead-letters",
        "listDeadLetters",
        "List URLs that were given up",
        given.LettersAnswer,
        list_letters,
        query=asked.LettersAsked,
        tag="dead letters",
    ),
    Endpoint(
        "POST",
        "/dead-letters/retry",
        "retryDeadLetters",
        "Put dead letters back",
        given.RetryAnswer,
        retry_letters,
        WRITE,
        asked.RetryOrder,
        tag="dead letters",
    ),
)
