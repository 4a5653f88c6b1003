"""One scope for all workers: what seeds and their redirects let in anywhere is known everywhere, in time.

The order is what counts. It is told to the others before a URL is admitted because of it (`untold`), and looked for
after a claim and before work on it begins. So whoever has claimed such a URL knows what it lets in. What was told from
here comes back, which does no harm.
"""

from __future__ import annotations

from .identity import WorkerDirectory
from .registry import Registry

ENTRIES_AT_ONCE = 1_000


class SharedScope:
    """Keeps the scope of a worker's directory and the shared one together."""

    def __init__(self, registry: Registry, directory: WorkerDirectory) -> None:
        self._registry = registry
        self._directory = directory
        self._read = 0

    async def follow(self) -> None:
        """Learn what the others have let in."""
        while entries := await self._registry.scope(self._read, ENTRIES_AT_ONCE):
            self._directory.learn_scope(b"".join(entries))
            self._read += len(entries)
