"""What the crawler tells about itself while it works (O1): one flat, stable record a line."""

from __future__ import annotations

from enum import StrEnum

from .noun import noun


class EventKind(StrEnum):
    """The names of events. Stable: downstream reads them."""

    CRAWL_START = "crawl_start"
    CRAWL_END = "crawl_end"
    FETCH_OK = "fetch_ok"
    """An answer was stored, whatever its status."""
    ERROR = "error"
    ROBOTS_FETCHED = "robots_fetched"
    ROBOTS_DISALLOW = "robots_disallow"
    EXCLUDED_BY_RULE = "excluded_by_rule"
    SEED_REFUSED = "seed_refused"
    """What somebody gave as a seed is none, or was excluded (S1); `detail` has its text, where it stood, and why."""
    COOLDOWN_SKIP = "cooldown_skip"
    DUPLICATE = "duplicate"
    REDIRECT = "redirect"
    TRAP = "trap"
    RETRY = "retry"
    DEFERRED = "deferred"
    DEAD_LETTER = "dead_letter"
    BROKEN_OFF = "broken_off"
    """A request that may have been sent and of which nothing else tells: we ended it, or broke on it."""
    TERMS = "terms"
    """What binds the lines below it in its file: the settings in force (`model.terms`), the clock they are told by."""
    LATE_RESULT = "late_result"
    """A result came after its lease was lost and was dropped (F3)."""
    LISTED = "listed"
    """A sitemap or feed was read; its `counts` say what it brought."""
    PDF_LINKS_EXTRACTED = "pdf_links_extracted"
    """The links of a PDF were read out of it (X4)."""
    OFFICE_LINKS_EXTRACTED = "office_links_extracted"
    """The links of an office document were read out of it (X4)."""
    PLUGIN_FAILED = "plugin_failed"
    """A plugin, named by `reason`, raised, overran its deadline or answered nonsense (E1)."""
    PLUGIN_OFF = "plugin_off"
    """It did so too often and is not asked any more in this run."""
    RENDERED = "rendered"
    """A page was shown to a browser (J2); its `counts` say what that took and whether it brought anything."""
    RENDER_MISSED = "render_missed"
    """A page that needs a browser was judged as it came: there is none, or it failed; `reason` says which."""
    VISIT_PART = "visit_part"
    """Something that a page in a browser asked its host for (J3); `via` is the page."""
    RENDER_RESOURCE = "render_resource"
    """Something that pages in browsers need of another host than their own was asked for there, or refused (J3)."""
    HEARTBEAT = "heartbeat"
    WARNING = "warning"


NEAR = "near"
"""The reason of a `duplicate` that says nearly, and not exactly, what its original says (D3)."""

UNWANTED_TYPE = "unwanted_type"
"""The reason of a `fetch_ok` whose body was not read because of its media type (H7)."""


@noun
class Event:
    """One event. Unset fields are left out of the line."""

    kind: EventKind
    at: int
    """UTC milliseconds."""
    url: str = ""
    fingerprint: bytes = b""
    host: str = ""
    depth: int | None = None
    status: int | None = None
    bytes: int | None = None
    content_type: str = ""
    reason: str = ""
    detail: str = ""
    via: str = ""
    elapsed_ms: int | None = None
    counts: tuple[tuple[str, int], ...] = ()
    """The figures of a heartbeat or a summary."""
    address: str = ""
    """The IP address that was asked."""
    sent_ms: int | None = None
    """When a request left, on the clock that does not jump; it ended `elapsed_ms` later."""

    def is_page(self) -> bool:
        """Whether this is a page that was stored and is done with: a whole 2xx answer of a wanted type, or a 304."""
        if self.kind is not EventKind.FETCH_OK or self.reason:
            return False
        status = self.status or 0
        return 200 <= status < 300 or status == 304
