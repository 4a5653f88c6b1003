"""Calls that wait for replicas, on servers that are made replicas meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from nephila.engines.valkey import REPLICAS_MS, Valkey
from nephila.engines.valkey_servers import ServerAddress, servers_of
from nephila.engines.valkey_slots import slot_of
from nephila.engines.valkey_wire import RefusedError

OLD, NEW = ServerAddress("127.0.0.1", 7001), ServerAddress("127.0.0.1", 7002)
CALLS = 3
A_REPLICA = RefusedError("ERR WAIT cannot be used with replica instances.")


class Line:
    """A connection whose answers are written down before."""

    def __init__(self, address: ServerAddress, answers: dict[str, Any]) -> None:
        self.address, self.answers, self.asked = address, answers, list[tuple[Any, ...]]()
        self.is_open = True

    def request(self, command: tuple[Any, ...]) -> asyncio.Future[Any]:
        self.asked.append(command)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer = self.answers[command[0]]
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future


@pytest.mark.parametrize(
    ("first", "repeated"),
    [(RefusedError(f"MOVED {slot_of('key')} {NEW}"), False), (b"done, and perhaps forgotten", True)],
    ids=["refused", "answered"],
)
def test_a_server_that_became_a_replica_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, first: Any, repeated: bool
) -> None:
    """N4: the call goes to the new primary; it says that it may have been done, where the old one had answered."""
    told: list[bool] = []

    def make(again: bool) -> tuple[str, ...]:
        told.append(again)
        return ("FCALL",)

    async def run() -> None:
        valkey = Valkey(servers_of([str(OLD)], {}), seed=1)
        old, new = Line(OLD, {"FCALL": first, "WAIT": A_REPLICA}), Line(NEW, {"FCALL": b"done", "WAIT": 1})
        lines = {OLD: old, NEW: new}
        valkey.is_cluster, valkey._slots = True, [OLD] * 16_384

        async def connection(address: ServerAddress) -> Line:
            return lines[address]

        async def no_time(_attempt: int) -> None:
            valkey._slots = [NEW] * 16_384

        def nothing() -> None:
            """The topology is not asked for here."""

        replaced: dict[str, Callable[..., Any]] = {"_connection": connection, "_wait": no_time, "_look_soon": nothing}
        for name, instead in replaced.items():
            monkeypatch.setattr(valkey, name, instead)
        assert await valkey.call("key", make, replicas=1) == b"done"
        assert [command[0] for command in new.asked] == ["FCALL", "WAIT"]

    asyncio.run(run())
    assert told == [False, repeated]


class Waiting(Line):
    """A connection on which replicas are waited for until somebody says how many there are."""

    def __init__(self, address: ServerAddress) -> None:
        super().__init__(address, {"FCALL": b"done"})
        self.waits: list[asyncio.Future[Any]] = []
        self.all_wait = asyncio.Event()

    def request(self, command: tuple[Any, ...]) -> asyncio.Future[Any]:
        if command[0] != "WAIT":
            return super().request(command)
        self.asked.append(command)
        self.waits.append(asyncio.get_running_loop().create_future())
        if len(self.waits) == CALLS:
            self.all_wait.set()
        return self.waits[-1]


@pytest.mark.parametrize("replicas", [0, 1])
def test_one_call_finds_out_whether_a_primary_has_replicas_again(
    monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    """N4: a connection answers one wait after the other, and hundreds of calls would stand behind each other."""

    async def run() -> None:
        valkey, line = Valkey(servers_of([str(OLD)], {}), seed=1), Waiting(OLD)

        async def connection(_address: ServerAddress) -> Line:
            return line

        monkeypatch.setattr(valkey, "_connection", connection)
        valkey._thin[OLD] = asyncio.get_running_loop().time() - 1
        calls = [asyncio.create_task(valkey.call("key", lambda _: ("FCALL",), replicas=1)) for _ in range(CALLS)]
        await line.all_wait.wait()
        for wait in line.waits:
            wait.set_result(replicas)
        assert await asyncio.gather(*calls) == [b"done"] * CALLS
        assert [asked[2] for asked in line.asked if asked[0] == "WAIT"] == [REPLICAS_MS, 1, 1]
        assert (OLD in valkey._thin) == (not replicas)

    asyncio.run(run())
