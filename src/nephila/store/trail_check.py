"""Checking the chains of a crawl directory: whether archive and events are still what was sealed (K1).

Every chain is read line by line: numbers, links, hashes. The seals are then sorted by file and place, and each file is
hashed once from its first byte on. What is found is told as sentences that name the file, the bytes and the time at
which they were sealed. What is *not sealed yet* (a run that goes on, a crash that no later run has tidied up) is no
finding, but it is told.

What a chain cannot show: that files, chains and all were written anew from the beginning by somebody who may write in
the directory. Against that only a head helps that was noted elsewhere (`expect`).

Memory holds the names of files, and a bounded part of the seals.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from nephila.engines.disk import Disk, LocalDisk

from .line_sort import LineSort
from .rotation import WARC_SUFFIXES
from .trail import ARCHIVES, CHAINS, EVENTS, FIRST, SUFFIX, digest_of, raw_lines
from .trail_line import NO_HASH, Receipt, TrailLine, read_line

_OURS = re.compile(r"w[0-9]+")
"""Chains of the processes of one directory; others go by the ids of workers."""


@dataclass(frozen=True, slots=True)
class Breach:
    """Something is not as it was sealed."""

    file: str
    what: str
    """One sentence."""


@dataclass(slots=True)
class TrailVerdict:
    """What the chains say of the files."""

    sealed: bool = False
    """Whether there are chains at all."""
    heads: dict[str, str] = field(default_factory=dict)
    """The hash of the last line of each chain; that of `w0` stands for the whole trail. Of a fleet by worker."""
    head_at: str = ""
    """When the last line of `w0` was written."""
    lines: int = 0
    files: int = 0
    sealed_bytes: int = 0
    unsealed_bytes: int = 0
    under_way: int = 0
    """Files that were sealed and have not arrived in the store yet, as far as the chain tells."""
    older_files: int = 0
    """Files that were there before the chain was begun."""
    ended: bool = False
    """Whether the last run ended well; of a fleet, that of every worker."""
    receipts: list[tuple[str, Receipt]] = field(default_factory=list)
    """Files that were rewritten on purpose, with the time."""
    breaches: list[Breach] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Hashes that were expected and are not there."""

    @property
    def head(self) -> str:
        """What an operator may note or publish."""
        return self.heads.get(FIRST, "")


class TrailCheck:
    """One check of one directory."""

    def __init__(
        self,
        root: Path,
        disk: Disk,
        event_disk: Disk | None = None,
        *,
        is_afar: bool = False,
        receipts: Mapping[str, Sequence[Receipt]] = MappingProxyType({}),
    ) -> None:
        """`is_afar`: it is a worker's, and read from the store.

        What has not arrived there may lie on the worker's own disk; and archives there are of other workers, too, so
        that those which no seal names are not looked at. `receipts`, by file, are in chains of others: of takedowns.
        """
        self._is_afar = is_afar
        self._arrived: set[str] = set()
        self.noted: dict[str, dict[int, str]] = {}
        """Lines of chains that are kept elsewhere, by chain and number: another worker's."""
        self._root = root
        self._disk = disk
        self._event_disk = event_disk or disk
        self._verdict = TrailVerdict()
        self._before: dict[str, int] = {}
        self._closed: set[str] = set()
        self._receipts = {file: list(of) for file, of in receipts.items()}
        self._noted: dict[tuple[str, int], str] = {}
        self.seen: set[str] = set()
        """Files that a seal names."""
        self._only: Collection[str] = ()

    def run(self, expect: tuple[str, ...] = (), only: Collection[str] = ()) -> TrailVerdict:
        """Check everything, or of the files `only` some; `expect` are hashes of lines that must be there."""
        self._only = only
        verdict = self._verdict
        chains = [name for name in self._disk.names(self._root / CHAINS) if name.endswith(SUFFIX)]
        verdict.sealed = bool(chains)
        wanted = {text.lower() for text in expect}
        with (
            tempfile.TemporaryDirectory(prefix="nephila-audit-") as folder,
            LineSort(LocalDisk(), Path(folder) / "seals") as seals,
        ):
            for name in chains:
                self._read_chain(name.removesuffix(SUFFIX), seals, wanted)
            self._check_noted_heads(chains)
            if verdict.sealed and FIRST + SUFFIX not in chains:
                self._blame(f"{CHAINS}/{FIRST}{SUFFIX}", "the first chain is missing")
            if verdict.sealed:
                self._check_files(seals)
        verdict.missing = sorted(wanted)
        return verdict

    # -- chains

    def _read_chain(self, chain: str, seals: LineSort, wanted: set[str]) -> None:
        verdict, name = self._verdict, f"{CHAINS}/{chain}{SUFFIX}"
        number, prev, ended, at = 0, NO_HASH, False, ""
        for offset, data in raw_lines(self._disk, self._root / name):
            line = read_line(data)
            if line is None:
                if not data.endswith(b"\n"):
                    verdict.notes.append(f"{name} ends with {len(data)} bytes of a line that was never finished.")
                else:
                    self._blame(name, f"the line at byte {offset}, the {_nth(number + 1)}, was changed")
                    number, prev = number + 1, ""
                continue
            wanted.discard(line.hash)
            if line.n != number or (prev and line.prev != prev):
                self._blame(name, _broken_link(line, number))
            if line.n == 0 and line.chain != chain:
                self._blame(name, f"it is the chain {line.chain!r} under another name")
            self._take(line, chain, seals)
            number, prev, ended, at = line.n + 1, line.hash, line.end, line.at
            verdict.lines += 1
            verdict.heads[chain] = line.hash
        if chain == FIRST:
            verdict.ended, verdict.head_at = ended, at
        if not number:
            verdict.notes.append(f"{name} has no lines.")

    def _take(self, line: TrailLine, chain: str, seals: LineSort) -> None:
        self._before.update(line.before)
        self._arrived.update(line.arrived)
        for name, (number, digest) in line.heads.items():
            if _OURS.fullmatch(name):
                self._noted[name, number] = digest
            else:
                self.noted.setdefault(name, {})[number] = digest
        if line.receipt is not None:
            self._verdict.receipts.append((line.at, line.receipt))
            if not self._is_afar:  # else they are among those that were given
                self._receipts.setdefault(line.receipt.file, []).append(line.receipt)
        for file, start, end, digest, closed in line.seals:
            if closed:
                self._closed.add(file)
            place = f"{chain} line {line.n}"
            seals.add(f"{file}\t{start:015d}\t{end:015d}\t{digest}\t{line.at}\t{place}\n".encode())

    def _check_noted_heads(self, chains: list[str]) -> None:
        """Chains of other processes must still hold the lines that the first one has noted."""
        names = {name for name, _ in self._noted}
        for name in sorted(names):
            file = f"{CHAINS}/{name}{SUFFIX}"
            if name + SUFFIX not in chains:
                self._blame(file, "the chain is missing, though another one has noted its head")
                continue
            wanted = {number: digest for (of, number), digest in self._noted.items() if of == name}
            for number in self.lines_missing(name, wanted):
                self._blame(file, f"line {number} is not the one that the chain {FIRST} has noted")

    def lines_missing(self, chain: str, wanted: Mapping[int, str]) -> list[int]:
        """Numbers of lines that a chain does not have, or not with these hashes."""
        left = dict(wanted)
        for _, data in raw_lines(self._disk, self._root / CHAINS / (chain + SUFFIX)):
            line = read_line(data)
            if line is not None and left.get(line.n) == line.hash:
                del left[line.n]
        return sorted(left)

    # -- files

    def _check_files(self, seals: LineSort) -> None:
        for file, stretches in _by_file(seals):
            if not _is_ours(file):
                self._blame(file, "a chain seals what is no file of a crawl")
            elif file in self._only or not self._only:
                self.seen.add(file)
                self._verdict.files += 1
                self._check_file(file, stretches)
            for _ in stretches:  # whatever was not looked at
                pass
        if not self._only:
            self._check_others()

    def _check_others(self) -> None:
        """Files that no seal names."""
        archives = () if self._is_afar else ((ARCHIVES, WARC_SUFFIXES, self._disk),)
        for folder, suffix, disk in (*archives, (EVENTS, SUFFIX, self._event_disk)):
            for name in disk.names(self._root / folder):
                file = f"{folder}/{name}"
                if name.endswith(suffix) and file not in self.seen:
                    self._check_unsealed(file, disk)
        for file in () if self._is_afar else filter(_is_ours, self._receipts.keys() - self.seen):
            self._check_receipt(file, self._disk, iter(()))
        for file in sorted(self._before.keys() - self.seen):
            if not self._exists(file) and (not self._is_afar or file in self._arrived):
                self._blame(file, "it is missing, and was there when the chain was begun")

    def _check_file(self, file: str, stretches: Iterator[_Stretch]) -> None:
        disk = self._event_disk if file.startswith(f"{EVENTS}/") else self._disk
        if file in self._receipts:
            self._check_receipt(file, disk, stretches)
            return
        for problem in self._problems(file, disk, stretches, self._before.get(file, 0)):
            self._blame(file, problem)

    def _problems(self, file: str, disk: Disk, stretches: Iterator[_Stretch], end: int) -> Iterator[str]:
        """What is wrong with a file whose bytes are to be sealed from `end` on."""
        try:
            opened = disk.open(self._root / file)
        except FileNotFoundError:
            if self._is_afar and file not in self._arrived:
                self._verdict.under_way += 1
            else:
                yield "the file is missing"
            return
        try:
            size = opened.size()
            self._verdict.older_files += file in self._before
            for stretch in stretches:
                if stretch.start != end:
                    yield _not_tiled(stretch, end)
                if stretch.end > size:
                    yield f"it has {size:,} bytes, but bytes up to {stretch.end:,} were sealed {stretch.when}"
                    return
                if digest_of(opened, stretch.start, stretch.end) != stretch.digest:
                    yield f"bytes {stretch.start:,} to {stretch.end:,} are not those that were sealed {stretch.when}"
                self._verdict.sealed_bytes += stretch.end - stretch.start
                end = max(end, stretch.end)
            if size > end and (file in self._closed or self._verdict.ended):
                yield f"{size - end:,} bytes were added after the file was sealed to its end"
            elif size > end:
                self._verdict.unsealed_bytes += size - end
        finally:
            opened.close()

    def _check_unsealed(self, file: str, disk: Disk) -> None:
        """A file that no seal names."""
        if file in self._before:
            self._verdict.older_files += 1
            return
        opened = disk.open(self._root / file)
        try:
            size = opened.size()
        finally:
            opened.close()
        if size and self._verdict.ended:
            self._blame(file, "the file was added: no chain knows it, and the last run left nothing unsealed")
        else:  # one that is empty was left before anything was written to it
            self._verdict.unsealed_bytes += size

    def _check_receipt(self, file: str, disk: Disk, stretches: Iterator[_Stretch]) -> None:
        """A rewritten file is the one that the last receipt announced, or the one before it, not yet replaced.

        Seals of bytes that a receipt covers speak of the file as it was, or say the same as the receipt. Behind them it
        may have grown: an event file that the next run goes on with.
        """
        receipts = self._receipts[file]
        possible = {receipts[0].was}
        for receipt in receipts:
            if receipt.was not in possible:
                self._blame(file, "it was changed between two receipts")
            possible = {receipt.was, receipt.now}
        last = receipts[-1]
        if self._begins_with(file, disk, last.now):
            grown = (stretch for stretch in stretches if stretch.start >= last.now[0])
            if last.now[0]:
                for problem in self._problems(file, disk, grown, last.now[0]):
                    self._blame(file, problem)
        elif self._begins_with(file, disk, last.was) and (
            len(receipts) > 1 or not any(self._problems(file, disk, stretches, self._before.get(file, 0)))
        ):
            self._verdict.notes.append(f"{file} was to be rewritten ({last.why}), and was not.")
        else:
            self._blame(file, "it is not the file that its receipt announced")

    def _begins_with(self, file: str, disk: Disk, weight: tuple[int, str]) -> bool:
        """Whether the first so many bytes of a file have that digest; of no bytes, whether there is no such file."""
        size, digest = weight
        try:
            opened = disk.open(self._root / file)
        except FileNotFoundError:
            return not size
        try:
            return bool(size) and opened.size() >= size and digest_of(opened, 0, size) == digest
        finally:
            opened.close()

    def _exists(self, file: str) -> bool:
        folder, _, name = file.partition("/")
        disk = self._event_disk if folder == EVENTS else self._disk
        return name in disk.names(self._root / folder)

    def _blame(self, file: str, what: str) -> None:
        self._verdict.breaches.append(Breach(file, what))


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A seal on its way back from being sorted."""

    start: int
    end: int
    digest: str
    when: str


def _by_file(seals: LineSort) -> Iterator[tuple[str, Iterator[_Stretch]]]:
    """The seals of each file in the order of their places; a file's must be taken before the next file's."""
    lines = (line for block in seals.blocks() for line in block.splitlines())
    pending = next(lines, None)

    def of(file: str) -> Iterator[_Stretch]:
        nonlocal pending
        while pending is not None:
            fields = pending.decode().split("\t")
            if fields[0] != file:
                return
            pending = next(lines, None)
            yield _Stretch(int(fields[1]), int(fields[2]), fields[3], f"at {fields[4]} ({fields[5]})")

    while pending is not None:
        file = pending.decode().partition("\t")[0]
        yield file, of(file)


def _is_ours(file: str) -> bool:
    """Whether a name is that of an archive or an event file, and of nothing elsewhere."""
    folder, slash, name = file.partition("/")
    suffix: tuple[str, ...] = {ARCHIVES: WARC_SUFFIXES, EVENTS: (SUFFIX,)}.get(folder, ())
    within = folder == ARCHIVES or "/" not in name  # archives may lie in folders of theirs
    return bool(slash and suffix and name.endswith(suffix) and within and {"", ".", ".."}.isdisjoint(name.split("/")))


def _broken_link(line: TrailLine, number: int) -> str:
    if line.n > number:
        return f"lines are missing before line {line.n} of {line.at}"
    if line.n < number:
        return f"line {line.n} of {line.at} was put in or stands twice"
    return f"line {line.n} of {line.at} does not follow from the line before it"


def _not_tiled(stretch: _Stretch, end: int) -> str:
    if stretch.start > end:
        return f"nothing seals bytes {end:,} to {stretch.start:,}, though those after them were sealed {stretch.when}"
    return f"bytes {stretch.start:,} to {end:,} were sealed twice, the second time {stretch.when}"


def _nth(number: int) -> str:
    return (
        f"{number}th"
        if number % 10 not in (1, 2, 3) or number % 100 in (11, 12, 13)
        else (f"{number}{('st', 'nd', 'rd')[number % 10 - 1]}")
    )
