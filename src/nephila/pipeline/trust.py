"""Whether a site's lastmod tells the truth: what lists say of pages against what visits find (X3, R2).

A page that is compared carries what its list said when it was last visited, and a mark of its content then. At the next
visit there are four cases:

| the list says          | the content has changed      | it has not         |
|------------------------|------------------------------|--------------------|
| a later date than then | right                        | false              |
| the same date          | flagged: the list may follow | nothing to be said |

A flag is settled when the list was read once more: with a later date it was right, only late; else it was missed. So no
clock of the site is compared with ours. Beliefs follow the evidence both ways: old evidence fades, and a site that has
mended its ways is believed again. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from nephila.model.listing import ListedNote, SiteTrust
from nephila.model.settings import SitemapSettings

FADES_AT = 64
"""Pieces of evidence after which all count half: some tens of visits decide, not the first ones for ever."""
EXAMPLES = 5

RIGHT, FALSE, MISSED = "right", "false", "missed"
_SAID = {
    FALSE: "a later lastmod, the same content",
    MISSED: "other content, the same lastmod",
}


def is_believed(trust: SiteTrust, settings: SitemapSettings) -> bool:
    """Whether what a site says of its pages is acted on."""
    wrong = trust.false + trust.missed
    total = wrong + trust.right
    return total < settings.evidence or wrong <= settings.wrong_share * total


def weigh(trust: SiteTrust, finding: str, url: str) -> SiteTrust:
    """The trust after one more piece of evidence."""
    trust = replace(trust, **{finding: getattr(trust, finding) + 1})
    if finding in _SAID:
        trust = replace(trust, evidence=(*trust.evidence, f"{url}: {_SAID[finding]}")[-EXAMPLES:])
    if trust.right + trust.false + trust.missed > FADES_AT:
        trust = replace(trust, right=trust.right // 2, false=trust.false // 2, missed=trust.missed // 2)
    return trust


def after_reading(note: ListedNote, lastmod_s: int, source: bytes) -> tuple[ListedNote, str]:
    """What is known of a page when a list has named it again, and what that shows."""
    later = lastmod_s > note.seen_s
    if not note.flagged_s:
        return replace(note, lastmod_s=lastmod_s, source=source), ""
    if later:  # the change that was found before it was told of
        return replace(note, lastmod_s=lastmod_s, seen_s=lastmod_s, source=source, flagged_s=0), RIGHT
    return replace(note, lastmod_s=lastmod_s, source=source, flagged_s=0), MISSED


def after_visit(note: ListedNote, text: bytes, now_s: int, list_read_s: int, *, same: bool) -> tuple[ListedNote, str]:
    """What is known of a page after a visit, and what that shows.

    `same` says that the content is that of the last visit for certain; `list_read_s` is when its list was read last.
    """
    finding, flagged_s = "", 0
    announced = note.lastmod_s > note.seen_s
    if note.flagged_s and not announced and list_read_s > note.flagged_s:
        finding = MISSED  # the list was found unchanged since then
    elif note.text:
        changed = not same and text != note.text
        if announced:
            finding = RIGHT if changed else FALSE
        elif changed and note.lastmod_s:
            flagged_s = now_s
    return ListedNote(note.lastmod_s, note.lastmod_s, text or note.text, note.source, flagged_s), finding
