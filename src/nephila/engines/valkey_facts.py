"""What the servers of a frontier say of themselves: for `nephila check`, which judges it.

Only what is asked for to be read is read; nothing is written. What a managed service does not let us read is None.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass, replace
from typing import Any

from .valkey_servers import ACCESS, ServerAddress, ValkeyServers
from .valkey_wire import (
    REACH,
    SECURED,
    UNSECURED,
    Connection,
    ConnectionLostError,
    RefusedError,
    Reply,
    advice_on,
)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One server."""

    place: str
    trouble: str = ""
    """Why nothing more is known of it."""
    advice: str = ""
    away: bool = False
    """Whether that is because nobody answers there."""
    product: str = ""
    version: tuple[int, ...] = ()
    primary: bool = True
    replicas: int = 0
    functions: bool = False
    append_only: bool = False
    sync: str | None = None
    """appendfsync."""
    eviction: str = ""
    max_memory: int = 0
    cluster: bool = False
    cluster_state: str = ""
    slots: int = 0
    skew_ms: int = 0
    """Its clock minus ours."""
    loading: bool = False
    run: str = ""
    """What it drew when it was started: two names with the same are one server's."""
    spare: bool = False
    """Whether it keeps no slots, by what the others of its cluster say: a replica, or a primary that was replaced."""

    @property
    def takes_writes(self) -> bool:
        """Whether something can be written there, or by its cluster."""
        if self.cluster:
            return not self.trouble and self.cluster_state == "ok"
        return not self.trouble and self.primary


async def read_facts(servers: ValkeyServers) -> list[NodeFacts]:
    """Every server that the settings name, and every other node of their cluster; each once, by whatever names."""
    waiting = set(servers.addresses)
    facts: dict[ServerAddress, NodeFacts] = {}
    spare: set[ServerAddress] = set()
    while waiting:
        address = waiting.pop()
        facts[address], others = await _ask(servers, address)
        waiting |= {one for one in others if one not in facts}
        spare |= {one for one, is_spare in others.items() if is_spare}
    found: dict[str, NodeFacts] = {}
    for address in sorted(facts, key=lambda one: (one not in servers.addresses, one)):
        found.setdefault(facts[address].run or str(address), replace(facts[address], spare=address in spare))
    return sorted(found.values(), key=lambda one: one.place)


async def _ask(servers: ValkeyServers, address: ServerAddress) -> tuple[NodeFacts, dict[ServerAddress, bool]]:
    try:
        connection = await Connection.open(address, servers)
    except RefusedError as error:
        return NodeFacts(str(address), trouble=str(error), advice=advice_on(str(error)) or ACCESS), {}
    except ssl.SSLCertVerificationError as error:
        told = f"its certificate is not trusted: {error.verify_message}"
        return NodeFacts(str(address), trouble=told, advice="fleet.authorities names the authority that signed it"), {}
    except (OSError, ConnectionLostError) as error:
        broke = isinstance(error, TimeoutError | ssl.SSLError | ConnectionLostError)  # there, and of few words
        advice = REACH if not broke else SECURED if servers.tls is None else UNSECURED
        told, away = str(error) or "it does not answer in time", not isinstance(error, ssl.SSLError)
        return NodeFacts(str(address), trouble=told, advice=advice, away=away), {}
    try:
        return await _read(connection, str(address), secured=servers.tls is not None)
    except RefusedError as error:
        return NodeFacts(str(address), trouble=str(error), advice=advice_on(str(error)) or ACCESS), {}
    except ConnectionLostError as error:
        return NodeFacts(str(address), trouble=str(error), advice=REACH, away=True), {}
    finally:
        connection.close()


async def _read(connection: Connection, place: str, *, secured: bool) -> tuple[NodeFacts, dict[ServerAddress, bool]]:
    info = _lines(await connection.request(("INFO", "everything")))
    before = time.time()
    seconds, micros = (int(one) for one in await connection.request(("TIME",)))
    after = time.time()
    version = info.get("valkey_version") or info.get("redis_version", "0")
    is_cluster = info.get("cluster_enabled") == "1"
    state: dict[str, str] = {}
    others: dict[ServerAddress, bool] = {}
    if is_cluster:
        state = _lines(await connection.request(("CLUSTER", "INFO")))
        others = _nodes(await connection.request(("CLUSTER", "SHARDS")), connection.address.host, secured=secured)
    facts = NodeFacts(
        place,
        product="Valkey" if "valkey_version" in info else "Redis",
        version=tuple(int(part) for part in version.split(".")[:3] if part.isdigit()),
        primary=info.get("role") == "master",
        replicas=int(info.get("connected_slaves", 0)),
        functions=await _may_use_functions(connection),
        append_only=info.get("aof_enabled") == "1",
        sync=await _config(connection, "appendfsync"),
        eviction=info.get("maxmemory_policy", ""),
        max_memory=int(info.get("maxmemory", 0)),
        cluster=is_cluster,
        cluster_state=state.get("cluster_state", ""),
        slots=int(state.get("cluster_slots_ok", 0)),
        skew_ms=int((seconds + micros / 1e6 - (before + after) / 2) * 1000),
        loading=info.get("loading") == "1",
        run=info.get("run_id", ""),
    )
    return facts, others


def _lines(told: bytes) -> dict[str, str]:
    """The lines of INFO and the like, by their names."""
    lines = told.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def _nodes(shards: Reply, asked: str, *, secured: bool) -> dict[ServerAddress, bool]:
    """Addresses out of the answer of CLUSTER SHARDS, and which are spare: as CLUSTER SLOTS sends workers to them.

    Where a server says nothing of its endpoint, it is to be reached as the one that was `asked`.
    """
    found: dict[ServerAddress, bool] = {}
    for shard in shards:
        for node in _mapping(shard).get("nodes", ()):
            fields = _mapping(node)
            host = fields.get("endpoint") or asked.encode()
            port = (fields.get("tls-port") if secured else None) or fields.get("port") or fields.get("tls-port")
            if port:
                is_spare = fields.get("role") == b"replica" or fields.get("health") == b"fail"
                found[ServerAddress(host.decode(), int(port))] = is_spare
    return found


def _mapping(pairs: list[Any]) -> dict[str, Any]:
    return {key.decode(): item for key, item in zip(pairs[::2], pairs[1::2], strict=True)}


async def _may_use_functions(connection: Connection) -> bool:
    """Whether functions may be loaded and called: asked for with some that cannot be, so that nothing changes."""
    for command in (("FUNCTION", "LOAD", "no library"), ("FCALL", "nephila_check", "0")):
        try:
            await connection.request(command)
        except RefusedError as error:
            if error.kind == "NOPERM" or "unknown command" in str(error):
                return False
    return True


async def _allowed(connection: Connection, *command: str) -> Reply | None:
    """An answer; None where that may not be asked, as on managed services."""
    try:
        return await connection.request(command)
    except RefusedError:
        return None


async def _config(connection: Connection, name: str) -> str | None:
    found = await _allowed(connection, "CONFIG", "GET", name)
    return found[1].decode() if found else None
