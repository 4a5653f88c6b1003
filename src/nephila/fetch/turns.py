"""Asking for a turn at an address right before a request leaves, and giving it back when the exchange has ended (P2).

The ledger decides; this binds it to the fetcher's clock and to what a fetcher has at hand. A turn belongs to an
*address* that was judged: a request that a proxy forwards by name has none, and is not counted.
"""

from __future__ import annotations

from nephila.interfaces.addresses import AddressBusy, AddressLedger, AddressPermit
from nephila.interfaces.clock import Clock

NOTICE_MS = 250
"""An exchange that we broke off ends, for the server, when it notices: a round trip or so."""


class AddressTurns:
    """Turns for one fetcher; without a ledger everybody's turn is now."""

    def __init__(self, ledger: AddressLedger | None, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    def ask(self, address: str, host: str) -> AddressPermit | AddressBusy | None:
        """A permit for one request, when to come back, or None where no limit holds."""
        if self._ledger is None or not address:
            return None
        return self._ledger.ask(address, host, self._clock.steady_ms())

    def end(self, permit: AddressPermit | None, *, broken_off: bool = False, ended_ms: int | None = None) -> None:
        """The exchange has ended, now or a moment ago, or never began."""
        if self._ledger is not None and permit is not None:
            now_ms = self._clock.steady_ms() if ended_ms is None else ended_ms
            self._ledger.give_back(permit, now_ms, notice_ms=NOTICE_MS if broken_off else 0)
