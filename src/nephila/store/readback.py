"""From records back to captures: what recovery settles from the archive instead of fetching it again.

The wire is in the response and request records, all else in the metadata record (`metadata`). The decoded body is not
stored; it is made again by the function that is passed in, the same that the fetcher uses. A revisit of the same
payload has no bytes of its own: its payload and body come back empty, its outlinks and notes whole. So do those of a
capture whose body was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from nephila.model.exchange import Fetched
from nephila.model.record import Capture, Original, RecordRef, SegmentId, StoredCapture
from nephila.model.task import PageTask, RobotsTask

from .capture import coding_of
from .metadata import MetadataFields
from .reader import DamagedArchiveError, WarcRecord
from .tombstone import is_tombstone
from .warc import HTTP2, PROFILE_NOT_MODIFIED, parse_date

Decode = Callable[[bytes, bytes], bytes]
"""Head and payload as they were on the wire to the decoded body; tolerant of a payload that was cut."""

_ANSWERS = frozenset({"response", "revisit"})


def units(records: Iterable[WarcRecord]) -> Iterator[list[WarcRecord]]:
    """Records grouped as they were written: warcinfo alone, or an answer up to its metadata record.

    A last group that lacks its metadata record is not given out: it is torn.
    """
    unit: list[WarcRecord] = []
    for record in records:
        unit.append(record)
        if record.kind in {"warcinfo", "metadata"}:
            yield unit
            unit = []


def whole_units(records: Iterable[WarcRecord]) -> Iterator[list[WarcRecord]]:
    """The same, ending quietly where the file is torn, and without those that were taken out."""
    groups = units(records)
    while True:
        try:
            unit = next(groups, None)
        except DamagedArchiveError:
            return
        if unit is None:
            return
        if not is_tombstone(unit[0]):
            yield unit


def parse_head(head: bytes) -> tuple[int, tuple[tuple[str, str], ...]]:
    """Status and headers of an HTTP head: names in lower case, values latin-1 and stripped, folded lines joined."""
    status_line, *lines = head.decode("latin-1").replace("\r\n", "\n").rstrip("\n").split("\n")
    code = status_line.split(maxsplit=2)[1:2]
    headers: list[tuple[str, str]] = []
    for line in lines:
        if line[:1] in {" ", "\t"} and headers:
            name, value = headers[-1]
            headers[-1] = (name, f"{value} {line.strip()}".strip())
            continue
        name, colon, value = line.partition(":")
        if colon:
            headers.append((name.strip().lower(), value.strip()))
    return int(code[0]) if code and code[0].isascii() and code[0].isdigit() else 0, tuple(headers)


def capture_of(unit: list[WarcRecord], segment: SegmentId, decode: Decode) -> tuple[Capture, StoredCapture]:
    """The capture that these records hold. Raises `DamagedArchiveError` where they are not ours."""
    kinds = {record.kind: record for record in unit}
    answer = unit[0]
    if answer.kind not in _ANSWERS or not {"request", "metadata"} <= kinds.keys():
        raise DamagedArchiveError(segment, answer.offset, "records of a capture are missing")
    try:
        fields = MetadataFields.parse(kinds["metadata"].block)
        fetched = _fetched(answer, kinds["request"].block, fields, decode)
        task = fields.task(fetched.url)
        resource = kinds["resource"].block if "resource" in kinds else None
        coding = fields.text("coding") or coding_of(fetched)
        capture = Capture(
            task=task,
            token=fields.token,
            attempt=fields.number("attempt"),
            fetched=fetched,
            via=fields.text("via"),
            revisit_of=_original(answer, coding) if answer.kind == "revisit" else None,
            not_modified=answer.get("warc-profile") == PROFILE_NOT_MODIFIED,
            outlinks=fields.outlinks,
            notes=fields.notes,
            body_left_out=bool(fields.text("body-left-out")),
            rules=resource if isinstance(task, RobotsTask) else None,
            rendered=resource if isinstance(task, PageTask) else None,
        )
    except (KeyError, ValueError) as error:
        raise DamagedArchiveError(segment, answer.offset, f"the metadata record is not ours ({error})") from error
    ref = RecordRef(segment, answer.offset, answer.length, unit[-1].end)
    digest = answer.get("warc-payload-digest")
    return capture, StoredCapture(ref, answer.record_id, digest, coding, fetched.sent_at, answer.kind)


def _fetched(answer: WarcRecord, request: bytes, fields: MetadataFields, decode: Decode) -> Fetched:
    head_bytes = fields.number("head-bytes")
    head, payload = answer.block[:head_bytes], answer.block[head_bytes:]
    status, headers = parse_head(head)
    unwanted = bool(fields.text("unwanted"))
    has_body = bool(payload) and not unwanted
    return Fetched(
        url=answer.target,
        request=request,
        head=head,
        payload=payload,
        status=status,
        headers=headers,
        body=decode(head, payload) if has_body else b"",
        address=answer.get("warc-ip-address"),
        sent_at=fields.number("sent-at"),
        ended_at=fields.number("ended-at"),
        elapsed_ms=fields.number("fetchTimeMs"),
        truncated=fields.truncated,
        unwanted=unwanted,
        bad_certificate=fields.text("bad-certificate"),
        sent_ms=int(fields.text("sent-steady-ms") or 0),
        protocol=HTTP2 if answer.get("warc-protocol") == HTTP2 else "",
    )


def _original(answer: WarcRecord, coding: str) -> Original:
    """What a revisit refers to; nothing is known of it where that was taken out of the archive (`tombstone`)."""
    date = answer.get("warc-refers-to-date")
    return Original(
        url=answer.get("warc-refers-to-target-uri"),
        record_id=answer.get("warc-refers-to").strip("<>"),
        at=parse_date(date) if date else 0,
        payload_digest=answer.get("warc-payload-digest"),
        coding=coding,
    )
