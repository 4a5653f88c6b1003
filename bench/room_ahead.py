"""F8: what a page of a store costs the system, written and synced, by how the file was grown before.

Two files are made in long runs, as LMDB grows a store: one as it comes, the other with room ahead of what is written
(`nephila.engines.room_ahead`). Then single pages are written to both in turns, in random places, and synced in groups.
On file systems without large pieces of cache, and on Linux before 6.16, the two cost the same.

    python bench/room_ahead.py [--megabytes N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

from nephila.engines.room_ahead import RoomAhead

PAGE, RUN = 4096, 64
"""Bytes of a page, and how many LMDB writes at once at most."""
GROUPS, GROUP = 20, 1500


def grown(path: Path, size: int, *, ahead: bool) -> tuple[int, float]:
    """A file of so many bytes, and what a page of it took (us)."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    pages = [os.urandom(PAGE) for _ in range(RUN)]
    room = RoomAhead(path)
    began = time.process_time()
    for offset in range(0, size, PAGE * RUN):
        if ahead:
            room.used(offset)
        os.pwritev(descriptor, pages, offset)
    os.fdatasync(descriptor)
    took = time.process_time() - began
    room.close()
    return descriptor, took / (size // PAGE) * 1e6


def touched(descriptor: int, size: int, draw: random.Random) -> tuple[float, float]:
    """What writing a page takes, and what syncing it takes (us)."""
    page = os.urandom(PAGE)
    places = sorted(draw.randrange(size // PAGE) * PAGE for _ in range(GROUP))
    began = time.process_time()
    for place in places:
        os.pwrite(descriptor, page, place)
    written = time.process_time()
    os.fdatasync(descriptor)
    return (written - began) / GROUP * 1e6, (time.process_time() - written) / GROUP * 1e6


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=512, metavar="N", help="how large the files are (512)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where they are (a temporary folder)")
    given = parser.parse_args()
    size = given.megabytes << 20
    with tempfile.TemporaryDirectory(prefix="nephila-bench-", dir=given.folder) as folder:
        files = {kind: grown(Path(folder) / kind, size, ahead=kind == "ahead") for kind in ("plain", "ahead")}
        draw = random.Random(1)
        turns = [{kind: touched(file, size, draw) for kind, (file, _) in files.items()} for _ in range(GROUPS)]
        for file, _ in files.values():
            os.close(file)
    least = {kind: min(sum(turn[kind]) for turn in turns) for kind in files}
    print(
        json.dumps(
            {
                "bench": "room_ahead",
                "megabytes": given.megabytes,
                "grown_us_per_page": {kind: round(took, 2) for kind, (_, took) in files.items()},
                "touched_us_per_page": {kind: round(took, 2) for kind, took in least.items()},
                "ratio": round(least["ahead"] / least["plain"], 3),
            }
        )
    )


if __name__ == "__main__":
    main()
