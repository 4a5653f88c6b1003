"""When a page is shown to a browser, decided from what its host's pages have gained by it before (J1). Pure.

Pages of a host fall into two classes, those that show a sign and those that do not, and each class has its record. The
first few pages with a sign are always tried. As long as a browser makes more of them, all of their class are; after
three in a row that gained nothing they are let go, and one is tried again now and then, ever more rarely. Pages without
a sign are tried only where others of their host have gained, and only two of them before they are let go.

A page that waits for other hosts (`holding`) teaches what they are good for: one for which pages have waited three
times in a row and gained nothing is waited for no more, but for a page now and then.

What must stay true: a host whose pages show no sign costs no browser anything; a host is decided within five pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nephila.model.page import Page
from nephila.model.rendering import Record, RenderMode, Sign, SiteRendering
from nephila.urls import host_of, registrable_domain

TRIES = 3
"""Pages with a sign that gain nothing, in a row, before their class is let go."""
PLAIN_TRIES = 2
"""The same for pages that show none."""
FIRST_RECHECK = 50
"""Pages that pass before one is tried again; twice as many after every try in vain."""
LAST_RECHECK = 3_200
MORE_WORDS = 20
"""Words of main text by which a page must have grown to have gained, where it has no new link."""

WAITS = 3
"""Pages that waited for another host and gained nothing, in a row, before it is waited for no more."""
WAIT_AGAIN = 50
"""Pages that pass before one waits for it again."""
OTHERS = 32
"""Other hosts that are remembered of a host; the oldest is forgotten then."""

UNKNOWN = SiteRendering()


def is_tried(known: SiteRendering, sign: Sign, mode: RenderMode) -> bool:
    """Whether a page of a host goes to a browser."""
    if mode is not RenderMode.AUTO:
        return mode is RenderMode.ALWAYS
    if not sign and not known.signed.gained:
        return False
    record, tries = (known.signed, TRIES) if sign else (known.plain, PLAIN_TRIES)
    if record.misses < tries:
        return True
    return record.passed >= min(FIRST_RECHECK << min(record.misses - tries, 20), LAST_RECHECK)


def expects(known: SiteRendering | None, mode: RenderMode) -> bool:
    """Whether the next page of a host is likely to go to a browser, before anything of it was seen."""
    if mode is not RenderMode.AUTO:
        return mode is RenderMode.ALWAYS
    return known is not None and (known.awaited or (known.signed.gained > 0 and known.signed.misses < TRIES))


def after_try(known: SiteRendering, sign: Sign, *, gained: bool) -> SiteRendering:
    """What is known of a host when a browser has shown one of its pages."""
    record = known.signed if sign else known.plain
    record = Record(record.tried + 1, record.gained + gained, 0 if gained else record.misses + 1, 0)
    known = replace(known, awaited=False)
    return replace(known, signed=record) if sign else replace(known, plain=record)


def after_passing(known: SiteRendering, sign: Sign) -> SiteRendering:
    """The same when a page was let go without: nothing new where nothing was ever tried."""
    record = known.signed if sign else known.plain
    if not record.tried:
        return known
    record = replace(record, passed=record.passed + 1)
    return replace(known, signed=record) if sign else replace(known, plain=record)


def is_worth_waiting(known: SiteRendering | None, other: str) -> bool:
    """Whether a page of a host waits for what another host has."""
    misses = 0 if known is None else dict(known.others).get(other, 0)
    return misses < WAITS or misses >= WAITS + WAIT_AGAIN


def after_waiting(known: SiteRendering, waited: Iterable[str], passed: Iterable[str], *, gained: bool) -> SiteRendering:
    """What is known of a host when one of its pages has waited for some hosts, and let others be."""
    others = dict(known.others)
    for other in waited:
        misses = others.pop(other, 0)
        others[other] = 0 if gained else min(misses + 1, WAITS)
    for other in passed:
        others[other] = others.get(other, WAITS) + 1
    return replace(known, others=tuple(others.items())[-OTHERS:])


def has_gained(raw: Page | None, rendered: Page | None) -> bool:
    """Whether a browser made more of a page: links of its own site, or text."""
    if rendered is None:
        return False
    if raw is None:
        return True
    site, before = registrable_domain(host_of(raw.url)), {link.url for link in raw.links}
    if any(link.url not in before and registrable_domain(host_of(link.url)) == site for link in rendered.links):
        return True
    return rendered.words >= raw.words + MORE_WORDS
