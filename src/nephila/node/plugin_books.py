"""What plugins did over all runs of a crawl: written by its processes, read by whoever looks at it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nephila.interfaces.clock import Clock

if TYPE_CHECKING:
    from nephila.plugins import Kept

COUNTED = ("calls", "failures", "overruns", "lost")
WRITTEN_EVERY_MS = 1000


class PluginBooks:
    """What plugins did, over all runs, in a file of the crawl directory for each process."""

    def __init__(self, folder: Path, writer: int, clock: Clock) -> None:
        self._file = folder / f"{writer}.json"
        self._clock = clock
        self._plugins: Sequence[Kept] = ()
        self._before: dict[str, dict[str, int]] = {}
        self._written_ms = -WRITTEN_EVERY_MS

    def keep(self, plugins: Sequence[Kept]) -> None:
        """Keep the books of these from now on."""
        self._plugins, self._before = plugins, read_books(self._file)
        for one in plugins:
            one.changed = self._changed

    def _changed(self) -> None:
        if self._clock.steady_ms() - self._written_ms >= WRITTEN_EVERY_MS:
            self.write()

    def write(self) -> None:
        """Write the counts. A full disk costs them, and nothing else: the crawl itself will say so."""
        self._written_ms = self._clock.steady_ms()
        counts = {name: dict(known) for name, known in self._before.items()}
        for one in self._plugins:
            known = Counter(counts.get(one.name, {}))
            known.update({name: getattr(one, name) for name in COUNTED})
            counts[one.name] = {**known, "off": int(one.is_off)}
        with suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            fresh = self._file.with_suffix(".new")
            fresh.write_text(json.dumps(counts), encoding="utf-8")
            fresh.replace(self._file)


def read_books(file: Path) -> dict[str, dict[str, int]]:
    """The counts of one file, by plugin; nothing where it cannot be read."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {
        str(name): {str(key): value for key, value in counts.items() if isinstance(value, int)}
        for name, counts in document.items()
        if isinstance(counts, dict)
    }


def plugin_counts(folder: Path) -> Mapping[str, Mapping[str, int]]:
    """What plugins did in all processes and runs of a crawl."""
    total: dict[str, Counter[str]] = {}
    for file in sorted(folder.glob("*.json")):
        for name, counts in read_books(file).items():
            total.setdefault(name, Counter()).update(counts)
    return {name: dict(counts) for name, counts in sorted(total.items())}
