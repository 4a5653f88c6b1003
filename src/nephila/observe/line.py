r"""How an event is spelled in a file: one JSON object a line, flat, unset fields left out (O1).

    {"ts":"2026-01-31T12:00:00.123Z","t_ms_from_start":4123,"event":"fetch_ok","worker":"w1","url":...,"status":200,...}

Field names are stable: downstream reads them. The figures of `Event.counts` stand among the fields, under their own
names; where a figure has the name of a field that is set, the field stands and the figure is left out. URLs are masked
on their way in (K4), so a line read back holds the masked spelling; the fingerprint still names the exact URL.

Every event of a page passes here, so the line is a msgspec Struct, encoded straight into the sink's buffer, and the
second of the time stamp is spelled once a second.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from nephila.model.events import Event, EventKind
from nephila.urls import mask_secrets

from .masking import mask_text


class EventLine(msgspec.Struct, omit_defaults=True, gc=False):
    """The fields of a line in their order. `ts` is UTC in ISO 8601 with milliseconds."""

    ts: str
    t_ms_from_start: int
    event: str
    worker: str = ""
    url: str = ""
    fingerprint: str = ""
    host: str = ""
    depth: int | None = None
    status: int | None = None
    bytes: int | None = None
    content_type: str = ""
    reason: str = ""
    detail: str = ""
    via: str = ""
    elapsed_ms: int | None = None
    address: str = ""
    sent_ms: int | None = None


_FIELDS = EventLine.__struct_fields__
_NAMES = frozenset(_FIELDS)


class LineEncoder:
    """Spells the events of one worker. Holds no more than the second that it spelled last."""

    def __init__(self, started_at: int, worker: str) -> None:
        self._started_at = started_at
        self._worker = worker
        self._second = -1
        self._prefix = ""
        self._encoder = msgspec.json.Encoder()

    def append(self, event: Event, buffer: bytearray) -> None:
        """Add the event's line to the end of `buffer`. Never raises for anything in the event's texts."""
        line = self._line(event)
        end = len(buffer)
        try:
            self._encoder.encode_into(line, buffer, end)
        except UnicodeEncodeError:
            # A lone surrogate, from bytes that were never text: JSON has no spelling for it.
            self._encoder.encode_into(_without_surrogates(line), buffer, end)
        if event.counts:
            self._add_counts(event.counts, line, buffer)
        buffer += b"\n"

    def _line(self, event: Event) -> EventLine:
        at = event.at
        second = at // 1000
        if second != self._second:
            self._second = second
            self._prefix = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return EventLine(
            f"{self._prefix}.{at % 1000:03d}Z",
            at - self._started_at,
            event.kind,
            self._worker,
            mask_secrets(event.url) if event.url else "",
            event.fingerprint.hex(),
            event.host,
            event.depth,
            event.status,
            event.bytes,
            event.content_type,
            event.reason,
            mask_text(event.detail) if event.detail else "",
            mask_secrets(event.via) if event.via else "",
            event.elapsed_ms,
            event.address,
            event.sent_ms,
        )

    def _add_counts(self, counts: tuple[tuple[str, int], ...], line: EventLine, buffer: bytearray) -> None:
        figures = dict(counts)
        if not _NAMES.isdisjoint(figures):
            figures = {name: value for name, value in counts if name not in _NAMES or getattr(line, name) in ("", None)}
        if figures:
            buffer[-1:] = b"," + self._encoder.encode(figures)[1:]


def _without_surrogates(line: EventLine) -> EventLine:
    texts = {name: value for name, value in msgspec.structs.asdict(line).items() if isinstance(value, str)}
    return msgspec.structs.replace(
        line, **{name: value.encode(errors="replace").decode() for name, value in texts.items()}
    )


def decode_line(line: bytes) -> tuple[Event, str, int] | None:
    """Event, worker and milliseconds from the start out of a line; None when it is torn or nothing that we wrote."""
    try:
        fields: Any = msgspec.json.decode(line)
        known = msgspec.convert(fields, EventLine)
        kind = EventKind(known.event)
        at = round(datetime.fromisoformat(known.ts).timestamp() * 1000)
        fingerprint = bytes.fromhex(known.fingerprint)
    except (msgspec.MsgspecError, ValueError):
        return None
    event = Event(
        kind=kind,
        at=at,
        url=known.url,
        fingerprint=fingerprint,
        host=known.host,
        depth=known.depth,
        status=known.status,
        bytes=known.bytes,
        content_type=known.content_type,
        reason=known.reason,
        detail=known.detail,
        via=known.via,
        elapsed_ms=known.elapsed_ms,
        counts=tuple((k, v) for k, v in fields.items() if k not in _FIELDS and isinstance(v, int)),
        address=known.address,
        sent_ms=known.sent_ms,
    )
    return event, known.worker, known.t_ms_from_start
