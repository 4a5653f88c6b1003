"""The ground under the fetcher: names to addresses, addresses to connections. Real, or simulated under virtual time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from nephila.model.exchange import FailureKind


@dataclass(frozen=True, slots=True)
class Resolved:
    """Addresses of a name, in the order to try them."""

    addresses: tuple[str, ...]
    ttl_s: float
    stale: bool = False
    """The last known answer, used because no resolver answered (H4)."""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """No address: `kind` is DNS (passing) or NO_SUCH_NAME (final)."""

    kind: FailureKind
    detail: str
    ttl_s: float = 0.0
    """How long the zone itself says that there is no such name; 0 where it does not say."""


class Resolver(Protocol):
    """Names to addresses. Never raises for what a name server does; answers within its own time limit."""

    async def resolve(self, host: str) -> Resolved | Unresolved:
        """Addresses of an ASCII host name. Literals never reach it."""


class SharedNames(Protocol):
    """Addresses that workers on several machines tell each other."""

    async def find(self, name: str) -> Resolved | None:
        """What another worker has learned, for as long as it still holds. Never raises for a server away."""

    async def keep(self, name: str, answer: Resolved) -> None:
        """Tell the others; one that is stale is not told."""


class Dialer(Protocol):
    """Opens connections to addresses that were already judged. Raises OSError or ssl.SSLError as asyncio does."""

    async def open(
        self,
        factory: Callable[[], asyncio.Protocol],
        address: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        server_name: str = "",
        source: str = "",
    ) -> asyncio.Transport:
        """A connected transport whose protocol came from `factory`; TLS done when `tls` is given."""

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol, tls: ssl.SSLContext, server_name: str
    ) -> asyncio.Transport:
        """TLS over an open connection: through a proxy's tunnel."""
