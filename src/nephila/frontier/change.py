"""How often a page changes, as its visits have shown, and what is told of that to people (R1, R2, W3).

Pure: no clock is read here.
"""

from __future__ import annotations

from math import log

from nephila.interfaces.recrawl import History, Outlook

DAY_S = 86_400
COMPARED = 2
"""Visits that there must have been: the first one has nothing to be compared with."""
_HALF = 0.5


def rate_of(history: History) -> float | None:
    """Changes a second, estimated; None before two visits were compared.

    From the share of visits that found no change, as if they had been one present interval apart: -log(share) /
    interval. The interval follows the page (R2), so that this holds well enough. To the visits half a change in one
    visit more is added, so that no share is 0 or 1.
    """
    if history.interval_s <= 0 or history.visits < COMPARED:
        return None
    compared = history.visits - 1
    unchanged = max(compared - history.changes, 0)
    return -log((unchanged + _HALF) / (compared + 1)) / history.interval_s


def outlook_of(history: History) -> Outlook | None:
    """What the last visit has planned, to the second; None where it has planned nothing."""
    if history.interval_s <= 0:
        return None
    rate = rate_of(history)
    return Outlook((history.last_s + history.interval_s) * 1000, None if rate is None else rate * DAY_S)
