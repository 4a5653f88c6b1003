"""How much one address may be asked, whatever the names of the hosts behind it (P2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nephila.model.noun import noun


@noun
class AddressPermit:
    """The right to send one request to an address; held until the exchange has ended."""

    key: str
    """The address as it is counted: IPv4 as it is, IPv6 by its network."""
    granted_at: int


@dataclass(frozen=True, slots=True)
class AddressBusy:
    """Not now: the host has a turn at this address in `wait_ms`."""

    wait_ms: int


class AddressLedger(Protocol):
    """The second, looser limit: for the many hosts that share one server. Plain decisions, nothing here waits.

    Promises: never more permits at once, nor more within the span that the rate is counted over, than the address may
    have, whatever the order of the calls. A refusal keeps a turn for the host: who comes back when it was told to is
    let through in order. Times are milliseconds of one clock that does not jump; its state may be forgotten with the
    process.
    """

    def ask(self, address: str, host: str, now_ms: int) -> AddressPermit | AddressBusy:
        """Whether `host` may send one request to `address` now."""

    def give_back(self, permit: AddressPermit, now_ms: int, *, notice_ms: int = 0) -> None:
        """The exchange has ended; `notice_ms` later for the server, where it was us who broke it off."""
