"""The fields of a metadata record: all that is needed to make the capture's task again, and what `audit` asks for.

Records on the wire say what was asked and answered; this one says why and when: the lease and the attempt, the URL's
standing in the frontier, send and end times, every link. With it a capture whose settle was lost in a crash is settled
from the archive instead of being fetched again (DESIGN 4), and index and catalogue can be rebuilt.

`via`, `fetchTimeMs` and `outlink` are named as Heritrix names them. Fields that hold their default are left out. Notes
of the pipeline carry a prefix, so that no note can be taken for a field of ours. Written and read here, side by side:
a field that is added to one must be added to the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from nephila.model.exchange import Fetched, Truncation
from nephila.model.record import Capture
from nephila.model.task import Level, PageTask, PartTask, RobotsTask, Token, Validators
from nephila.urls import Fingerprint

from .warc import fields_block

NOTE = "note-"
_OUTLINK = "outlink: "
_NEXT_OUTLINK = f"\r\n{_OUTLINK}"


def metadata_block(capture: Capture, coding: str) -> bytes:
    """The warc-fields of one capture. `coding` is kept for revisits, whose original had the same."""
    fields = _lease_fields(capture) + _task_fields(capture.task) + _fetched_fields(capture.fetched)
    if capture.revisit_of is not None:
        fields.append(("coding", coding))
    if capture.body_left_out:
        fields.append(("body-left-out", "1"))
    fields += [(NOTE + name, value) for name, value in capture.notes]
    block = fields_block(fields)
    return block + _outlink_lines(capture.outlinks) if capture.outlinks else block


def _outlink_lines(outlinks: tuple[str, ...]) -> bytes:
    """One join for all of them: there are eighty a page, and not one has a line end unless something is wrong."""
    lines = f"{_OUTLINK}{_NEXT_OUTLINK.join(outlinks)}\r\n".encode("utf-8", "replace")
    if lines.count(b"\n") == lines.count(b"\r") == len(outlinks):
        return lines
    return fields_block(("outlink", outlink) for outlink in outlinks)


def _lease_fields(capture: Capture) -> list[tuple[str, str]]:
    fields = [("via", capture.via)] if capture.via else []
    fields += (("token", str(int(capture.token))), ("attempt", str(capture.attempt)))
    task = capture.task
    if task.url != capture.fetched.url:
        fields.append(("task-url", task.url))
    if isinstance(task, PageTask) and task.via != capture.via:
        fields.append(("task-via", task.via))
    return fields


def _task_fields(task: PageTask | RobotsTask | PartTask) -> list[tuple[str, str]]:
    fields: list[tuple[str, str]] = []
    if isinstance(task, PartTask):
        return [("visited-page", task.page)]
    match task:
        case RobotsTask():
            fields.append(("robots-origin", task.origin))
        case PageTask():
            fields += (
                ("fingerprint", task.fingerprint.hex()),
                ("depth", str(task.depth)),
                ("level", str(int(task.level))),
                ("retries", str(task.retries)),
                ("cycle", str(task.cycle)),
            )
            if task.validators.etag:
                fields.append(("if-none-match", task.validators.etag))
            if task.validators.last_modified:
                fields.append(("if-modified-since", task.validators.last_modified))
            if task.digest:
                fields.append(("last-digest", task.digest.hex()))
            fields += [("trail", spelling) for spelling in task.trail]
    if task.hops:
        fields.append(("hops", str(task.hops)))
    return fields


def _fetched_fields(fetched: Fetched) -> list[tuple[str, str]]:
    fields = [
        ("sent-at", str(fetched.sent_at)),
        ("ended-at", str(fetched.ended_at)),
        ("fetchTimeMs", str(fetched.elapsed_ms)),
        ("head-bytes", str(len(fetched.head))),
    ]
    if fetched.sent_ms:
        fields.append(("sent-steady-ms", str(fetched.sent_ms)))
    if fetched.truncated is not None:
        fields.append(("truncated", fetched.truncated.value))
    if fetched.unwanted:
        fields.append(("unwanted", "1"))
    if fetched.bad_certificate:
        fields.append(("bad-certificate", fetched.bad_certificate))
    return fields


@dataclass(frozen=True, slots=True)
class MetadataFields:
    """A metadata block read back. Raises KeyError or ValueError where a field that we always write is not there."""

    single: dict[str, str]
    trail: tuple[str, ...]
    outlinks: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, block: bytes) -> MetadataFields:
        """From the block of a metadata record of ours."""
        single: dict[str, str] = {}
        trail: list[str] = []
        outlinks: list[str] = []
        notes: list[tuple[str, str]] = []
        for line in block.decode("utf-8", "replace").split("\r\n"):
            name, colon, value = line.partition(": ")
            if name == "outlink":
                outlinks.append(value)
            elif name == "trail":
                trail.append(value)
            elif name.startswith(NOTE):
                notes.append((name.removeprefix(NOTE), value))
            elif colon:
                single[name] = value
        return cls(single, tuple(trail), tuple(outlinks), tuple(notes))

    def text(self, name: str) -> str:
        """A field that may be absent."""
        return self.single.get(name, "")

    def number(self, name: str) -> int:
        """A field that is always there."""
        return int(self.single[name])

    @property
    def token(self) -> Token:
        """The lease."""
        return Token(self.number("token"))

    @property
    def truncated(self) -> Truncation | None:
        """Why the answer is not whole."""
        reason = self.text("truncated")
        return Truncation(reason) if reason else None

    def task(self, url: str) -> PageTask | RobotsTask | PartTask:
        """The task as it was given out; `url` is what was asked for."""
        spelling = self.text("task-url") or url
        if page := self.text("visited-page"):
            return PartTask(spelling, page)
        hops = int(self.text("hops") or 0)
        if origin := self.text("robots-origin"):
            return RobotsTask(origin, spelling, hops)
        return PageTask(
            fingerprint=Fingerprint(bytes.fromhex(self.single["fingerprint"])),
            url=spelling,
            depth=self.number("depth"),
            level=Level(self.number("level")),
            hops=hops,
            retries=self.number("retries"),
            cycle=self.number("cycle"),
            validators=Validators(self.text("if-none-match"), self.text("if-modified-since")),
            digest=bytes.fromhex(self.text("last-digest")),
            via=self.single.get("task-via", self.text("via")),
            trail=self.trail,
        )
