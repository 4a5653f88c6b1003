"""Whether a page has changed, and how often it does, estimated from visits that came at irregular times (R1, R2).

Changes are taken to come by chance at a steady rate (Poisson), as measurements of the web have them (Cho and
Garcia-Molina 2003). A visit tells whether there was at least one since the visit before, not how many; so a change
found after a month says little of an hourly page, and none found in a minute says little of anything. What is believed
of the rate is a Gamma distribution, two numbers with a meaning:

- its *shape*: as if so many changes had been seen;
- its *span*: in so long. Shape over span is the mean rate.

A visit without a change after t seconds adds t to the span, which is exact. One that found a change makes the belief
the difference of two Gammas. And rates do not stay what they were: with a small chance the page has become another one
since the last visit, of which little more is known than that its rate is about the old one. So there are two beliefs
after a visit, each as likely as it made what was seen; the Gamma with the mean and the variance of both together stands
for them from then on (assumed-density filtering). What was likely hardly loosens a belief; what was not makes it give
way. No history is kept, and on histories with irregular gaps it comes about as near to the true rate as maximum
likelihood over all of them, which cannot follow a rate that shifts.

What must stay true: a belief never gets weaker than the first one, and its mean is finite and positive; a visit without
a change never raises the rate, and one with a change never lowers it; no time, no news. Pure: no clock is read here.
"""

from __future__ import annotations

from dataclasses import replace
from math import expm1, log, log1p
from typing import NamedTuple

from nephila.interfaces.recrawl import History, Outlook
from nephila.model.noun import quick
from nephila.model.outcome import Done

DAY_S = 86_400
COMPARED = 2
"""Visits that there must have been: the first one has nothing to be compared with."""
FIRST_SHAPE = 0.5
"""What is believed at first is worth half a change: wide enough to be wrong by a factor of a hundred."""
ANOTHER = 0.02
"""How likely a page has become another one since its last visit; our own choice. Half as much tells steady pages by a
tenth better, and needs twice the visits to follow a shift."""
LONGEST_S = 100 * 365 * DAY_S
"""Between two changes: nobody visits for longer than that."""

_HALF = 0.5
_MARK_BYTES = 6
"""Numbers of the engine of a fleet are floating-point: 53 bits of them are exact."""
_UNIT = 100
"""Shapes are kept in hundredths."""
_FIRST_PACKED = round(FIRST_SHAPE * _UNIT)
_LARGEST_SHAPE = 1000.0
_ENOUGH = 10.0
"""What a belief is at most worth that was made of a share of changes: about as much as many visits leave one."""


@quick
class Belief(NamedTuple):
    """What is believed of a page's rate of change."""

    shape: float
    span_s: float

    @property
    def rate(self) -> float:
        """Changes a second, the mean."""
        return self.shape / self.span_s


def first_belief(period_s: float) -> Belief:
    """What is believed of a page that should change every so often, before anything was seen."""
    return Belief(FIRST_SHAPE, FIRST_SHAPE * max(period_s, 1.0))


def chance_of_change(belief: Belief, elapsed_s: float) -> float:
    """How likely there was a change in so long: 1 - (span / (span + elapsed)) ** shape."""
    return -expm1(-belief.shape * log1p(max(elapsed_s, 0.0) / belief.span_s))


def after_visit(belief: Belief, gap_s: float, *, changed: bool) -> Belief:
    """What is believed after one more visit, so long after the one before."""
    if gap_s <= 0:
        return belief
    loose = Belief(FIRST_SHAPE, belief.span_s * FIRST_SHAPE / belief.shape)
    likely, mean, square = _seen(belief, gap_s, changed=changed)
    if belief.shape > FIRST_SHAPE:
        unlikely, other_mean, other_square = _seen(loose, gap_s, changed=changed)
        weight = ANOTHER * unlikely / (ANOTHER * unlikely + (1 - ANOTHER) * likely)
        mean += weight * (other_mean - mean)
        square += weight * (other_square - square)
    variance = square - mean**2
    shape = min(max(mean**2 / variance, FIRST_SHAPE), _LARGEST_SHAPE) if variance > 0 else _LARGEST_SHAPE
    return Belief(shape, shape / mean)


def _seen(belief: Belief, gap_s: float, *, changed: bool) -> tuple[float, float, float]:
    """How likely a belief made what was seen after a gap; and the mean and the mean square of the rate since."""
    shape, span_s = belief
    if not changed:
        span_s += gap_s
        return (belief.span_s / span_s) ** shape, shape / span_s, shape * (shape + 1) / span_s**2
    # The moments of the Gamma without what a span that is longer by the gap has of them.
    longer = log1p(gap_s / span_s)
    likely = -expm1(-shape * longer)
    mean = shape / span_s * -expm1(-(shape + 1) * longer) / likely
    return likely, mean, shape * (shape + 1) / span_s**2 * -expm1(-(shape + 2) * longer) / likely


# Whether there was one


def said_mark(done: Done) -> int:
    """What a page says, in as many bits as every engine keeps exactly; 0 where it says nothing, or was not read."""
    return int.from_bytes(done.said[:_MARK_BYTES], "little") or 1 if done.said else 0


def as_seen(history: History, done: Done) -> Done:
    """An answer with `changed` by what the page says, where that is known of both visits: else it is by its bytes.

    The time, a counter or an advert that is another one each time is no change (R2).
    """
    if done.changed and done.said and history.said and history.said == said_mark(done):
        return replace(done, changed=False)
    return done


# As it is kept with a page


def packed(belief: Belief) -> tuple[int, int]:
    """A belief as two whole numbers: the mean time between changes in seconds, and its shape in hundredths."""
    period_s = min(max(round(belief.span_s / belief.shape), 1), LONGEST_S)
    return period_s, max(round(belief.shape * _UNIT), 1)


def first_packed(period_s: float) -> tuple[int, int]:
    """`packed(first_belief(period_s))`, for every page that is visited for the first time."""
    return min(max(round(period_s), 1), LONGEST_S), _FIRST_PACKED


def belief_of(history: History) -> Belief | None:
    """What is believed of a page that was visited; None where nothing is known.

    Where nobody has kept a belief (an earlier version, another program) one is made from the share of visits that found
    a change, as if they had been one present interval apart.
    """
    if history.shape > 0 and history.period_s > 0:
        shape = history.shape / _UNIT
        return Belief(shape, shape * history.period_s)
    if history.interval_s <= 0 or history.visits < COMPARED or history.gone:
        return None
    compared = history.visits - 1
    unchanged = max(compared - history.changes, 0)
    rate = -log((unchanged + _HALF) / (compared + 1)) / history.interval_s
    shape = min(max(history.changes, FIRST_SHAPE), _ENOUGH)
    return Belief(shape, shape / rate)


def rate_of(history: History) -> float | None:
    """Changes a second, estimated; None before two visits were compared."""
    belief = belief_of(history) if history.visits >= COMPARED else None
    return None if belief is None else belief.rate


def outlook_of(history: History) -> Outlook | None:
    """What the last visit has planned, to the second; None where it has planned nothing."""
    if history.interval_s <= 0:
        return None
    rate = rate_of(history)
    return Outlook((history.last_s + history.interval_s) * 1000, None if rate is None else rate * DAY_S)
