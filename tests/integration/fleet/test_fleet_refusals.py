"""Servers that refuse: what is waited for, what is told, and what `nephila check` finds before a worker does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from stream_servers import free_port
from valkey_servers import ValkeySingle

from nephila.engines import valkey_state
from nephila.engines.valkey import Valkey
from nephila.engines.valkey_facts import read_facts
from nephila.engines.valkey_servers import ValkeyServers, servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.engines.valkey_wire import EngineError
from nephila.model.errors import EngineAwayError
from nephila.node.fleet.findings import Verdict, judge_nodes

LIBRARY = """#!lua name=spinning
redis.register_function('spin', function(keys) return redis.call('INCR', keys[1]) end)
"""
DOCUMENTED = (
    "~nephila:* +@read +@write +@connection -@dangerous +eval +evalsha +script|load +fcall +function|load"
    " +function|list +info +time +wait +cluster|slots +cluster|info +cluster|shards +config|get"
)


@pytest.fixture
def server() -> Iterator[ValkeySingle]:
    with ValkeySingle("--appendonly", "yes") as running:
        yield running


def spider(server: ValkeySingle, *changes: str) -> ValkeyServers:
    """A user with the rights that docs/fleet.md names, but for these."""
    server.server.ask("ACL", "SETUSER", "spider", "reset", "on", ">silk", *DOCUMENTED.split(), *changes)
    return replace(servers_of(server.names, {"REDISCLI_AUTH": "silk"}), user="spider")


def fill(server: ValkeySingle) -> None:
    """It has no memory left."""
    server.server.ask("CONFIG", "SET", "maxmemory", "100000")


def test_a_server_without_memory_is_waited_for(server: ValkeySingle, monkeypatch: pytest.MonkeyPatch) -> None:
    """N4: a call is done when there is room again, once; whoever does not wait so long is told what to do."""
    monkeypatch.setattr(valkey_state, "ANSWER_S", 0.3)

    async def run() -> None:
        client = Valkey(servers_of(server.names), LIBRARY)
        state = await ValkeyState.open(servers_of(server.names))
        late = Valkey(servers_of(server.names), LIBRARY)
        try:
            await client.start()
            assert await client.do("k", "FCALL", "spin", 1, "k") == 1
            fill(server)
            waiting = asyncio.create_task(client.do("k", "FCALL", "spin", 1, "k"))
            with pytest.raises(EngineAwayError, match="does not answer: OOM") as told:
                await state.call("SET", "k2", "something")
            assert "maxmemory" in told.value.hint
            await late.start(5)
            assert await late.do("k", "GET", "k") == b"1", "who only reads needs none"
            assert not waiting.done()
            server.server.ask("CONFIG", "SET", "maxmemory", "0")
            assert await waiting == 2
        finally:
            for one in (client, state, late):
                await one.close()

    asyncio.run(run())


def test_functions_that_a_server_cannot_take_now_are_loaded_later(server: ValkeySingle) -> None:
    """N4: a server that knows none and has become a replica is waited for, as in any fail-over."""

    async def run() -> None:
        client = Valkey(servers_of(server.names), LIBRARY)
        try:
            await client.start()
            server.server.ask("FUNCTION", "FLUSH")
            server.server.ask("REPLICAOF", "127.0.0.1", "1")
            waiting = asyncio.create_task(client.do("k", "FCALL", "spin", 1, "k"))
            done, _ = await asyncio.wait([waiting], timeout=0.5)
            assert not done
            server.server.ask("REPLICAOF", "NO", "ONE")
            assert await waiting == 1
        finally:
            await client.close()

    asyncio.run(run())


@pytest.mark.parametrize("changes", [("-fcall",), ("-function|load",)])
def test_a_user_who_may_not_use_functions_is_found_by_the_check(server: ValkeySingle, changes: tuple[str, ...]) -> None:
    """N2, N4: before a worker finds it, who then says what to do."""
    findings = judge_nodes(asyncio.run(read_facts(spider(server, *changes))), 0)
    assert [one.text for one in findings if one.verdict is Verdict.FAILED] == ["its functions may not be used"]

    async def work() -> None:
        client = Valkey(spider(server, *changes), LIBRARY)
        try:
            await client.start(5)
            await client.do("nephila:k", "FCALL", "spin", 1, "nephila:k")
        finally:
            await client.close()

    with pytest.raises(EngineError, match="NOPERM") as told:
        asyncio.run(work())
    assert "docs/fleet.md" in told.value.hint


def test_the_rights_that_are_documented_pass_the_check_and_it_changes_nothing(server: ValkeySingle) -> None:
    """N2: no function and no key is there afterwards."""
    findings = judge_nodes(asyncio.run(read_facts(spider(server))), 0)
    assert [one for one in findings if one.verdict is not Verdict.OK] == []
    assert server.server.ask("FUNCTION", "LIST") == []
    assert server.server.ask("DBSIZE") == 0


def test_a_replica_in_place_of_its_primary_is_found_by_the_check(server: ValkeySingle) -> None:
    """N4: it lets us in, and nothing could be written."""
    server.server.ask("REPLICAOF", "127.0.0.1", "1")
    (found,) = [
        one
        for one in judge_nodes(asyncio.run(read_facts(servers_of(server.names))), 0)
        if one.verdict is Verdict.FAILED
    ]
    assert (found.text, found.advice) == ("is a replica, and read-only", "name its primary in fleet.servers")

    async def start() -> None:
        client = Valkey(servers_of(server.names), LIBRARY)
        try:
            await client.start(0.3)
        finally:
            await client.close()

    with pytest.raises(EngineError, match="READONLY") as told:
        asyncio.run(start())
    assert told.value.hint == found.advice


def test_a_cluster_is_looked_at_by_the_names_that_workers_are_sent_to() -> None:
    """N2, N4: its servers need not be reached by their addresses; each is looked at once, by whatever names."""
    cluster = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-announce-ip", "127.0.0.9")
    named = ("--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname")
    with ValkeySingle("--appendonly", "yes", *cluster, *named) as running:
        running.server.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
        while b"cluster_state:ok" not in running.server.ask("CLUSTER", "INFO"):
            time.sleep(0.05)
        for name in (running.server.name, f"localhost:{running.server.port}"):
            nodes = asyncio.run(read_facts(servers_of([name], {})))
            assert [one.place for one in nodes] == [name]
            assert not [one for one in judge_nodes(nodes, 0) if one.verdict is Verdict.FAILED]
