"""What the servers of a frontier say of themselves: for `nephila check`, which judges it.

Only what is asked for to be read is read; nothing is written. What a managed service does not let us read is None.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from .valkey_servers import ServerAddress, ValkeyServers

ACCESS = "see fleet.username, fleet.password_file and REDISCLI_AUTH"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One server."""

    place: str
    trouble: str = ""
    """Why nothing more is known of it."""
    advice: str = ""
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


async def read_facts(servers: ValkeyServers) -> list[NodeFacts]:
    """Every server that the settings name, and every other node of their cluster."""
    waiting = set(servers.addresses)
    facts: dict[ServerAddress, NodeFacts] = {}
    while waiting:
        address = waiting.pop()
        facts[address], others = await _ask(servers, address)
        waiting |= {one for one in others if one not in facts}
    return [facts[address] for address in sorted(facts)]


async def _ask(servers: ValkeyServers, address: ServerAddress) -> tuple[NodeFacts, list[ServerAddress]]:
    options: dict[str, Any] = {"ssl": True, "ssl_context": servers.tls} if servers.tls is not None else {}
    client = Redis(
        host=address.host,
        port=address.port,
        username=servers.user or None,
        password=servers.password or None,
        socket_connect_timeout=servers.connect_timeout_s,
        socket_timeout=servers.timeout_s,
        protocol=2,
        **options,
    )
    try:
        return await _read(client, str(address))
    except (AuthenticationError, NoPermissionError) as error:
        return NodeFacts(str(address), trouble=str(error), advice=ACCESS), []
    except (RedisError, OSError) as error:
        return NodeFacts(str(address), trouble=str(error), advice="see that it runs and can be reached"), []
    finally:
        await client.aclose()


async def _read(client: Any, place: str) -> tuple[NodeFacts, list[ServerAddress]]:  # noqa: ANN401 - half of the library has no types
    info: dict[str, Any] = await client.info("everything")
    before = time.time()
    seconds, micros = await client.time()
    after = time.time()
    version = str(info.get("valkey_version") or info.get("redis_version", "0"))
    is_cluster = bool(info.get("cluster_enabled"))
    state: dict[str, Any] = {}
    others: list[ServerAddress] = []
    if is_cluster:
        state = await client.execute_command("CLUSTER INFO")
        others = _nodes(await client.execute_command("CLUSTER SHARDS"))
    facts = NodeFacts(
        place,
        product="Valkey" if "valkey_version" in info else "Redis",
        version=tuple(int(part) for part in version.split(".")[:3] if part.isdigit()),
        primary=info.get("role") == "master",
        replicas=int(info.get("connected_slaves", 0)),
        functions=await _has_functions(client),
        append_only=bool(int(info.get("aof_enabled", 0))),
        sync=await _config(client, "appendfsync"),
        eviction=str(info.get("maxmemory_policy", "")),
        max_memory=int(info.get("maxmemory", 0)),
        cluster=is_cluster,
        cluster_state=str(state.get("cluster_state", "")),
        slots=int(state.get("cluster_slots_ok", 0)),
        skew_ms=int((seconds + micros / 1e6 - (before + after) / 2) * 1000),
        loading=bool(int(info.get("loading", 0))),
    )
    return facts, others


def _nodes(shards: Any) -> list[ServerAddress]:  # noqa: ANN401 - as the library gives it
    """Addresses out of the answer of CLUSTER SHARDS, which comes as pairs in a list or as a mapping."""
    found: list[ServerAddress] = []
    for shard in shards:
        for node in _mapping(shard).get("nodes", ()):
            fields = _mapping(node)
            host = fields.get("ip") or fields.get("endpoint")
            port = fields.get("port") or fields.get("tls-port")
            if host and port:
                found.append(ServerAddress(_text(host), int(port)))
    return found


def _mapping(value: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    if isinstance(value, dict):
        return {_text(key): item for key, item in value.items()}
    return {_text(key): item for key, item in zip(value[::2], value[1::2], strict=True)}


def _text(value: Any) -> str:  # noqa: ANN401 - as above
    return value.decode() if isinstance(value, bytes) else str(value)


async def _has_functions(client: Any) -> bool:  # noqa: ANN401 - half of the library has no types
    try:
        await client.execute_command("FUNCTION", "LIST")
    except ResponseError:
        return False
    return True


async def _config(client: Any, name: str) -> str | None:  # noqa: ANN401 - as above
    try:
        found = await client.config_get(name)
    except ResponseError:  # not allowed, as on managed services
        return None
    value = next(iter(_mapping(found).values()), None) if found else None
    return None if value is None else _text(value)
