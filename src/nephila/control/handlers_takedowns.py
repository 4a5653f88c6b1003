"""Takedowns: block, purge, prove (K2)."""

from __future__ import annotations

import asyncio

from nephila.node.takedown import Takedown
from nephila.node.takedown.ordering import checked_order, named, take_down

from . import asked, given
from .access import Role
from .endpoint import Call, Endpoint
from .problems import ProblemError


def _given(one: Takedown) -> given.TakedownGiven:
    return given.TakedownGiven(
        id=one.id,
        state=one.state.value,
        urls=list(one.order.urls),
        domains=list(one.order.domains),
        reason=one.order.reason,
        who=one.order.who,
        ordered_at=one.at,
        done_at=one.done_at,
        captures=one.captures,
        emptied=one.emptied,
        files=[
            given.RewrittenGiven(file=file.file, at=file.at, was=file.was, now=file.now, removed=file.removed)
            for file in one.files
        ],
        head=one.head,
        outside=list(one.outside),
    )


async def order_takedown(call: Call[asked.TakedownOrder, None]) -> given.TakedownGiven:
    """Block it at once; what was stored is taken out by the crawl that runs, by whoever serves a fleet, or `purge`."""
    order = call.body
    checked = checked_order(call.desk, order.urls, order.domains, order.reason, call.caller.name)
    wanted = named(checked)
    async with call.changing("takedown", "", wanted=wanted) as change:
        filed = await take_down(call.desk, checked)
        change.after = {**wanted, "id": filed.id}
    return _given(filed)


async def list_takedowns(call: Call[None, asked.TakedownsAsked]) -> given.TakedownsAnswer:
    """The newest first."""
    records = call.desk.takedowns.records
    limit, before = call.query.limit, call.query.before
    found = await asyncio.to_thread(records.newest, limit + 1, before)
    page = found[:limit]
    following = page[-1].id if len(found) > limit else ""
    total = await asyncio.to_thread(records.count)
    return given.TakedownsAnswer(takedowns=[_given(one) for one in page], total=total, next=following)


async def get_takedown(call: Call[None, None]) -> given.TakedownGiven:
    """One, with its proof when it is done."""
    number = call.path["takedown_id"]
    found = await asyncio.to_thread(call.desk.takedowns.records.get, number)
    if found is None:
        raise ProblemError(404, f"there is no takedown {number!r}", "GET /api/v1/takedowns lists them")
    return _given(found)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/takedowns",
        "orderTakedown",
        "Block pages or domains, and take what was stored of them out of everything",
        given.TakedownGiven,
        order_takedown,
        Role.WRITE,
        asked.TakedownOrder,
        status=202,
        tag="takedowns",
    ),
    Endpoint(
        "GET",
        "/takedowns",
        "listTakedowns",
        "List takedowns",
        given.TakedownsAnswer,
        list_takedowns,
        query=asked.TakedownsAsked,
        tag="takedowns",
    ),
    Endpoint(
        "GET",
        "/takedowns/{takedown_id}",
        "getTakedown",
        "Show a takedown and its proof",
        given.TakedownGiven,
        get_takedown,
        problems=(404,),
        tag="takedowns",
    ),
)
