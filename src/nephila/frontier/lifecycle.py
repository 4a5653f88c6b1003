"""A URL's life as a table (F2).

Rules that stay true, whatever the engine:

1. A URL is in exactly one state. `in_progress` and `stored_pending` are not stored: a URL is in progress while a live
   lease names it, and it is pending while its segment is not confirmed. So a crash needs no repair of URL records.
2. Only an outcome moves a URL, and only the moves listed here exist: anything else is a bug and raises.
3. A URL in a terminal state comes back only when its cycle is over, it is due again, or a person puts it back.

    discovered -> QUEUED -> (leased) -> DONE -> (due again, next cycle) -> QUEUED
                    |  ^
                    |  '- DELAYED: a retry, a cooling time, a deferral
                    '---> DROPPED (a rule says no) | DEAD (given up)
"""

from __future__ import annotations

from enum import IntEnum

from nephila.model.errors import FrontierError
from nephila.model.outcome import Dead, Deferred, Done, Dropped, Outcome, Respelled, Retry


class State(IntEnum):
    """What is stored of a URL's state."""

    QUEUED = 0
    DELAYED = 1
    DONE = 2
    DROPPED = 3
    DEAD = 4


TERMINAL = frozenset({State.DONE, State.DROPPED, State.DEAD})

_AFTER: dict[type[Outcome], State] = {
    Done: State.DONE,
    Retry: State.DELAYED,
    Deferred: State.DELAYED,
    Dropped: State.DROPPED,
    Dead: State.DEAD,
    Respelled: State.QUEUED,
}


def after(state: State, outcome: Outcome) -> State:
    """The state that follows when a leased URL ends with `outcome`."""
    follower = _AFTER.get(type(outcome))
    if follower is None or state is not State.QUEUED:
        raise FrontierError(f"a {state.name} URL cannot end as {type(outcome).__name__}")
    return follower


def may_return(state: State, *, url_cycle: int, cycle: int) -> bool:
    """Whether a URL that is met again goes back into the queue: once a cycle, after it has ended."""
    return state in TERMINAL and url_cycle < cycle
