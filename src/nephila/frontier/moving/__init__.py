"""A frontier on its way from one engine to another: what it knows, in words that belong to no engine.

`rows` are the nouns, `stream` is the file they travel in. Each engine has its own `exporting` and `importing`, which
turn what it has stored into rows and back. docs/moving.md describes the file for others who want to read or write one.
"""

from .rows import (
    KINDS,
    VERSION,
    AskedFor,
    BlockRow,
    CaptureRow,
    CrawlRow,
    DomainRow,
    HostRow,
    MarkRow,
    OriginRow,
    OrphanRow,
    PolicyRow,
    RefusedRow,
    RobotsRow,
    Row,
    ScopeRow,
    TallyRow,
    UrlRow,
    UrlState,
    tally_in,
    tally_row,
)
from .shifting import Shift
from .stream import EndRow, check_stream, read_stream, write_stream

__all__ = [
    "KINDS",
    "VERSION",
    "AskedFor",
    "BlockRow",
    "CaptureRow",
    "CrawlRow",
    "DomainRow",
    "EndRow",
    "HostRow",
    "MarkRow",
    "OriginRow",
    "OrphanRow",
    "PolicyRow",
    "RefusedRow",
    "RobotsRow",
    "Row",
    "ScopeRow",
    "Shift",
    "TallyRow",
    "UrlRow",
    "UrlState",
    "check_stream",
    "read_stream",
    "tally_in",
    "tally_row",
    "write_stream",
]
