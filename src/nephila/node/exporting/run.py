"""An export from its beginning to its end: look, choose, read, write; and what it came to."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from nephila.export import LeftOut, Selection
from nephila.export.selection import last_seen
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId
from nephila.store.originals import Originals

from .forms import Sink, document_sink
from .order import ExportOrder, Form
from .packing import wacz_sink
from .reading import ArchiveReading, Documents, LeftOutError
from .source import Source

BATCH = 300
"""Rows whose histories are asked for at once."""
EXAMPLES = 3
"""Sentences on what is damaged that are kept."""


@dataclass(frozen=True, slots=True)
class Looked:
    """How far an export is."""

    captures: int
    """That were looked at."""
    of: int
    exported: int


@dataclass(slots=True)
class Exported:
    """What came of an export."""

    captures: int = 0
    """That were looked at."""
    pages: int = 0
    """That were exported."""
    left_out: Counter[str] = field(default_factory=Counter)
    damage: list[str] = field(default_factory=list)
    """A few sentences on what could not be read."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was missed that should be there."""
        return not self.left_out[LeftOut.DAMAGED]


def export(source: Source, order: ExportOrder, tell: Callable[[Looked], None] = lambda _: None) -> Exported:
    """Export what an order asks for. Raises `NephilaError`, and leaves nothing half done then."""
    with _scratch() as scratch, Originals(scratch) as originals:
        choice = Choice(source, order.selection)
        choice.find_originals(originals)
        with (
            closing(ArchiveReading(source, originals)) as reading,
            _sink(source, order, reading, originals, scratch) as sink,
        ):
            return _run(source, order, choice, reading, sink, tell)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for what must be remembered meanwhile."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="nephila-export-")
    except OSError as error:
        told = f"what is needed meanwhile cannot be kept: {(error.strerror or str(error)).lower()}"
        raise StorageError(told, "make room where TMPDIR points to, or set it") from error
    with folder as name:
        yield Path(name)


def _sink(
    source: Source, order: ExportOrder, reading: ArchiveReading, originals: Originals, scratch: Path
) -> AbstractContextManager[Sink]:
    documents = Documents(reading, source.settings, order.view, bodies=order.selection.bodies)
    if order.form is Form.WACZ and order.to is not None:
        return wacz_sink(order.to, scratch, source.name, reading, documents, originals)
    return document_sink(order, documents)


def _run(
    source: Source,
    order: ExportOrder,
    choice: Choice,
    reading: ArchiveReading,
    sink: Sink,
    tell: Callable[[Looked], None],
) -> Exported:
    result, total = Exported(), source.catalogue.capture_count()
    for row, chosen, last_seen_at in choice.rows():
        result.captures += 1
        tell(Looked(result.captures, total, result.pages))
        reason = chosen or _added(row, last_seen_at, reading, sink, result)
        if reason is not None:
            result.left_out[reason] += 1
            continue
        result.pages += 1
        if result.pages == order.limit:
            break
    return result


def _added(row: CaptureRow, last_seen_at: int, reading: ArchiveReading, sink: Sink, result: Exported) -> LeftOut | None:
    """Read a capture and hand it on; why it is left out all the same, if it is."""
    try:
        sink.add(reading.found(row, last_seen_at))
    except LeftOutError as error:
        told = str(error)
        if error.reason is LeftOut.DAMAGED and told not in result.damage and len(result.damage) < EXAMPLES:
            result.damage.append(told)
        return error.reason
    return None


class Choice:
    """Every capture that was listed when the export began, and why it is left out, if it is."""

    def __init__(self, source: Source, selection: Selection) -> None:
        self._catalogue = source.catalogue
        self._is_taken_down = source.is_taken_down
        self._selection = selection
        self._extent = source.catalogue.extent()

    def rows(self) -> Iterator[tuple[CaptureRow, LeftOut | None, int]]:
        """In the order of the archive; the last is when the page was last seen so."""
        for batch in self._batches():
            reasons = [self._reason(row) for row in batch]
            histories = self._histories([row for row, reason in zip(batch, reasons, strict=True) if reason is None])
            for row, reason in zip(batch, reasons, strict=True):
                history = histories.get(row.fingerprint, ())
                if reason is None and self._selection.newest and row.fingerprint:
                    yield row, self._selection.superseded(row, history), last_seen(row, history)
                else:
                    yield row, reason, last_seen(row, history)

    def find_originals(self, originals: Originals) -> None:
        """Find the bytes of all copies that may be chosen."""
        for batch in self._batches():
            originals.want(row for row in batch if row.kind == "revisit" and self._reason(row) is None)
        if originals.is_empty:
            return
        for batch in self._batches():
            originals.offer(row for row in batch if row.kind == "response" and not row.truncated)

    def _reason(self, row: CaptureRow) -> LeftOut | None:
        reason = self._selection.reason(row)
        return LeftOut.TAKEN_DOWN if reason is None and self._is_taken_down(row.url) else reason

    def _histories(self, rows: Sequence[CaptureRow]) -> Mapping[bytes, Sequence[CaptureRow]]:
        """What else is known of these URLs, as far as it was listed when the export began."""
        fingerprints = list(dict.fromkeys(row.fingerprint for row in rows if row.fingerprint))
        found: defaultdict[bytes, list[CaptureRow]] = defaultdict(list)
        if fingerprints:
            for row in self._catalogue.histories(fingerprints):
                if row.end <= self._extent.get(row.segment, 0):
                    found[row.fingerprint].append(row)
        return found

    def _batches(self) -> Iterator[list[CaptureRow]]:
        for segment, upto in self._extent.items():
            yield from _batched(self._listed(segment, upto))

    def _listed(self, segment: SegmentId, upto: int) -> Iterator[CaptureRow]:
        return (row for row in self._catalogue.captures(segment) if row.end <= upto)


def _batched(rows: Iterable[CaptureRow]) -> Iterator[list[CaptureRow]]:
    source = iter(rows)
    while batch := list(islice(source, BATCH)):
        yield batch
