"""How many URLs of a host a lease is for.

A lease that lasts through the delays of its host spares claims, and lets its pages be settled together; one that does
not lets the host be sorted anew after each page, and its worker hold no more than it asks. Where there is no delay to
speak of the first is the better in any crawl. Where there is one it pays where a call costs more than holding a lease
does: in a fleet, whose frontier is a server that everybody calls (decision 2).
"""

from __future__ import annotations

SHORT_DELAY_MS = 50
"""A delay below this is none to speak of: a judgement, not a measured optimum (decision 2)."""


def urls_in_lease(delay_ms: int, most: int, span_ms: int) -> int:
    """So many URLs, `most` at most, as are asked within a span: the first at once, the others a delay apart."""
    if delay_ms < SHORT_DELAY_MS:
        return most
    return min(most, 1 + span_ms // delay_ms)
