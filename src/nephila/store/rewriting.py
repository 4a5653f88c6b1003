"""Rewriting a finished WARC file without some of its captures (W5, K2).

The new file is a draft beside the old one, of the same length: stretches that stay are copied, captures that go are
replaced by tombstones, and records that only mention what goes are spelled anew in their place (`tombstone`). The
draft takes the place of the file under a receipt (`receipt.replace_sealed`), whole or not at all. What was replaced
before is left alone, so that doing it again after a crash ends in the same bytes.

Reads what it replaces, copies the rest in pieces: memory holds a capture at a time. Blocks of zeros, which tombstones
are, become holes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from nephila.engines.disk import Disk, DiskFile
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId

from .frame import MAGIC
from .metadata import NOTE, MetadataFields
from .readback import units
from .reader import WarcReader, WarcRecord
from .tombstone import in_as_many_bytes, is_tombstone, tombstone, without_notes, without_original
from .warc import PROFILE_NOT_MODIFIED

DRAFT_SUFFIX = ".purge"
_PIECE_BYTES = 1 << 20
_HOLE_BYTES = 4096
"""What file systems keep together. A hole is a multiple of it, and begins at one."""
_HOLE = bytes(_HOLE_BYTES)
_MENTIONS = {"duplicateOf": ("duplicateOf",), "nearDuplicateOf": ("nearDuplicateOf", "nearDuplicateBy")}
"""Notes that name another page as the original of this one, each with those that go with it."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A capture that was taken out."""

    digest: str
    """SHA-256 of its records as they lay in the file."""
    record_id: str
    """Of its answer: what revisits and the index of contents know it by."""
    content_digest: bytes
    """SHA-256 of its decoded body; empty where it had none."""


@dataclass(slots=True)
class Rewriting:
    """What is to be done to one file, and what was done."""

    segment: SegmentId
    gone: set[int] = field(default_factory=set)
    """Offsets of captures to take out."""
    mentioning: set[int] = field(default_factory=set)
    """Offsets of captures that stay, and may refer to what is taken out."""
    removed: list[Removed] = field(default_factory=list)
    cleared: list[int] = field(default_factory=list)
    """Offsets of captures that were spelled anew."""
    emptied: int = 0
    """How many of those were revisits, and have lost their payload."""

    @property
    def changes(self) -> bool:
        """Whether there is a draft at all."""
        return bool(self.removed or self.cleared)


Mentions = Callable[[str, str], bool]
"""Whether a record's id or a URL is one of those that go."""


def write_draft(
    disk: Disk, directory: Path, work: Rewriting, *, takedown: str, at: int, mentions: Mentions
) -> str | None:
    """Write the draft of a file and return its name; None where nothing is left to do. Raises `StorageError`."""
    name = f"{work.segment}{DRAFT_SUFFIX}"
    try:
        disk.remove(directory / name)
        with closing(disk.open(directory / work.segment)) as source:
            patches = _patches(source, work, takedown, at, mentions)
            if not patches:
                return None
            with closing(disk.create(directory / name)) as draft:
                _copy(source, draft, patches)
                draft.sync()
    except OSError as error:
        raise StorageError(
            f"{work.segment} could not be rewritten: {(error.strerror or str(error)).lower()}.",
            hint="Make room and do it again: nothing was changed in the file.",
        ) from error
    return name


def _patches(source: DiskFile, work: Rewriting, takedown: str, at: int, mentions: Mentions) -> list[tuple[int, bytes]]:
    """What is to stand where, in the order of the file. Each as long as what it replaces."""
    patches: list[tuple[int, bytes]] = []
    for offset in sorted(work.gone | work.mentioning):
        unit = unit_at(source, work.segment, offset)
        if unit is None or is_tombstone(unit[0]):
            continue
        if offset not in work.gone:
            anew = _spelled_anew(unit, mentions, source.read_at(offset, len(MAGIC)))
            if anew:
                work.cleared.append(offset)
                work.emptied += anew[0][0] == offset and unit[0].get("warc-profile") != PROFILE_NOT_MODIFIED
            patches += anew
            continue
        was = source.read_at(offset, unit[-1].end - offset)
        patches.append((offset, tombstone(unit, was, takedown, at)))
        notes = dict(MetadataFields.parse(unit[-1].block).notes)
        content = notes.get("contentDigest", "").removeprefix("sha256:")
        work.removed.append(Removed(sha256(was).hexdigest(), unit[0].record_id, bytes.fromhex(content)))
    return patches


def unit_at(source: DiskFile, segment: SegmentId, offset: int) -> list[WarcRecord] | None:
    """The records of the capture that begins there."""
    return next(units(WarcReader(source, segment, offset)), None)


def _spelled_anew(unit: Sequence[WarcRecord], mentions: Mentions, begins: bytes) -> list[tuple[int, bytes]]:
    """The records of a capture that name what goes, without naming it; `begins` is how it does."""
    answer, metadata = unit[0], unit[-1]
    found: list[tuple[WarcRecord, bytes]] = []
    refers = answer.get("warc-refers-to").strip("<>"), answer.get("warc-refers-to-target-uri")
    if answer.kind == "revisit" and mentions(*refers):
        found.append((answer, without_original(answer)))
    notes = dict(MetadataFields.parse(metadata.block).notes)
    named = [name for name in _MENTIONS if name in notes and mentions("", notes[name])]
    if named:
        lines = frozenset(NOTE + line for name in named for line in _MENTIONS[name])
        found.append((metadata, without_notes(metadata, lines)))
    patches: list[tuple[int, bytes]] = []
    for record, anew in found:
        member = in_as_many_bytes(anew, record.length, begins)
        if member is None:
            raise StorageError(
                f"a record at byte {record.offset} could not be spelled in the {record.length} bytes that it had"
            )
        patches.append((record.offset, member))
    return patches


def _copy(source: DiskFile, draft: DiskFile, patches: Sequence[tuple[int, bytes]]) -> None:
    position, size = 0, source.size()
    for offset, data in (*patches, (size, b"")):
        while position < offset:
            piece = source.read_at(position, min(_PIECE_BYTES, offset - position))
            if not piece:
                raise OSError(f"{offset - position} bytes are missing")
            _append(draft, position, piece)
            position += len(piece)
        _append(draft, position, data)
        position += len(data)


def _append(draft: DiskFile, position: int, data: bytes) -> None:
    """Add bytes to a file that ends at `position`, blocks of zeros as holes."""
    written, start = 0, -position % _HOLE_BYTES
    for at in range(start, len(data) - _HOLE_BYTES + 1, _HOLE_BYTES):
        if data.startswith(_HOLE, at):
            if at > written:
                draft.append(data[written:at])
            draft.append_zeros(_HOLE_BYTES)
            written = at + _HOLE_BYTES
    if written < len(data):
        draft.append(data[written:])
