"""How a registrable domain is doing, and what follows from it (P4): a pause, or a lower class.

Two signs are watched, both over what the domain answered:

- *Errors among the last requests.* A window of bits, one for each of the last `pause_window` requests, 1 for an error.
  When more than `pause_share` of the whole window are errors, the domain is paused, and the window begins empty: after
  the pause it is judged by what it does then. Requests that were not made yet count as good ones, so that a domain is
  not paused for a first timeout.
- *Answers of 5xx in a row.* Each time there have been `demote_after` more of them, the class of the domain's URLs drops
  one level, two at most. `demote_after` successes in a row raise it again by one.

A missing page (404) is an answer like any other: it says nothing bad of the server. A timeout is an error in the
window; it neither lengthens nor ends a row of 5xx, for only a success shows that the server is well again, and it
does end a row of successes.

The window is kept as a number in as few bytes as it needs, the latest request in the lowest bit: the number of errors
is the number of its set bits, and the window of a domain without errors, which is nearly every one, is empty. Such a
domain's `Health` is handed back as it is.

What must stay true: no pause unless more than the share of the last requests were errors, and always when they were; a
domain that answers well again is back at its own class.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from nephila.model.settings import PolitenessSettings

MOST_LOWERED = 2
"""From high to low: there is no class below."""

_ROUNDING = 1e-9
"""A share such as 0.29 of 100 is a little less than 29 in binary fractions; 29 errors are not more than that."""


class Health(msgspec.Struct, array_like=True, frozen=True):
    """What is remembered of a domain's answers. Field order is the format."""

    window: bytes = b""
    """Errors among the last requests as the bits of a number, without leading zeros."""
    server_errors: int = 0
    """Answers of 5xx since the last success."""
    lowered: int = 0
    """Levels that its class has dropped by."""
    successes: int = 0
    """In a row since the last error, while the class is lowered."""

    @property
    def errors(self) -> int:
        """Errors among the last requests."""
        return int.from_bytes(self.window, "big").bit_count()


class Seen(Enum):
    """What one request showed of a domain."""

    OK = 1
    """Any answer below 500 except 429: a 404 too."""
    ERROR = 2
    """No answer (timeout, reset), or 429."""
    SERVER_ERROR = 3
    """5xx."""


def after(health: Health, seen: Seen, settings: PolitenessSettings) -> tuple[Health, bool]:
    """The health after a request, and whether the domain is to be paused now."""
    good = seen is Seen.OK
    if good and not (health.window or health.server_errors or health.lowered):
        return health, False
    size = settings.pause_window
    window = (int.from_bytes(health.window, "big") << 1 | (not good)) & ((1 << size) - 1)
    pause = window.bit_count() > settings.pause_share * size + _ROUNDING
    packed = b"" if pause else window.to_bytes((window.bit_length() + 7) // 8, "big")
    return Health(packed, *_standing(health, seen, settings.demote_after)), pause


def _standing(health: Health, seen: Seen, demote_after: int) -> tuple[int, int, int]:
    """The fields after the window: 5xx in a row, levels lowered, successes in a row."""
    if seen is Seen.ERROR:
        return health.server_errors, health.lowered, 0
    if seen is Seen.SERVER_ERROR:
        row = health.server_errors + 1
        drop = row % demote_after == 0 and health.lowered < MOST_LOWERED
        return row, health.lowered + drop, 0
    if not health.lowered:
        return 0, 0, 0
    if health.successes + 1 < demote_after:
        return 0, health.lowered, health.successes + 1
    return 0, health.lowered - 1, 0
