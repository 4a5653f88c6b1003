"""Takedowns: what must not be kept is blocked, taken out of everything, and proven to be gone (C1, K2, W5).

`record` is the order, kept in the crawl directory until it is carried out and afterwards; `target` says what it means;
`carrying_out` does it, in the files that `premises` has; `keeping` has a crawl do it while it runs. A fleet has records
and premises of its own (`node.fleet.takedowns`). docs/takedown.md tells what is taken out and what is not.
"""

from .carrying_out import Takedowns
from .keeping import TakedownKeeper, roll_when_asked
from .record import Order, Takedown, TakedownFolder, TakedownState
from .target import Target, check_order, refuse_objects

__all__ = [
    "Order",
    "Takedown",
    "TakedownFolder",
    "TakedownKeeper",
    "TakedownState",
    "Takedowns",
    "Target",
    "check_order",
    "refuse_objects",
    "roll_when_asked",
]
