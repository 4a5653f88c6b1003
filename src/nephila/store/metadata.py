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

from .warc import fields_block, one_line

NOTE = "note-"
_OUTLINK = "outlink: "
_NEXT_OUTLINK = f"\r\n{_OUTLINK}"


def metadata_block(capture: Capture, coding: str) -> bytes:
    """The warc-fields of one capture. `coding` is kept for revisits, whose original had the same."""
    text = _lease_lines(capture) + _task_lines(capture.task) + _fetched_lines(capture.fetched)
    if capture.revisit_of is not None:
        text += _line("coding", coding)
    if capture.body_left_out:
        text += "body-left-out: 1\r\n"
    for name, value in capture.notes:
        text += _line(NOTE + name, value)
    block = text.encode("utf-8", "replace")
    return block + _outlink_lines(capture.outlinks) if capture.outlinks else block


def _line(name: str, value: str) -> str:
    """A field whose value is somebody else's: it cannot end its line."""
    return f"{name}: {one_line(value)}\r\n"


def _outlink_lines(outlinks: tuple[str, ...]) -> bytes:
    """One join for all of them: there are eighty a page, and not one has a line end unless something is wrong."""
    lines = f"{_OUTLINK}{_NEXT_OUTLINK.join(outlinks)}\r\n".encode("utf-8", "replace")
    if lines.count(b"\n") == lines.count(b"\r") == len(outlinks):
        return lines
    return fields_block(("outlink", outlink) for outlink in outlinks)


def _lease_lines(capture: Capture) -> str:
    via, task = capture.via, capture.task
    text = f"{_line('via', via) if via else ''}token: {int(capture.token)}\r\nattempt: {capture.attempt}\r\n"
    if task.url != capture.fetched.url:
        text += _line("task-url", task.url)
    if isinstance(task, PageTask) and task.via != via:
        text += _line("task-via", task.via)
    return text


def _task_lines(task: PageTask | RobotsTask | PartTask) -> str:
    match task:
        case PartTask():
            return _line("visited-page", task.page)
        case RobotsTask():
            text = _line("robots-origin", task.origin)
        case PageTask():
            text = (
                f"fingerprint: {task.fingerprint.hex()}\r\ndepth: {task.depth}\r\nlevel: {int(task.level)}\r\n"
                f"retries: {task.retries}\r\ncycle: {task.cycle}\r\n"
            )
            if task.validators:
                text += _validator_lines(task.validators)
            if task.digest:
                text += f"last-digest: {task.digest.hex()}\r\n"
            for spelling in task.trail:
                text += _line("trail", spelling)
    return f"{text}hops: {task.hops}\r\n" if task.hops else text


def _validator_lines(validators: Validators) -> str:
    etag, moment = validators.etag, validators.last_modified
    return f"{_line('if-none-match', etag) if etag else ''}{_line('if-modified-since', moment) if moment else ''}"


def _fetched_lines(fetched: Fetched) -> str:
    text = (
        f"sent-at: {fetched.sent_at}\r\nended-at: {fetched.ended_at}\r\nfetchTimeMs: {fetched.elapsed_ms}\r\n"
        f"head-bytes: {len(fetched.head)}\r\n"
    )
    if fetched.sent_ms:
        text += f"sent-steady-ms: {fetched.sent_ms}\r\n"
    if fetched.truncated is not None:
        text += f"truncated: {fetched.truncated.value}\r\n"
    if fetched.unwanted:
        text += "unwanted: 1\r\n"
    if fetched.bad_certificate:
        text += _line("bad-certificate", fetched.bad_certificate)
    return text


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
