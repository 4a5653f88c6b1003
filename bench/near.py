"""D3: what it costs to know near-duplicates: CPU of `find` and `remember` at 10 thousand, 1 and 10 million pages.

    python bench/near.py                    # 10 k and 1 M, about half a minute
    python bench/near.py --upto 10000000    # and 10 M, some three minutes and 1.6 GB of disk

Fingerprints are random, which is what those of unlike pages are; a tenth of the questions are within six bits of a page
that is there, and all of those must be found. `remember` is measured with its share of flushing and merging, over the
last tenth of each fill, and over the whole of it. The naive baseline, in the same run: a scan of all packed
fingerprints, in C where the extension is built. All times are CPU of the process.

Prints one JSON document; --json FILE writes it there, too.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from nephila.dedup import LmdbNearIndex
from nephila.dedup.near_run import pack_entry, scan_entries
from nephila.model.likeness import Likeness
from nephila.native import AVAILABLE

SIZES = (10_000, 1_000_000, 10_000_000)
FLUSHED_EVERY = 500
"""Pages between two flushes: a fast crawl, flushed each second."""
QUESTIONS = 5_000
PLANTED_EVERY = 10
NAIVE_QUESTIONS = 20
REPEATS = 3


class Fill:
    """An index that grows, and what it takes."""

    def __init__(self, path: Path, seed: int) -> None:
        self.index = LmdbNearIndex(path, "bench")
        self.entries = bytearray()
        self.cpu_s = 0.0
        self.longest_flush_s = 0.0
        self._drawn = random.Random(seed)
        self._sketches = [self._drawn.randbytes(64) for _ in range(997)]

    @property
    def size(self) -> int:
        """Pages so far."""
        return len(self.entries) // 12

    def grow(self, upto: int) -> Iterator[float]:
        """Remember pages up to a size; the CPU of each block of `FLUSHED_EVERY`, its flush included."""
        while self.size < upto:
            first = self.size
            count = min(FLUSHED_EVERY, upto - first)
            pages = [self._page(first + number) for number in range(count)]
            before = process_time()
            for likeness, url in pages:
                self.index.remember(likeness, url)
            flushing = process_time()
            self.index.flush()
            ended = process_time()
            self.longest_flush_s = max(self.longest_flush_s, ended - flushing)
            self.cpu_s += ended - before
            self.entries += b"".join(pack_entry(page[0].simhash, first + at) for at, page in enumerate(pages))
            yield (ended - before) / count

    def _page(self, number: int) -> tuple[Likeness, str]:
        sketch = self._sketches[number % len(self._sketches)]
        url = f"https://www.site{number % 9973}.example/news/articles/{number}-some-words-of-a-title.html"
        return Likeness(self._drawn.getrandbits(64), sketch, 300), url

    def questions(self) -> tuple[list[Likeness], int]:
        """Unlike pages, and some that are near to one that is there; how many of those."""
        asked = [Likeness(self._drawn.getrandbits(64), self._sketches[0], 300) for _ in range(QUESTIONS)]
        planted = range(0, QUESTIONS, PLANTED_EVERY)
        for place in planted:
            number = self._drawn.randrange(self.size)
            simhash = int.from_bytes(self.entries[12 * number : 12 * number + 8], "little")
            for bit in self._drawn.sample(range(64), self._drawn.randrange(7)):
                simhash ^= 1 << bit
            asked[place] = Likeness(simhash, self._sketches[number % len(self._sketches)], 300)
        return asked, len(planted)


def measure(fill: Fill, upto: int) -> dict[str, object]:
    """Grow to a size and ask."""
    last = list(fill.grow(upto))[-max(1, upto // FLUSHED_EVERY // 10) :]
    find_us = []
    for _ in range(REPEATS):
        asked, planted = fill.questions()
        before = process_time()
        found = [fill.index.find(one) for one in asked]
        find_us.append((process_time() - before) / len(asked) * 1e6)
        if sum(one is not None for one in found) != planted:
            raise SystemExit("the index did not find what was planted")
    asked, _ = fill.questions()
    before = process_time()
    for one in asked[:NAIVE_QUESTIONS]:
        scan_entries(fill.entries, one.simhash, 6)
    naive_us = (process_time() - before) / NAIVE_QUESTIONS * 1e6
    snapshot = fill.index.snapshot()
    best = min(find_us)
    remember_us = sum(last) / len(last) * 1e6
    return {
        "pages": upto,
        "find_us": round(best, 1),
        "find_us_of_each_repeat": [round(one, 1) for one in find_us],
        "remember_us": round(remember_us, 1),
        "remember_us_mean_of_fill": round(fill.cpu_s / fill.size * 1e6, 1),
        "together_us": round(best + remember_us, 1),
        "naive_scan_us": round(naive_us, 1),
        "bytes_per_page": round(snapshot.bytes / upto, 1),
        "runs": snapshot.runs,
        "longest_flush_cpu_s": round(fill.longest_flush_s, 3),
        "own_memory_mb": round(_own_memory() / 1e6 - len(fill.entries) / 1e6, 1),
    }


def _own_memory() -> int:
    """Bytes that are this process's alone: mapped files are the system's cache and can be taken back."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    """Measure each size and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upto", type=int, default=1_000_000, metavar="PAGES", help="the largest size (default 1 M)")
    parser.add_argument("--dir", type=Path, help="where to put the index (default: a temporary directory)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="nephila-near-", dir=arguments.dir))
    try:
        fill = Fill(folder, arguments.seed)
        sizes = [size for size in SIZES if size <= arguments.upto]
        measured = [measure(fill, size) for size in sizes]
        fill.index.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    document = {
        "bench": "near",
        "engine": "C" if AVAILABLE else "Python",
        "sizes": measured,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "note": "peak_rss has the mapped files in it, as far as they were read; own_memory is the interpreter and what "
        "the index holds, without the bench's packed fingerprints",
    }
    text = json.dumps(document, indent=2)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
