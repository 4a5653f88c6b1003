"""The fields of a metadata record: all that is needed to make the capture's task again, and what `audit` asks for.

Records on the wire say what was asked and answered; this one says why and when: the lease and the attempt, the URL's
standing in the frontier, send and end times, every link. With it a capture whose settle was lost in a crash is settled
from the archive instead of being fetched again (DESIGN 4), and index and catalogue can be rebuilt.

`via`, `fetchTimeMs` and `outlink` are named as Heritrix names them. Fields that hold their default are left out. Notes
of the pipeline carry a prefix, so that no note can be taken for a field of ours. Written and read here, side by side:
a field that is added to one must be added to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nephila.model.exchange import Fetched, Truncation
from nephila.model.record import Capture
from nephila.model.task import Level, PageTask, PartTask, RobotsTask, Token, Validators
from nephila.native import AVAILABLE, native
from nephila.urls import Fingerprint

from .warc import fields_block, one_line

NOTE = "note-"
_OUTLINK = "outlink: "
_NEXT_OUTLINK = f"\r\n{_OUTLINK}"


def metadata_block(capture: Capture, coding: str) -> bytes:
    """The warc-fields of one capture. `coding` is kept for revisits, whose original had the same."""
    lines: list[str] = []
    _add_lease(capture, lines)
    _add_task(capture.task, lines)
    _add_fetched(capture.fetched, lines)
    if capture.revisit_of is not None:
        lines.append(f"coding: {coding}")
    if capture.body_left_out:
        lines.append("body-left-out: 1")
    for name, value in capture.notes:
        lines.append(f"{NOTE}{name}: {value}")
    block = _whole(lines).encode("utf-8", "replace")
    return block + _outlink_lines(capture.outlinks) if capture.outlinks else block


def _whole(lines: list[str]) -> str:
    """Values are somebody else's and must not end their lines. None does that, unless something is wrong."""
    text = "\r\n".join(lines) + "\r\n"
    if text.count("\n") == text.count("\r") == len(lines):
        return text
    return "".join([f"{one_line(line)}\r\n" for line in lines])


def _outlink_lines(outlinks: Sequence[str]) -> bytes:
    """One join for all of them: there are eighty a page, and not one has a line end unless something is wrong."""
    if AVAILABLE and (packed := native.outlink_lines(outlinks)) is not None:
        return packed
    lines = f"{_OUTLINK}{_NEXT_OUTLINK.join(outlinks)}\r\n".encode("utf-8", "replace")
    if lines.count(b"\n") == lines.count(b"\r") == len(outlinks):
        return lines
    return fields_block(("outlink", outlink) for outlink in outlinks)


def _add_lease(capture: Capture, lines: list[str]) -> None:
    via, task = capture.via, capture.task
    if via:
        lines.append(f"via: {via}")
    lines += (f"token: {int(capture.token)}", f"attempt: {capture.attempt}")
    if task.url != capture.fetched.url:
        lines.append(f"task-url: {task.url}")
    if isinstance(task, PageTask) and task.via != via:
        lines.append(f"task-via: {task.via}")


def _add_task(task: PageTask | RobotsTask | PartTask, lines: list[str]) -> None:
    match task:
        case PartTask():
            lines.append(f"visited-page: {task.page}")
            return
        case RobotsTask():
            lines.append(f"robots-origin: {task.origin}")
        case PageTask():
            lines += (
                f"fingerprint: {task.fingerprint.hex()}",
                f"depth: {task.depth}",
                f"level: {int(task.level)}",
                f"retries: {task.retries}",
                f"cycle: {task.cycle}",
            )
            if task.validators:
                _add_validators(task.validators, lines)
            if task.digest:
                lines.append(f"last-digest: {task.digest.hex()}")
            for spelling in task.trail:
                lines.append(f"trail: {spelling}")
    if task.hops:
        lines.append(f"hops: {task.hops}")


def _add_validators(validators: Validators, lines: list[str]) -> None:
    if validators.etag:
        lines.append(f"if-none-match: {validators.etag}")
    if validators.last_modified:
        lines.append(f"if-modified-since: {validators.last_modified}")


def _add_fetched(fetched: Fetched, lines: list[str]) -> None:
    lines += (
        f"sent-at: {fetched.sent_at}",
        f"ended-at: {fetched.ended_at}",
        f"fetchTimeMs: {fetched.elapsed_ms}",
        f"head-bytes: {len(fetched.head)}",
    )
    if fetched.sent_ms:
        lines.append(f"sent-steady-ms: {fetched.sent_ms}")
    if fetched.truncated is not None:
        lines.append(f"truncated: {fetched.truncated.value}")
    if fetched.unwanted:
        lines.append("unwanted: 1")
    if fetched.bad_certificate:
        lines.append(f"bad-certificate: {fetched.bad_certificate}")


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
