"""What a crawl stands on, and which of its processes the parts are built for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nephila.frontier.embedded.sharing import Sharing
from nephila.interfaces.addresses import AddressLedger
from nephila.interfaces.clock import Clock
from nephila.interfaces.network import Dialer, Resolver
from nephila.interfaces.objects import ObjectStore
from nephila.interfaces.renderer import Renderer
from nephila.model.exchange import FailureKind
from nephila.model.task import Candidate
from nephila.store import Disk

from .engines import Engines


@dataclass(frozen=True, slots=True)
class Ground:
    """What the crawl stands on: real, or simulated under virtual time."""

    clock: Clock
    resolver: Resolver | None = None
    dialer: Dialer | None = None
    disk: Disk | None = None
    objects: ObjectStore | None = None
    """The store that `archive.url` names; S3 where it is not given."""
    threaded: bool = True
    """Whether commits and syncs may run in threads, and plugins in processes; not under virtual time."""
    renderer: Renderer | None = None
    """Shows pages in place of real browsers, which a simulated network has none of."""
    plugins: Sequence[object] = ()
    """Those that were passed in, beside those that the settings switch on (E1)."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Which process of a crawl the parts are for. Without `sharing` it is the only one, or the one that supervises."""

    sharing: Sharing | None = None
    supervises: bool = False
    addresses: AddressLedger | None = None
    """The ledger that the processes share; that of a fleet's worker."""
    twins: Callable[[str, FailureKind], Sequence[Candidate]] | None = None
    """Stands in for the sower's, who is in another process."""
    keep_twin: Callable[[str, str], None] | None = None
    """Told of bare seeds, where another process may find that they do not answer."""
    engines: Engines | None = None
    """Where the crawl keeps its state; None for its directory."""

    @property
    def number(self) -> int:
        """0 for the only process and for the supervisor, from 1 on for workers."""
        return 0 if self.sharing is None else self.sharing.number


ALONE = Seat()
