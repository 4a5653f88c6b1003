"""`nephila audit`: what was sent, held against what was promised, from archives and event log alone (K1, P5).

Nothing here asks the frontier or the catalogue, and nothing here is used by the crawler when it decides: the judgement
of robots.txt (`second_reading`), of addresses (`destinations`) and of time (`pace`) is written a second time.

`case` finds archives, events and chains, in a directory or in a store; `gathering` reads them into one sorted stream of
requests, `line_of_time` lays those on one line, `inquiry` holds each against the rules, the delays and the limits in
force, `findings` is what came of it, and `inquest` puts it together with the check of the chains (`store.trail_check`).
"""

from .findings import Audit, Finding, FindingKind
from .inquest import audit, audit_fleet

__all__ = ["Audit", "Finding", "FindingKind", "audit", "audit_fleet"]
