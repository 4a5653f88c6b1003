"""Every reader of ours with the properties that any bytes must leave standing (Q5).

`tools/fuzz` looks for inputs that break one, guided by coverage; `tests/fuzz` gives each of them the inputs that were
kept (`tests/corpus`) and a fixed number of mutations. A target is one function: bytes in, an exception where a property
does not hold.
"""

from . import addresses, given, kept, lists, loops, pages, rules, stored, wire
from .target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for part in (wire, rules, pages, lists, addresses, stored, kept, given, loops)
    for target in part.TARGETS
}

__all__ = ["TARGETS", "Target"]
