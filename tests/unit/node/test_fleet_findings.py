"""What `check` says of the servers of a frontier."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nephila.engines.valkey_facts import NodeFacts
from nephila.node.fleet.findings import Verdict, judge_nodes

SOUND = NodeFacts(
    "db:6379",
    product="Valkey",
    version=(8, 0, 1),
    functions=True,
    append_only=True,
    sync="everysec",
    eviction="noeviction",
)
MEMBER = replace(SOUND, cluster=True, cluster_state="ok", slots=16_384, replicas=1)


def failed(*nodes: NodeFacts, wait_replicas: int = 0) -> list[str]:
    return [one.text for one in judge_nodes(nodes, wait_replicas) if one.verdict is Verdict.FAILED]


def test_a_sound_server_and_a_sound_cluster_pass() -> None:
    """N2: every line is good."""
    assert failed(SOUND) == []
    replica = replace(MEMBER, place="db:6380", primary=False, replicas=0)
    assert {one.verdict for one in judge_nodes([MEMBER, replica], 1)} == {Verdict.OK}


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (NodeFacts("db:1", trouble="connection refused", advice="start it"), "connection refused"),
        (replace(SOUND, version=(6, 2, 7)), "too old"),
        (replace(SOUND, functions=False), "functions"),
        (replace(SOUND, append_only=False), "appendonly is off"),
        (replace(SOUND, sync="no"), "appendfsync is no"),
        (replace(SOUND, eviction="allkeys-lru"), "allkeys-lru"),
        (replace(SOUND, skew_ms=-4_000), "-4.0 s"),
        (replace(MEMBER, cluster_state="fail", slots=10_000), "10000 of 16384"),
    ],
)
def test_whatever_would_lose_urls_or_stop_a_worker_fails_with_what_to_change(node: NodeFacts, told: str) -> None:
    """N2, N4: one line each."""
    (finding,) = [one for one in judge_nodes([node], 0) if one.verdict is Verdict.FAILED]
    assert told in finding.text
    assert finding.advice


def test_a_cluster_may_lack_a_server_that_keeps_nothing() -> None:
    """N3, N4: workers can be added while a replica is away, or what was a primary until a fail-over; it is told."""
    away = NodeFacts("db:6380", trouble="connection refused", advice="start it", away=True)
    (told,) = [one for one in judge_nodes([MEMBER, replace(away, spare=True)], 0) if one.verdict is not Verdict.OK]
    assert (told.verdict, "connection refused" in told.text) == (Verdict.WARNING, True)
    broken = replace(MEMBER, cluster_state="fail", slots=10_000)
    assert failed(MEMBER, away)
    assert failed(MEMBER, replace(away, away=False, spare=True))
    assert len(failed(broken, replace(away, spare=True))) == 2


def test_replicas_that_are_waited_for_must_be_there() -> None:
    """N4: with wait_replicas and none, what it promises would never hold; one may be away for a while."""
    assert failed(SOUND) == []
    assert "0 follow it: what workers say counts without" in failed(SOUND, wait_replicas=1)[0]
    away = NodeFacts("db:6380", trouble="connection refused", advice="start it", away=True, spare=True)
    thin = replace(MEMBER, replicas=0)
    assert failed(thin, away, wait_replicas=1) == []
    assert "0 follow it" in " ".join(one.text for one in judge_nodes([thin, away], 1) if one.verdict is Verdict.WARNING)


def test_what_could_be_better_is_a_warning() -> None:
    """N2: a primary without a replica, and what may not be read."""
    bare = replace(MEMBER, replicas=0)
    hidden = replace(SOUND, sync=None)
    assert Verdict.WARNING in {one.verdict for one in judge_nodes([bare], 0)}
    assert Verdict.WARNING in {one.verdict for one in judge_nodes([hidden], 0)}
    assert failed(bare) == failed(hidden) == []


def test_two_servers_that_are_no_cluster_are_refused() -> None:
    """N2: half of the URLs would be in each."""
    assert "no cluster" in failed(SOUND, replace(SOUND, place="db:6380"))[0]
