"""One crawl in several processes: a supervisor, and workers that share nothing but the crawl directory.

The supervisor is the process that was started. It holds the directory, recovers it, reads the seeds, decides when the
crawl is over, and looks after the workers; it fetches nothing. A worker claims from the frontier that all of them have
open, and does with a lease what a crawl in one process does: the same pipeline, the same books, WARC files and event
files of its own, rows of its own in the catalogue. No page crosses a pipe: over the channel between a worker and its
supervisor go figures, a few times a second.

What must stay true, beside what holds for one process:

- A worker holds the directory's lock as long as it lives, and dies with its supervisor. So whoever gets the lock knows
  that nobody sends any more.
- The leases of a worker are reaped only when it is surely dead. One that lets a lease expire is killed first.
- Nothing that a limit, or the end of a crawl, depends on is counted in a worker's memory alone.
"""

from .opening import supervised
from .share import process_count

__all__ = ["process_count", "supervised"]
