"""Where Valkey (or Redis) is, and how it is entered: addresses, credentials, TLS.

A server is named ``valkey://HOST:PORT``, ``valkeys://HOST:PORT`` for TLS (``redis://`` and ``rediss://`` mean the
same), or plainly ``HOST:PORT``. User and password come from the settings and the environment, never from the address,
so that no address in a log or a message can hold one; what holds them here shows nothing of them.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nephila.model.errors import UsageError

DEFAULT_PORT = 6379
PASSWORD_VARIABLE = "REDISCLI_AUTH"  # noqa: S105 - the name of a variable
ACCESS = (
    "set user and password: fleet.username (NEPHILA_FLEET_USERNAME), fleet.password_file (NEPHILA_FLEET_PASSWORD_FILE)"
    f" or {PASSWORD_VARIABLE}"
)

_PLAIN = ("valkey://", "redis://")
_SECURED = ("valkeys://", "rediss://")


class ServerAddress(NamedTuple):
    """One server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ValkeyServers:
    """How to reach an engine: any of its servers will do, the others are asked for."""

    addresses: tuple[ServerAddress, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    timeout_s: float = 10.0
    """Without an answer for so long, a connection is taken for dead."""
    connect_timeout_s: float = 5.0

    @property
    def entry(self) -> tuple[str, ...]:
        """What says who we are; nothing for nobody in particular. A user without a password is still that user."""
        if self.user:
            return "AUTH", self.user, self.password
        return ("AUTH", self.password) if self.password else ()


def servers_of(
    names: Sequence[str], environment: Mapping[str, str] | None = None, authorities: str = "", timeout_s: float = 10.0
) -> ValkeyServers:
    """Servers by their names, with the password that the environment has. Raises `UsageError`."""
    known = os.environ if environment is None else environment
    found, secured = [], set[bool]()
    for name in names:
        address, tls = _read(name.strip())
        found.append(address)
        secured.add(tls)
    if not found:
        raise UsageError("no Valkey server was named", hint="give valkey://HOST:PORT")
    if len(secured) > 1:
        raise UsageError("some of the Valkey servers are named with TLS and some without", hint="name all alike")
    context = ssl.create_default_context(cafile=authorities or None) if secured.pop() else None
    return ValkeyServers(tuple(found), "", known.get(PASSWORD_VARIABLE, ""), context, timeout_s)


def _read(name: str) -> tuple[ServerAddress, bool]:
    rest, tls = name, False
    for prefix in (*_PLAIN, *_SECURED):
        if name.lower().startswith(prefix):
            rest, tls = name[len(prefix) :], prefix in _SECURED
    rest = rest.rstrip("/")
    if "@" in rest:
        raise UsageError("a Valkey address must not hold user or password", hint=ACCESS)
    host, colon, port = rest.rpartition(":") if not rest.endswith("]") else (rest, "", "")
    if not colon:
        host, port = rest, str(DEFAULT_PORT)
    if not host or not port.isdigit() or not 0 < int(port) < 65536 or "/" in host:
        raise UsageError(f"{name!r} is no address of a Valkey server", hint="give valkey://HOST:PORT")
    return ServerAddress(host.strip("[]"), int(port)), tls
