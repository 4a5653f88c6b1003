"""A turn at the address is asked for right before each request, and given back when the exchange has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed
from nephila.testing.loop import run_virtual

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"
HANG, RESET = "hang", "reset"
PUBLIC, SECOND = "93.184.216.34", "93.184.216.35"
TWO: dict[str, Any] = {"a.example": (PUBLIC, SECOND), "proxy.example": ("10.9.9.9",)}

Once = Callable[..., tuple[Answer, Any]]


def busy(answer: Answer) -> FetchFailed:
    assert isinstance(answer, FetchFailed)
    assert answer.kind is FailureKind.ADDRESS_BUSY
    return answer


def test_the_address_is_asked_before_it_is_dialled_and_the_turn_given_back(once: Once) -> None:
    """P2: one permit an exchange."""
    answer, bench = once([[[OK]]])
    assert isinstance(answer, Fetched)
    assert bench.ledger.asked == [(PUBLIC, "a.example")]
    assert (bench.ledger.out, bench.ledger.notices) == ([], [0])


def test_without_a_turn_nothing_is_dialled_and_the_wait_is_told(once: Once) -> None:
    """P2, F2: nothing was sent; it is no failure that is worth a retry."""
    answer, bench = once([], waits=[730], names=TWO)
    refused = busy(answer)
    assert (refused.wait_ms, refused.sent, refused.address) == (730, False, PUBLIC)
    assert bench.dialer.dialled == []
    assert bench.ledger.asked == [(PUBLIC, "a.example")]


def test_a_kept_connection_is_asked_for_the_address_it_leads_to_and_kept_when_refused(
    bench: Callable[..., Any],
) -> None:
    """P2, H1: not what the name resolves to by now; the connection is good for the next turn."""
    desk = bench([[[OK], [OK]]], None, [0, 400])

    async def run() -> tuple[Answer, Answer, Answer]:
        first = await desk.get()
        desk.resolver.names = {"a.example": (SECOND,)}
        return first, await desk.get(), await desk.get()

    first, second, third = run_virtual(run, desk.clock)
    assert isinstance(first, Fetched)
    assert busy(second).wait_ms == 400
    assert isinstance(third, Fetched)
    assert desk.ledger.asked == [(PUBLIC, "a.example")] * 3
    assert len(desk.dialer.dialled) == 1
    assert len(desk.dialer.transports[0].written) == 2
    assert desk.ledger.out == []


def test_a_connection_that_was_put_back_is_kept_no_longer_than_promised(bench: Callable[..., Any]) -> None:
    """H1, P2: a refusal does not make a server wait longer than it said."""
    desk = bench([[[OK], [OK]], [[OK]]], None, [0, 400], keep_alive_s=10.0)

    async def run() -> None:
        await desk.get()
        await asyncio.sleep(9)
        busy(await desk.get())
        await asyncio.sleep(2)
        assert isinstance(await desk.get(), Fetched)
        await desk.fetcher.close()

    run_virtual(run, desk.clock)
    assert len(desk.dialer.dialled) == 2


@pytest.mark.parametrize("script", [ConnectionRefusedError(111, "no"), HANG], ids=["refused", "stalling"])
def test_an_address_that_cannot_be_reached_gives_its_turn_back(once: Once, script: Any) -> None:
    """P2: and the next address is asked for one of its own."""
    answer, bench = once([script, [[OK]]], names=TWO)
    assert isinstance(answer, Fetched)
    assert bench.ledger.asked == [(PUBLIC, "a.example"), (SECOND, "a.example")]
    assert bench.ledger.out == []


def test_a_second_address_without_a_turn_ends_the_matter(once: Once) -> None:
    """P2: both turns are accounted for."""
    answer, bench = once([ConnectionRefusedError(111, "no")], names=TWO, waits=[0, 90])
    assert (busy(answer).wait_ms, busy(answer).address) == (90, SECOND)
    assert bench.ledger.out == []


@pytest.mark.parametrize(
    ("script", "notice_ms"),
    [([[OK[:-2], RESET]], 250), ([[OK[:20], HANG]], 250), ([[b"no http at all\r\n\r\n"]], 250), ([[OK]], 0)],
    ids=["reset", "timeout", "protocol", "whole"],
)
def test_an_exchange_that_broke_off_is_given_back_with_time_to_notice(once: Once, script: Any, notice_ms: int) -> None:
    """P2, P5: for the server it ends when it notices."""
    _, bench = once([script])
    assert (bench.ledger.out, bench.ledger.notices) == ([], [notice_ms])


@pytest.mark.parametrize("script", [HANG, [[HANG]]], ids=["connecting", "waiting"])
def test_a_fetch_that_is_cancelled_leaves_no_turn_behind(bench: Callable[..., Any], script: Any) -> None:
    """F10, P2: a stop is clean."""
    desk = bench([script])

    async def run() -> None:
        task = asyncio.create_task(desk.get())
        await asyncio.sleep(1)
        assert len(desk.ledger.out) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(run, desk.clock)
    assert desk.ledger.out == []


@pytest.mark.parametrize("proxy", ["socks5://10.9.9.9", "http://10.9.9.9"])
def test_behind_a_tunnel_the_judged_address_of_the_host_counts(once: Once, proxy: str) -> None:
    """P2, H6: as for the guard; not the proxy's, which all requests share."""
    answer, bench = once([], waits=[50], settings={"proxy": proxy})
    assert busy(answer).address == PUBLIC
    assert bench.ledger.asked == [(PUBLIC, "a.example")]


def test_where_the_proxy_finds_the_address_itself_there_is_none_to_count(once: Once) -> None:
    """P2: a request that is forwarded by name."""
    answer, bench = once([[[OK]]], waits=[50], settings={"proxy": "http://10.9.9.9", "proxy_tunnel": False})
    assert isinstance(answer, Fetched)
    assert bench.ledger.asked == []


def test_another_user_agent_is_said_where_it_is_asked_for(bench: Callable[..., Any]) -> None:
    """R4, P6: for that request only, on the same connection."""
    desk = bench([[[OK], [OK]]])

    async def run() -> None:
        await desk.get(user_agent="Other/1 (+https://nephila.invalid/other)")
        await desk.get()

    run_virtual(run, desk.clock)
    first, second = desk.dialer.transports[0].written
    assert first.count(b"User-Agent: ") == second.count(b"User-Agent: ") == 1
    assert b"\r\nUser-Agent: Other/1 (+https://nephila.invalid/other)\r\n" in first
    assert b"Other/1" not in second
