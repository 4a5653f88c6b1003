"""What an answer turned out to be, and what the archive keeps of it."""

from __future__ import annotations

from nephila.model.exchange import Fetched
from nephila.model.noun import noun
from nephila.model.outcome import OriginRules
from nephila.model.page import Link, Page
from nephila.model.record import Capture
from nephila.model.task import Lease, PageTask

from .extending import notes_on
from .judgement import Judgement
from .listing import sizes_of
from .near import NOTE_SIMHASH, notes_of
from .notes import policy_notes
from .notfound import PROBE, SOFT_404
from .outlinks import outlinks

NOTES = {SOFT_404: "softNotFound", PROBE: "notFoundProbe"}
"""How the metadata of a capture says that it is no page (T4)."""

NOTE_SIZES, NOTE_TITLE, NOTE_LANGUAGE = "sizes", "title", "language"
"""What the metadata of a capture without a body of its own say: bytes of the body and on the wire, and of the page."""

NOTE_REQUISITE = "requisite"
"""And what the page is shown with: tag and URL of each."""

NOTE_LISTING = "listing"
"""How the metadata of a capture says that it is a list, and of which kind (X3)."""


@noun
class Found:
    """What an answer turned out to be."""

    answer: Fetched
    """As it was on the wire."""
    view: Fetched
    """As it was judged: the same, or what a browser made of it (J4)."""
    judged: Judgement
    rendered: bytes | None = None
    """The document as its scripts left it, if it is kept."""
    notes: tuple[tuple[str, str], ...] = ()
    """What its metadata say of the browser."""
    visit: tuple[tuple[str, int], ...] = ()
    """Which visit it began, for the events."""


def _said_by(page: Page) -> list[tuple[str, str]]:
    """What a page says of itself to crawlers; most say nothing."""
    directives = page.directives
    notes: list[tuple[str, str]] = []
    if directives.nofollow or directives.noindex or directives.noarchive:
        flags = [name for name in ("nofollow", "noindex", "noarchive") if getattr(directives, name)]
        notes.append(("directives", " ".join(flags)))
    if page.canonical:
        notes.append(("canonical", page.canonical))
    return notes


def _told_by_body(page: Page | None, answer: Fetched) -> list[tuple[str, str]]:
    """What the catalogue knows of an answer by its body, where that is not kept with it."""
    notes = [(NOTE_SIZES, "{} {}".format(*sizes_of(answer)))]
    if page is not None:
        notes += [(NOTE_SIMHASH, f"{page.simhash:016x}")] if page.simhash else []
        notes += [(NOTE_TITLE, page.title)] if page.title else []
        notes += [(NOTE_LANGUAGE, page.language)] if page.language else []
        notes += [(NOTE_REQUISITE, f"{one.tag} {one.url}") for one in page.requisites]
    return notes


def sizes_in(capture: Capture) -> tuple[int, int] | None:
    """The sizes of an answer whose body is not kept with it, as they were noted; None where they were not."""
    told = dict(capture.notes).get(NOTE_SIZES)
    if told is None:
        return None
    length, wire_bytes = told.split()
    return int(length), int(wire_bytes)


def requisites_in(capture: Capture) -> tuple[Link, ...]:
    """What a page whose body is not kept is shown with, as it was noted."""
    told = [value.partition(" ") for name, value in capture.notes if name == NOTE_REQUISITE]
    return tuple(Link(url, tag, "", "") for tag, _, url in told)


def capture_of(lease: Lease, task: PageTask, attempt: int, found: Found, rules: OriginRules | None) -> Capture:
    """What the archive keeps of it, notes for whoever reads it again included."""
    judged = found.judged
    page = judged.page
    notes = [("robotsRules", f"{rules.kind} {rules.stored_at}")] if rules else []
    if lease.pace.base_ms >= 0:
        notes += policy_notes(lease)
    if page is not None:
        notes += _said_by(page)
    if judged.digest:
        notes.append(("contentDigest", f"sha256:{judged.digest.hex()}"))
    if judged.original is not None and not judged.not_modified:
        notes.append(("duplicateOf", judged.original.url))
    if judged.near is not None:
        notes += notes_of(judged.near)
    if (judged.original is not None and not judged.not_modified) or not judged.body_kept:
        notes += _told_by_body(page, found.view)
    if judged.listing is not None:
        notes.append((NOTE_LISTING, judged.listing))
    if judged.extracts:
        notes += notes_on(judged)
    notes += found.notes
    if judged.error in {SOFT_404, PROBE}:
        notes.append((NOTES[judged.error], judged.detail or "asked for what cannot exist, to see how the host says so"))
    return Capture(
        task=task,
        token=lease.token,
        attempt=attempt,
        fetched=found.answer,
        via=task.via,
        # The bytes of a shell say nothing of the page: a copy of what a browser showed is stored whole.
        revisit_of=judged.original if found.rendered is None else None,
        not_modified=judged.not_modified,
        outlinks=outlinks(page.links) if page else (),
        notes=tuple(notes),
        body_left_out=not judged.body_kept,
        rendered=found.rendered,
    )
