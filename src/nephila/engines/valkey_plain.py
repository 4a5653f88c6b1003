"""The same client without an event loop, for readers: one question, one answer, a blocking socket to each server.

Several threads may ask at once: each question has the connections to itself while it is asked and answered, and not
while a server that is away is waited for. When one question was not answered in all its time, those of the next seconds
are not asked, and the one after them asks each server once: a hundred who ask do not wait one after the other.
"""

from __future__ import annotations

import contextlib
import math
import socket
import time
from collections.abc import Sequence
from random import Random
from threading import Lock
from typing import NamedTuple

import hiredis

from .valkey_servers import ServerAddress, ValkeyServers
from .valkey_slots import PASSING, read_slots, redirected, slot_of
from .valkey_wire import REACH, EngineError, EngineSilentError, RefusedError, Reply, Word, advice_on

MOST_REDIRECTS = 8
"""What may be asked again at once, before it is waited for."""
AT_ONCE = 64
"""Commands that are sent before their answers are read: few enough that neither side fills its buffers."""
LAST_TRY_S = 1.0
"""What is asked when nobody is waited for any more gets so long."""
RESTS_S = 10.0
"""How long nothing is asked after a question that nobody has answered."""
LONG_S = 1.0
"""A question that nobody has answered, and that took so long, is followed by that rest even where nobody waits."""


class _Unanswered(NamedTuple):
    """Why nobody has answered."""

    error: Exception


class PlainValkey:
    """Reads. A server that is away is waited for, `patience_s` at most; then it is an `EngineSilentError`."""

    def __init__(self, servers: ValkeyServers, library: str = "", patience_s: float = 30.0) -> None:
        self._servers = servers
        self._library = library
        self._patience_s = patience_s
        self._random = Random()  # noqa: S311 - jitter
        self._open: dict[ServerAddress, tuple[socket.socket, hiredis.Reader]] = {}
        self._slots: list[ServerAddress | None] = []
        self._alone = Lock()
        self._give_up_at = math.inf
        """When nobody is waited for any more who does not answer."""
        self._silent: tuple[str, float] | None = None
        """Why the last question was not answered, and until when nothing is asked; None where it was."""

    def close(self) -> None:
        """Close all connections."""
        with self._alone:
            for address in list(self._open):
                self._drop(address)

    def hurry(self, seconds: float) -> None:
        """Somebody wants an end: nobody is waited for longer than that. Who waits now asks once more."""
        self._give_up_at = time.monotonic() + seconds
        for link, _ in list(self._open.values()):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def do_all(self, commands: Sequence[tuple[str, tuple[Word, ...]]]) -> list[Reply]:
        """Do many commands, each for its key: all are sent before the first answer is read.

        What does not go well so, because a server is away or has handed its keys on, is done one by one.
        """
        self._check_resting()
        by_address: dict[ServerAddress, list[int]] = {}
        for place, (key, _) in enumerate(commands):
            by_address.setdefault(self._address(slot_of(key), 0), []).append(place)
        found: dict[int, Reply] = {}
        for address, places in by_address.items():
            for start in range(0, len(places), AT_ONCE):
                some = places[start : start + AT_ONCE]
                found |= self._tried(address, {place: commands[place][1] for place in some})
        return [found[at] if at in found else self.do(key, *command) for at, (key, command) in enumerate(commands)]

    def _tried(self, address: ServerAddress, commands: dict[int, tuple[Word, ...]]) -> dict[int, Reply]:
        """The answers that one server gave."""
        with self._alone:
            try:
                if address not in self._open:
                    self._connect(address)
                self._open[address][0].sendall(b"".join(hiredis.pack_command(one) for one in commands.values()))
                answers = [self._answer(address) for _ in commands]
            except (OSError, RefusedError):  # the latter when it does not let us in, which the next question tells
                self._drop(address)
                return {}
        return {
            place: answer
            for place, answer in zip(commands, answers, strict=True)
            if not isinstance(answer, RefusedError)
        }

    def do(self, key: str, *command: Word) -> Reply:
        """Do a command for a key."""
        return self._do(key, command, self._patience_s)

    def do_now(self, key: str, *command: Word) -> Reply:
        """The same for who must not wait, as an event loop: each server is asked once, without a pause."""
        return self._do(key, command, 0.0)

    def _do(self, key: str, command: tuple[Word, ...], patience_s: float) -> Reply:
        silent = self._check_resting()
        if silent is not None:
            self._rest(silent[0])  # whoever comes meanwhile is not asked
        begun = time.monotonic()
        until = begun + (patience_s if silent is None else 0.0)
        attempt = 0
        while True:
            reply = self._attempt(slot_of(key), command, attempt)
            if not isinstance(reply, _Unanswered):
                return reply
            attempt += 1
            if time.monotonic() >= min(until, self._give_up_at) and attempt >= len(self._servers.addresses):
                if patience_s or time.monotonic() - begun >= LONG_S:
                    self._rest(str(reply.error))
                raise _silence(str(reply.error)) from reply.error
            if patience_s:
                time.sleep(min(1.0, 0.02 * 2 ** min(attempt, 10)) * (0.5 + self._random.random() / 2))
            if silent is None:
                self._check_resting()  # another has waited for all its time

    def _attempt(self, slot: int, command: tuple[Word, ...], attempt: int) -> Reply | _Unanswered:
        """The answer of the server that has a slot's keys, or of the next one where that is not known."""
        asking: ServerAddress | None = None
        last: Exception
        for _ in range(1 + MOST_REDIRECTS):
            address = asking or self._address(slot, attempt)
            with self._alone:
                try:
                    if asking is not None:
                        self._ask(address, ("ASKING",))
                    reply = self._ask(address, command)
                except RefusedError as error:
                    last = error
                except OSError as error:
                    last = error
                    self._forget(address)
                else:
                    self._silent = None
                    return reply
                asking = self._handed_on(last, address)
                if asking is None and not self._mended(last, address):
                    break
        return _Unanswered(last)

    def _check_resting(self) -> tuple[str, float] | None:
        """What was silent when it was asked last; raises `EngineSilentError` where it is not yet asked again."""
        silent = self._silent
        if silent is not None and time.monotonic() < silent[1]:
            raise _silence(silent[0])
        return silent

    def _rest(self, why: str) -> None:
        self._silent = why, time.monotonic() + RESTS_S

    @staticmethod
    def _handed_on(error: Exception, address: ServerAddress) -> ServerAddress | None:
        """The server that a slot is being moved to, which has the key already; None where it is not that."""
        is_moving = isinstance(error, RefusedError) and error.kind == "ASK"
        return redirected(str(error), address)[1] if is_moving else None

    def _mended(self, error: Exception, address: ServerAddress) -> bool:
        """Whether the same may be asked again at once; EngineError where waiting does not help either."""
        try:
            return isinstance(error, RefusedError) and self._mends(error, address)
        except OSError:
            self._forget(address)
        except RefusedError as other:
            self._judge(other, address)
        return False

    def _mends(self, error: RefusedError, address: ServerAddress) -> bool:
        if error.kind == "MOVED":
            slot, where = redirected(str(error), address)
            if not self._slots:
                self._slots = read_slots(self._ask(address, ("CLUSTER", "SLOTS")), address)
            self._slots[slot] = where
            return True
        if "Function not found" in str(error) and self._library:
            self._ask(address, ("FUNCTION", "LOAD", "REPLACE", self._library))
            return True
        self._judge(error, address)
        return False

    def _judge(self, error: RefusedError, address: ServerAddress) -> None:
        """Raise EngineError for a refusal that does not pass."""
        if error.kind not in PASSING:
            self._silent = None  # it has spoken
            raise EngineError(f"Valkey at {address} refused: {error}", advice_on(str(error))) from error

    def _forget(self, address: ServerAddress) -> None:
        """A server is away: others may know who has its keys."""
        self._drop(address)
        self._slots = []

    def _address(self, slot: int, attempt: int) -> ServerAddress:
        slots = self._slots  # another thread may find out meanwhile that a server is away
        if slots and (address := slots[slot]) is not None:
            return address
        known = self._servers.addresses
        return known[attempt % len(known)]

    def _ask(self, address: ServerAddress, command: tuple[Word, ...]) -> Reply:
        if address not in self._open:
            self._connect(address)
        self._open[address][0].sendall(hiredis.pack_command(command))
        reply = self._answer(address)
        if isinstance(reply, RefusedError):
            raise reply
        return reply

    def _answer(self, address: ServerAddress) -> Reply:
        """The next answer of a server, be it that it refuses."""
        link, reader = self._open[address]
        while (reply := reader.gets()) is False:
            data = link.recv(65536)
            if not data:
                raise ConnectionResetError(f"{address} closed the connection")
            reader.feed(data)
        return reply

    def _connect(self, address: ServerAddress) -> None:
        link = socket.create_connection(address, self._at_most(self._servers.connect_timeout_s))
        if self._servers.tls is not None:
            link = self._servers.tls.wrap_socket(link, server_hostname=address.host)
        link.settimeout(self._at_most(self._servers.timeout_s))
        self._open[address] = link, hiredis.Reader(replyError=RefusedError)
        if self._servers.entry:
            self._ask(address, self._servers.entry)

    def _at_most(self, usual_s: float) -> float:
        return min(usual_s, max(LAST_TRY_S, self._give_up_at - time.monotonic()))

    def _drop(self, address: ServerAddress) -> None:
        link = self._open.pop(address, None)
        if link is not None:
            with contextlib.suppress(OSError):
                link[0].close()


def _silence(why: str) -> EngineSilentError:
    return EngineSilentError(f"Valkey does not answer: {why}", advice_on(why) or REACH)
