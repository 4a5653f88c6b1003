"""The same client without an event loop, for readers: one question, one answer, a blocking socket to each server."""

from __future__ import annotations

import contextlib
import socket
import time
from random import Random

import hiredis

from .valkey_servers import ServerAddress, ValkeyServers
from .valkey_slots import PASSING, read_slots, redirected, slot_of
from .valkey_wire import EngineError, RefusedError, Reply, Word


class PlainValkey:
    """Reads. A server that is away is waited for, `patience_s` at most."""

    def __init__(self, servers: ValkeyServers, library: str = "", patience_s: float = 30.0) -> None:
        self._servers = servers
        self._library = library
        self._patience_s = patience_s
        self._random = Random()  # noqa: S311 - jitter
        self._open: dict[ServerAddress, tuple[socket.socket, hiredis.Reader]] = {}
        self._slots: list[ServerAddress | None] = []

    def close(self) -> None:
        """Close all connections."""
        for address in list(self._open):
            self._drop(address)

    def do(self, key: str, *command: Word) -> Reply:
        """Do a command for a key."""
        until = time.monotonic() + self._patience_s
        last: Exception | None = None
        attempt = 0
        while time.monotonic() < until:
            address = self._address(slot_of(key), attempt)
            try:
                return self._ask(address, command)
            except RefusedError as error:
                last = error
                if error.kind == "MOVED":
                    slot, where = redirected(str(error), address)
                    if not self._slots:
                        self._slots = read_slots(self._ask(address, ("CLUSTER", "SLOTS")), address)
                    self._slots[slot] = where
                    continue
                if "Function not found" in str(error) and self._library:
                    self._ask(address, ("FUNCTION", "LOAD", "REPLACE", self._library))
                    continue
                if error.kind not in PASSING:
                    raise EngineError(f"Valkey at {address} refused: {error}") from error
            except OSError as error:
                last = error
                self._drop(address)
                self._slots = []
            attempt += 1
            time.sleep(min(1.0, 0.02 * 2 ** min(attempt, 10)) * (0.5 + self._random.random() / 2))
        raise EngineError(f"Valkey does not answer: {last}", hint="see that it runs and can be reached") from last

    def _address(self, slot: int, attempt: int) -> ServerAddress:
        if self._slots and (address := self._slots[slot]) is not None:
            return address
        known = self._servers.addresses
        return known[attempt % len(known)]

    def _ask(self, address: ServerAddress, command: tuple[Word, ...]) -> Reply:
        if address not in self._open:
            self._connect(address)
        link, reader = self._open[address]
        link.sendall(hiredis.pack_command(command))
        while (reply := reader.gets()) is False:
            data = link.recv(65536)
            if not data:
                raise ConnectionResetError(f"{address} closed the connection")
            reader.feed(data)
        if isinstance(reply, RefusedError):
            raise reply
        return reply

    def _connect(self, address: ServerAddress) -> None:
        link = socket.create_connection(address, self._servers.connect_timeout_s)
        if self._servers.tls is not None:
            link = self._servers.tls.wrap_socket(link, server_hostname=address.host)
        link.settimeout(self._servers.timeout_s)
        self._open[address] = link, hiredis.Reader(replyError=RefusedError)
        if self._servers.password:
            given = (self._servers.user, self._servers.password) if self._servers.user else (self._servers.password,)
            self._ask(address, ("AUTH", *given))

    def _drop(self, address: ServerAddress) -> None:
        link = self._open.pop(address, None)
        if link is not None:
            with contextlib.suppress(OSError):
                link[0].close()
