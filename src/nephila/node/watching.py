"""Keeps an eye on a crawl while it runs: writes its figures down, judges them, tells whoever wants to be told (O2).

It runs beside the crawl and can break nothing in it. Every few seconds it takes the figures that are counted anyway;
what costs more (reading what was archived, the disk) it does in a thread.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter

from nephila.frontier.embedded.census import LmdbCensus
from nephila.interfaces.catalogue import CatalogueSights
from nephila.interfaces.frontier import UrlStory
from nephila.model.errors import NephilaError
from nephila.model.events import Event, EventKind
from nephila.model.settings import Settings
from nephila.model.summary import CrawlSnapshot
from nephila.urls import Fingerprint, registrable_domain

from .cataloguing import read_catalogue
from .conscience import Conscience, Sent
from .directory import CrawlDirectory
from .frontiers import embedded_of
from .logbook import Figures, Logbook, Present
from .machine import process_figures
from .machinery import Machinery
from .ringing import Ringing

LOOK_S = 5.0
BUSY = frozenset({429, 503})
BUSY_WINDOW_MS = 300_000
BUSY_REMEMBERED = 10_000
"""Answers of 429 and 503 of the last minutes: a crawl that gets more of them is told by these."""
BUSY_HOSTS = 10
SAMPLES = 5
"""Pages of one look of which it is asked how long ago they were discovered."""
STORED_BOUNDS_S = (60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
EXCHANGES_AT_ONCE = 2000
"""Rows of a file of the archive that are read at once, and looked at together: a fast crawl has ten times as many from
one look to the next."""
DELAYS_REMEMBERED = 4
"""Looks: an exchange is recorded within seconds, and was sent under the policy of that time."""


def exchanges_since(read: dict[int, int], catalogue: CatalogueSights) -> Iterator[Sent]:
    """What was archived in each file since it was `read`, which moves on, in the order in which answers had come.

    That is the order of a file; several processes may have asked one host in turn, each with a file of its own.
    """

    def of_file(segment: int, upto: int) -> Iterator[Sent]:
        while (after := read.get(segment, 0)) < upto:
            rows = catalogue.exchanges(segment, after, EXCHANGES_AT_ONCE)
            read[segment] = rows[-1][0] + 1 if rows else upto
            for _, host, at, elapsed, part in rows:
                yield Sent(host, at, at + elapsed, bool(part))

    behind = [(segment, upto) for segment, upto in catalogue.marks().items() if read.get(segment, 0) < upto]
    return merge(*(of_file(segment, upto) for segment, upto in behind), key=attrgetter("ended_at"))


class Overhearing:
    """An `EventSink` that keeps what a watcher asks about later. The latest few events will do (`GlancingSink`)."""

    glances = True

    def __init__(self) -> None:
        self._busy: deque[tuple[int, str]] = deque(maxlen=BUSY_REMEMBERED)
        self._stored: deque[tuple[str, Fingerprint]] = deque(maxlen=SAMPLES)

    def emit(self, event: Event) -> None:
        """Keep it if it is one of those."""
        if event.kind is EventKind.FETCH_OK:
            if event.status in BUSY:
                self._busy.append((event.at, event.host))
            elif event.is_page():
                self._stored.append((event.host, Fingerprint(event.fingerprint)))

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""

    def busy_hosts(self, now: int) -> dict[str, int]:
        """The hosts that answered 429 or 503 most often in the last minutes."""
        while self._busy and self._busy[0][0] < now - BUSY_WINDOW_MS:
            self._busy.popleft()
        return dict(Counter(host for _, host in self._busy).most_common(BUSY_HOSTS))

    def take_stored(self) -> list[tuple[str, Fingerprint]]:
        """Some of the pages that were stored since the last call."""
        taken = list(self._stored)
        self._stored.clear()
        return taken


def sample(
    present: Present,
    stored: Iterable[tuple[str, Fingerprint]],
    story_of: Callable[[str, Fingerprint], UrlStory | None],
) -> None:
    """Count how long some pages took from being discovered to being stored."""
    counts = present.stored_after or [0] * (len(STORED_BOUNDS_S) + 1)
    for host, fingerprint in stored:
        story = story_of(host, fingerprint)
        if story is not None and story.visits <= 1 and story.settled_at:
            took_s = max(0, story.settled_at - story.admitted_at) / 1000
            counts[bisect_left(STORED_BOUNDS_S, took_s)] += 1
            present.stored_after_s += took_s
    present.stored_after = counts


class Watch:
    """Looks, judges and tells. `snapshot` and `processes` are the crawl's; `warn` tells its listeners."""

    def __init__(
        self,
        machinery: Machinery,
        snapshot: Callable[[], CrawlSnapshot],
        warn: Callable[[str, str], None],
        overhearing: Overhearing,
        workers: int,
        processes: Callable[[], Sequence[int]],
    ) -> None:
        self._m = machinery
        self._snapshot = snapshot
        self._warn = warn
        self._overhearing = overhearing
        self._processes = processes
        self._settings: Settings = machinery.settings
        self._census = LmdbCensus(embedded_of(machinery.frontier).view)
        self._directory = CrawlDirectory(machinery.out)
        self._logbook = Logbook(self._directory.figures, machinery.clock.wall_ms())
        self._logbook.figures.present.workers = workers
        usual_ms = int(1000 * self._settings.politeness.delay_s)
        self._conscience = Conscience(self._least_delay_ms, most_ms=usual_ms)  # the least is never more
        self._delays: deque[dict[str, float]] = deque(({},), maxlen=DELAYS_REMEMBERED)
        """Delays by the policies of domains, as of the last looks."""
        self._read: dict[int, int] | None = None
        """Up to where the exchanges of each segment were looked at."""
        self._ringing = Ringing(self._settings, str(machinery.out), machinery.clock, warn)
        self._complained = False

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        try:
            while True:
                try:
                    await self.look()
                except NephilaError as error:
                    self._complain(error)
                await asyncio.sleep(LOOK_S)
        finally:
            self._record()
            try:
                self._logbook.close()
            except NephilaError as error:
                self._complain(error)

    async def look(self) -> None:
        """One look, written down."""
        figures = self._record()
        present = figures.present
        present.process = await asyncio.to_thread(process_figures, self._m.out, self._processes())
        present.longest_wait_s = self._census.longest_wait_s()
        present.busy_hosts = self._overhearing.busy_hosts(present.at)
        sample(present, self._overhearing.take_stored(), self._m.frontier.story)
        known = embedded_of(self._m.frontier).view.policies()
        self._delays.append({domain: one.delay_s for domain, one in known.items() if one.delay_s is not None})
        await asyncio.to_thread(self._look_at_exchanges)
        present.violations = self._conscience.violations
        await self._ringing.ring(figures)
        self._logbook.save()

    def figures(self) -> Figures:
        """As of this moment."""
        return self._record()

    def _record(self) -> Figures:
        self._logbook.record(self._m.clock.wall_ms(), self._snapshot(), self._m.frontier.snapshot())
        return self._logbook.figures

    def _look_at_exchanges(self) -> None:
        """Let the conscience see what was archived since the last look. In a thread."""
        with read_catalogue(self._directory, self._settings) as catalogue:
            if self._read is None:  # what was before this run is for `audit`
                self._read = catalogue.marks()
                return
            sent = exchanges_since(self._read, catalogue)
            while together := list(islice(sent, EXCHANGES_AT_ONCE)):
                self._conscience.look(together)

    def _least_delay_ms(self, host: str) -> int:
        """The shortest delay that was in force in the last looks: what is longer by a policy since may be new."""
        usual_s = self._settings.politeness.delay_s
        domain = registrable_domain(host)
        return int(1000 * min(usual_s, *(delays.get(domain, usual_s) for delays in self._delays)))

    def _complain(self, error: NephilaError) -> None:
        """A disk that is full ends the crawl by itself; charts that cannot be written are told once."""
        if not self._complained:
            self._warn("figures", str(error))
        self._complained = True
