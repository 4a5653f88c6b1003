"""Which name server is asked first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nephila.fetch.dns_servers import FAILED_REST_MS, LONGEST_REST_MS, SILENT_REST_MS, ServerOrder

A, B, C = ("10.0.0.1", 53), ("10.0.0.2", 53), ("10.0.0.3", 53)


def test_servers_are_asked_in_the_order_they_were_given() -> None:
    """H4: the user's first choice is the first."""
    assert ServerOrder((B, A, C)).at(0) == [B, A, C]


def test_a_silent_server_is_asked_last_for_a_while_and_longer_each_time() -> None:
    """H4: and is the first again afterwards."""
    order = ServerOrder((A, B))
    now = 1_000
    for rest_ms in (SILENT_REST_MS, 2 * SILENT_REST_MS, 4 * SILENT_REST_MS, 8 * SILENT_REST_MS, LONGEST_REST_MS):
        order.silent(A, now)
        assert order.at(now + rest_ms - 1) == [B, A]
        assert order.at(now + rest_ms) == [A, B]
        now += rest_ms
    order.answered(A)
    order.silent(A, now)
    assert order.at(now + SILENT_REST_MS) == [A, B]


def test_a_name_that_no_server_can_resolve_does_not_put_a_dead_one_first() -> None:
    """H4: a failure weighs less than silence."""
    order = ServerOrder((A, B, C))
    order.failed(A, 0)
    order.silent(B, 0)
    order.failed(C, 0)
    assert order.at(1) == [A, C, B]
    assert order.at(FAILED_REST_MS) == [A, C, B]


@given(st.lists(st.tuples(st.sampled_from(["answered", "failed", "silent"]), st.integers(0, 2)), max_size=40))
def test_no_server_is_ever_left_out(events: list[tuple[str, int]]) -> None:
    """H4: all are asked before a name is given up, and none rests for longer than the longest rest."""
    order = ServerOrder((A, B, C))
    for now, (event, which) in enumerate(events):
        server = (A, B, C)[which]
        if event == "answered":
            order.answered(server)
        else:
            getattr(order, event)(server, now)
        assert sorted(order.at(now)) == [A, B, C]
    assert order.at(len(events) + LONGEST_REST_MS) == [A, B, C]
