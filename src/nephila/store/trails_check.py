"""Checking the chains of a fleet: each worker's own, and what they have noted of each other (K1).

Every worker seals what it writes, archives and events, and keeps the chain in the store beside them. A chain is checked
as that of a crawl directory is. On top of that: archives that no worker's chain knows, and lines that one worker has
noted of another's chain and that are not there any more, for whoever takes a worker's whole trail away leaves no chain
that would tell.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from .disk import Disk
from .rotation import WARC_SUFFIX
from .trail import ARCHIVES, CHAINS, FIRST, SUFFIX
from .trail_check import Breach, TrailCheck, TrailVerdict


@dataclass(frozen=True, slots=True)
class WorkerTrail:
    """What lies in the store of one worker, as a directory: its chain, its events, and everybody's archives."""

    owner: str
    root: Path
    disk: Disk


@dataclass(frozen=True, slots=True)
class Seen:
    """The verdict on all of them together, and whose files are still under way."""

    verdict: TrailVerdict
    waiting: frozenset[str]


def check_trails(trails: Sequence[WorkerTrail], archives: Collection[str], expect: tuple[str, ...] = ()) -> Seen:
    """Check every worker's trail; `archives` are the names of all archive files, `expect` hashes that must be there."""
    whole = TrailVerdict(ended=bool(trails))
    known: set[str] = set()
    missing = {text.lower() for text in expect}
    noted: dict[str, dict[int, str]] = {}
    checks: dict[str, TrailCheck] = {}
    waiting: set[str] = set()
    for trail in trails:
        check = checks[trail.owner] = TrailCheck(trail.root, trail.disk, is_afar=True)
        found = check.run(tuple(missing))
        missing = set(found.missing)
        known |= check.seen
        for owner, lines in check.noted.items():
            noted.setdefault(owner, {}).update(lines)
        if found.under_way:
            waiting.add(trail.owner)
        _add(whole, trail.owner, found)
    for owner, lines in sorted(noted.items()):
        chain = f"{owner}/{CHAINS}/{FIRST}{SUFFIX}"
        if owner not in checks or FIRST not in _chains(trails, owner):
            what = "the chain is missing, though that of another worker has noted its head"
            whole.breaches.append(Breach(chain, what))
            continue
        for number in checks[owner].lines_missing(FIRST, lines):
            whole.breaches.append(Breach(chain, f"line {number} is not the one that another worker's chain has noted"))
    _check_archives(whole, trails, archives, known)
    whole.missing = sorted(missing)
    return Seen(whole, frozenset(waiting))


def _chains(trails: Sequence[WorkerTrail], owner: str) -> list[str]:
    return [
        name.removesuffix(SUFFIX)
        for trail in trails
        if trail.owner == owner
        for name in trail.disk.names(trail.root / CHAINS)
    ]


def _add(whole: TrailVerdict, owner: str, found: TrailVerdict) -> None:
    """Add what one worker's chain says."""
    whole.sealed = whole.sealed or found.sealed
    whole.heads[owner] = found.head
    whole.head_at = max(whole.head_at, found.head_at)
    whole.lines += found.lines
    whole.files += found.files
    whole.sealed_bytes += found.sealed_bytes
    whole.unsealed_bytes += found.unsealed_bytes
    whole.under_way += found.under_way
    whole.older_files += found.older_files
    whole.ended = whole.ended and found.ended
    whole.receipts += found.receipts
    whole.breaches += [replace(one, file=_named(owner, one.file)) for one in found.breaches]
    whole.notes += [f"{owner}: {note}" for note in found.notes]
    if not found.sealed:
        whole.breaches.append(Breach(f"{owner}/{CHAINS}", "there are events of this worker, and no chain"))
    elif not found.ended:
        whole.notes.append(f"The worker {owner} still works, or has not ended well.")


def _named(owner: str, file: str) -> str:
    """Archives are in one folder for all workers; chains and events in each one's own."""
    return file if file.startswith(f"{ARCHIVES}/") else f"{owner}/{file}"


def _check_archives(
    whole: TrailVerdict, trails: Sequence[WorkerTrail], archives: Collection[str], known: set[str]
) -> None:
    """Archives that no chain seals: added, where every worker has ended well; else perhaps not sealed yet."""
    for name in sorted(name for name in archives if name.endswith(WARC_SUFFIX)):
        file = f"{ARCHIVES}/{name}"
        if file in known:
            continue
        if whole.ended:
            what = "the file was added: no worker's chain knows it, and all of them have left nothing unsealed"
            whole.breaches.append(Breach(file, what))
            continue
        with closing(trails[0].disk.open(trails[0].root / file)) as opened:
            whole.unsealed_bytes += opened.size()
