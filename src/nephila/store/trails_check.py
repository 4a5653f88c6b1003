"""Checking the chains of a fleet: each worker's own, and what they have noted of each other (K1).

Every worker seals what it writes, archives and events, and keeps the chain in the store beside them. A chain is checked
as that of a crawl directory is. On top of that: archives that no worker's chain knows, and lines that one worker has
noted of another's chain and that are not there any more, for whoever takes a worker's whole trail away leaves no chain
that would tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from nephila.engines.disk import Disk
from nephila.model.errors import StorageError

from .rotation import WARC_SUFFIXES
from .stored_chain import TAKEDOWNS
from .trail import ARCHIVES, CHAINS, FIRST, SUFFIX, lines_of
from .trail_check import Breach, TrailCheck, TrailVerdict
from .trail_line import Receipt


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
    receipts = receipts_of(trails)
    for trail in trails:
        told = _concerning(receipts, trail.owner)
        check = checks[trail.owner] = TrailCheck(trail.root, trail.disk, is_afar=True, receipts=told)
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


def check_unchanged(trails: Sequence[WorkerTrail], files: Collection[str]) -> None:
    """Raise `StorageError` where one of the files is not what a worker has sealed.

    Files are named as receipts name them. What happened before must not be covered up by one.
    """
    receipts = receipts_of(trails)
    for trail in trails:
        told = _concerning(receipts, trail.owner)
        own = {_own_name(trail.owner, file) for file in files} - {""}
        check = TrailCheck(trail.root, trail.disk, is_afar=True, receipts=told)
        if wrong := [one for one in check.run(only=own or {""}).breaches if one.file in own]:
            raise StorageError(
                f"{wrong[0].file} is not rewritten, because {wrong[0].what}.", hint="`nephila audit` tells more."
            )


def receipts_of(trails: Sequence[WorkerTrail]) -> dict[str, list[Receipt]]:
    """All receipts by file, in their order: those of takedowns, which are in a chain of their own."""
    by_file: dict[str, list[Receipt]] = {}
    for trail in trails:
        if trail.owner == TAKEDOWNS and FIRST in _chains(trails, TAKEDOWNS):
            for line in lines_of(trail.disk, trail.root / CHAINS / (FIRST + SUFFIX)):
                if line.receipt is not None:
                    by_file.setdefault(line.receipt.file, []).append(line.receipt)
    return by_file


def _concerning(receipts: Mapping[str, Sequence[Receipt]], owner: str) -> dict[str, Sequence[Receipt]]:
    """Those of archives, and of this worker's own events, by the names that its chain has for them."""
    named = ((_own_name(owner, file), of) for file, of in receipts.items())
    return {file: of for file, of in named if file}


def _own_name(owner: str, file: str) -> str:
    """What a worker's chain calls a file; empty where it is another's."""
    if file.startswith(f"{ARCHIVES}/"):
        return file
    return file.removeprefix(f"{owner}/") if file.startswith(f"{owner}/") else ""


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
    elif not found.ended and owner == TAKEDOWNS:
        whole.notes.append("A takedown or a retention is being carried out, or was cut off.")
    elif not found.ended:
        whole.notes.append(f"The worker {owner} still works, or has not ended well.")


def _named(owner: str, file: str) -> str:
    """Archives are in one folder for all workers; chains and events in each one's own."""
    return file if file.startswith(f"{ARCHIVES}/") else f"{owner}/{file}"


def _check_archives(
    whole: TrailVerdict, trails: Sequence[WorkerTrail], archives: Collection[str], known: set[str]
) -> None:
    """Archives that no chain seals: added, where every worker has ended well; else perhaps not sealed yet."""
    for name in sorted(name for name in archives if name.endswith(WARC_SUFFIXES)):
        file = f"{ARCHIVES}/{name}"
        if file in known:
            continue
        if whole.ended:
            what = "the file was added: no worker's chain knows it, and all of them have left nothing unsealed"
            whole.breaches.append(Breach(file, what))
            continue
        with closing(trails[0].disk.open(trails[0].root / file)) as opened:
            whole.unsealed_bytes += opened.size()
