"""A client of Valkey or Redis, one server or a cluster, that does not give up.

A call is for one key, and goes to the server that keeps it. Where that server is away, starts, fails over or hands a
slot on, the call waits with jitter and is sent again (N4): it ends when it is answered, or when whoever asked ends it.
As a call whose answer was lost may have been done, whoever calls says how to repeat it: `make(again)` is asked for the
command each time, with `again` true when an earlier one may have been done.

Functions that a server does not know (a new primary, one that was emptied) are loaded and the call repeated.
"""

from __future__ import annotations

import asyncio
import errno
import math
from collections.abc import Callable, Sequence
from random import Random

from nephila.model.errors import EngineLeftError

from .valkey_servers import ServerAddress, ValkeyServers
from .valkey_slots import PASSING, read_slots, redirected, slot_of
from .valkey_wire import REACH, Connection, ConnectionLostError, EngineError, RefusedError, Reply, Word, advice_on

PROMPT_S = 1.0
"""How long a command waits where nobody listens: a moment, since the server may just be started again."""
FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 2.0
MOST_REDIRECTS = 8
REPLICAS_MS = 1000
"""How long replicas are waited for."""
THIN_S = 10.0
"""After that was in vain, for so long they are asked for and not waited for."""

Command = tuple[Word, ...]


class Valkey:
    """The client. `moved` is told when a slot has another primary than before: its clock is another one."""

    def __init__(self, servers: ValkeyServers, library: str = "", seed: int | None = None) -> None:
        self._servers = servers
        self._library = library
        self._random = Random(seed)  # noqa: S311 - jitter
        self._open: dict[ServerAddress, Connection] = {}
        self._opening: dict[ServerAddress, asyncio.Task[Connection]] = {}
        self._slots: list[ServerAddress | None] = []
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        self.is_cluster = False
        self.moves = 0
        """How often a slot was found to have moved, or a server to be new."""
        self.unreplicated = 0
        """Answers that were given before enough replicas had them."""
        self._thin: dict[ServerAddress, float] = {}
        """Servers that lack replicas, and until when they are not waited for."""
        self._refusal = (float("-inf"), "")
        """When a call was last refused for a while, in loop time, and how."""
        self.away_since: float | None = None
        """Loop time since which an answer is waited for in vain; None while all is well."""
        self._give_up_at = math.inf
        """When nobody is waited for any more who does not answer, in loop time."""
        self._has_given_up = False

    async def start(
        self, patience_s: float = 30.0, *, refused_s: float = math.inf, tell: Callable[[str], None] | None = None
    ) -> None:
        """Connect, learn the topology, load the functions; EngineError when that takes too long or is refused.

        Where every server refuses connections, nobody listens there: that is waited for `refused_s` at most. `tell`
        hears, once, that something is waited for, and what it is.
        """
        last: list[Exception] = []
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(patience_s):
                while not await self._started(last):
                    if nobody_listens(last[-1]) and loop.time() - begun >= refused_s:
                        raise self._silent(last[-1])
                    if tell is not None and len(last) == 1:
                        tell(f"{self._silent(last[-1])}; it is waited for, {patience_s:g} s at most")
                    await self._pause(len(last))
        except TimeoutError:
            raise self._silent(last[-1] if last else None) from (last[-1] if last else None)

    def _silent(self, why: Exception | None) -> EngineError:
        told = "nobody listens there" if why is not None and nobody_listens(why) else str(why or "")
        return EngineError(
            f"Valkey at {self._named()} does not answer{': ' if told else ''}{told}", advice_on(told) or REACH
        )

    def why_away(self, within_s: float) -> str:
        """How calls were refused for a while lately; empty where none was."""
        refused_at, told = self._refusal
        return told if asyncio.get_running_loop().time() - refused_at < within_s else ""

    async def _started(self, failures: list[Exception]) -> bool:
        """Learn the topology and load the functions; what went wrong for now is added to `failures`."""
        try:
            await self._learn()
            await self.load()
        except (OSError, ConnectionLostError, TimeoutError) as error:
            failures.append(error)
        except RefusedError as error:
            if error.kind not in PASSING:
                raise self._refused(self._named(), error) from error
            failures.append(error)
        else:
            return True
        return False

    @staticmethod
    def _refused(place: object, error: RefusedError) -> EngineError:
        return EngineError(f"Valkey at {place} refused: {error}", advice_on(str(error)))

    def _named(self) -> str:
        return ", ".join(map(str, self._servers.addresses))

    def hurry(self, seconds: float) -> None:
        """Somebody wants an end: a server that does not answer is waited for so long, and no longer."""
        self._give_up_at = min(self._give_up_at, asyncio.get_running_loop().time() + seconds)
        for connection in self._open.values():
            connection.hurry(seconds)

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for task in (*self._opening.values(), *([self._looking] if self._looking else [])):
            task.cancel()
        for connection in self._open.values():
            connection.close()
        self._open.clear()
        await asyncio.sleep(0)

    # Calls

    async def call(self, key: str, make: Callable[[bool], Command], replicas: int = 0) -> Reply:
        """Do a command for a key, again and again until it is answered (and so many replicas have it).

        Raises `EngineLeftError` where that is not waited for any more.
        """
        self._check_patience()
        slot, again, attempt = slot_of(key) if self.is_cluster else 0, False, 0
        asking: ServerAddress | None = None
        while True:
            address = asking or self._address(slot)
            try:
                connection = await self._connection(address)
                if asking:
                    connection.request(("ASKING",)).add_done_callback(_look_at)
                answer = connection.request(make(again))
                if replicas:
                    answer.add_done_callback(_look_at)
                    await self._replicated_or_told(connection, replicas, answer)
                reply = await answer
            except RefusedError as error:
                asking = redirected(str(error), address)[1] if error.kind == "ASK" else None
                attempt += 1
                await self._after_refusal(error, address, attempt)
            except ConnectionLostError:
                again, asking, attempt = True, None, attempt + 1
                self._drop(address)
                await self._wait(attempt)
            except (OSError, TimeoutError):
                asking, attempt = None, attempt + 1
                await self._wait(attempt)
            else:
                self.away_since = None
                return reply

    async def _after_refusal(self, error: RefusedError, address: ServerAddress, attempt: int) -> None:
        """Do what lets a refused call be tried again; raises where nothing does."""
        if error.kind in {"MOVED", "ASK"}:
            if error.kind == "MOVED":
                self._note_move(*redirected(str(error), address))
            if attempt > MOST_REDIRECTS:
                await self._wait(attempt)
        elif error.kind in PASSING:
            self._refusal = asyncio.get_running_loop().time(), str(error).rstrip(".")
            await self._wait(attempt)
        elif "Function not found" in str(error) and self._library and attempt <= MOST_REDIRECTS:
            self.moves += 1
            await self._load_again(address, attempt)
        else:
            raise self._refused(address, error) from error

    async def _load_again(self, address: ServerAddress, attempt: int) -> None:
        """Load the functions into a server that does not know them; one that cannot take them now is waited for."""
        try:
            await self._load_into(await self._connection(address))
        except (OSError, ConnectionLostError, TimeoutError):
            await self._wait(attempt)
        except RefusedError as error:
            if error.kind not in PASSING:
                raise self._refused(address, error) from error
            await self._wait(attempt)

    async def _replicated_or_told(self, connection: Connection, replicas: int, answer: asyncio.Future[Reply]) -> None:
        """The same; a server that is a replica by now has mostly said so to the call itself, and that is told.

        One that answered before it was made one may have forgotten what it did: the call is repeated.
        """
        try:
            await self._replicated(connection, replicas)
        except RefusedError as error:
            await answer
            self._look_soon()
            raise ConnectionLostError(f"{connection.address}: {error}") from error

    async def _replicated(self, connection: Connection, replicas: int) -> None:
        """Wait until what was sent on a connection has come to so many replicas, as long as that is to be hoped for.

        After a fail-over a primary may have none. Whoever would rather stand still then sets `min-replicas-to-write`.
        """
        now = asyncio.get_running_loop().time()
        thin_until = self._thin.get(connection.address)
        hopeless = thin_until is not None and thin_until > now
        if thin_until is not None and not hopeless:
            # This one finds out, for all: the server answers one wait after the other.
            self._thin[connection.address] = now + THIN_S
        if await connection.request(("WAIT", replicas, 1 if hopeless else REPLICAS_MS)) >= replicas:
            self._thin.pop(connection.address, None)
        else:
            self.unreplicated += 1
            if not hopeless:
                self._thin[connection.address] = now + THIN_S

    async def do(self, key: str, *command: Word) -> Reply:
        """Do a command that may be repeated as it is."""
        return await self.call(key, lambda _: command)

    async def primaries(self) -> list[ServerAddress]:
        """Every server that keeps keys."""
        if not self.is_cluster:
            return [self._address(0)]
        return sorted({address for address in self._slots if address is not None})

    async def ask(self, address: ServerAddress, *command: Word) -> Reply:
        """Do a command on one server, once; raises what went wrong."""
        return await (await self._connection(address)).request(command)

    async def load(self) -> None:
        """Load the functions into every primary."""
        if self._library:
            for address in await self.primaries():
                try:
                    await self._load_into(await self._connection(address))
                except RefusedError as error:
                    if error.kind != "OOM":  # they may be there, and then much can be done without more memory
                        raise

    async def _load_into(self, connection: Connection) -> None:
        await connection.request(("FUNCTION", "LOAD", "REPLACE", self._library))

    # Where

    def _address(self, slot: int) -> ServerAddress:
        if self.is_cluster and (address := self._slots[slot]) is not None:
            return address
        known = self._servers.addresses
        return known[0] if len(known) == 1 else self._random.choice(known)

    def _note_move(self, slot: int, address: ServerAddress) -> None:
        self.moves += 1
        if self.is_cluster:
            self._slots[slot] = address
            self._look_soon()

    async def _learn(self) -> None:
        """Ask any server for the topology."""
        known = [*dict.fromkeys((*self._servers.addresses, *(one for one in self._slots[::1024] if one)))]
        self._random.shuffle(known)
        last: Exception | None = None
        for address in known:
            try:
                await self._learn_from(await self._connection(address))
            except (OSError, ConnectionLostError, TimeoutError, RefusedError) as error:
                last = error if last is None or not nobody_listens(error) else last  # somebody may: that says more
            else:
                return
        if last is not None:
            raise last

    async def _learn_from(self, connection: Connection) -> None:
        info = (await connection.request(("INFO", "cluster"))).decode()
        if "cluster_enabled:1" in info:
            slots = read_slots(await connection.request(("CLUSTER", "SLOTS")), connection.address)
            if None in slots:
                raise RefusedError("CLUSTERDOWN some slots are kept by nobody")
            self._note_slots(slots)

    def _note_slots(self, slots: Sequence[ServerAddress | None]) -> None:
        if self._slots and list(slots) != self._slots:
            self.moves += 1
        self.is_cluster, self._slots = True, list(slots)

    def _look_soon(self) -> None:
        if self.is_cluster and not self._closed and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look_again(), name="valkey topology")

    async def _look_again(self) -> None:
        try:
            await self._learn()
            await self.load()
        except (OSError, ConnectionLostError, TimeoutError, RefusedError):
            return  # the next call that is refused looks again

    # Connections

    async def _connection(self, address: ServerAddress) -> Connection:
        connection = self._open.get(address)
        if connection is not None and connection.is_open:
            return connection
        if self._closed:
            raise EngineError("the connection to Valkey was closed")
        task = self._opening.get(address)
        if task is None:
            task = asyncio.create_task(Connection.open(address, self._servers), name=f"valkey {address}")
            self._opening[address] = task
            task.add_done_callback(lambda done: self._opened(address, done))
        try:
            return await asyncio.shield(task)
        except RefusedError as error:
            if error.kind in PASSING:
                raise
            raise self._refused(address, error) from error

    def _opened(self, address: ServerAddress, task: asyncio.Task[Connection]) -> None:
        self._opening.pop(address, None)
        if task.cancelled() or task.exception() is not None:
            return
        if self._closed:
            task.result().close()
        else:
            self._open[address] = task.result()

    def _drop(self, address: ServerAddress) -> None:
        connection = self._open.get(address)
        if connection is not None and not connection.is_open:
            self._open.pop(address, None)

    async def _wait(self, attempt: int) -> None:
        if self._closed:
            raise EngineError("the connection to Valkey was closed")
        if self.away_since is None:
            self.away_since = asyncio.get_running_loop().time()
        self._has_given_up = self._has_given_up or asyncio.get_running_loop().time() >= self._give_up_at
        self._check_patience()
        if attempt > 1:
            self._look_soon()
        await self._pause(attempt)

    def _check_patience(self) -> None:
        if self._has_given_up:
            raise EngineLeftError(f"Valkey at {self._named()} does not answer, and is not waited for any more", REACH)

    async def _pause(self, attempt: int) -> None:
        longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(attempt, 10))
        await asyncio.sleep(longest * (0.5 + self._random.random() / 2))


def nobody_listens(error: Exception) -> bool:
    """Whether a connection was refused, by every address that a name has."""
    if not isinstance(error, OSError):
        return False
    refused = f"[Errno {errno.ECONNREFUSED}]"  # the loop tells of several addresses in one text, without a number
    return error.errno == errno.ECONNREFUSED or 0 < str(error).count("[Errno ") == str(error).count(refused)


def _look_at(future: asyncio.Future[Reply]) -> None:
    """What ASKING was answered is of no interest, but must be looked at."""
    if not future.cancelled():
        future.exception()
