"""A frontier in plain dictionaries, for tests: obviously right rather than fast.

It keeps the same promises as the frontier on disk (`interfaces.frontier`, checked by the same contract suite) and
follows the same pure policies: order, score, rank, budget, health, re-crawl, traps, blocks. What it does not have is
anything clever. There is one dictionary of URLs per host; every counter is counted, and every queue sorted, when
somebody asks. A test can look at all of it.

`nouns` are what is remembered, `ground` says where hosts stand and where URLs are queued, `shelves` what is parked,
`admitting`, `settling` and `claiming` are the verbs, each a class that stands on the one before, `telling` what can be
read; `frontier` is the whole. An engine's known ways of doing something otherwise can be tried out by overriding one of
the small methods.

What must stay true: nothing in here is shared with an engine but the policies, so that a model test that runs both
compares two independent readings of the same rules.
"""

from .frontier import MemoryFrontier
from .nouns import Rules

__all__ = ["MemoryFrontier", "Rules"]
