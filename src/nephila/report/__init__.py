"""What a crawl came to, added up in one pass (O3).

Pure: rows in, a `CrawlReport` out. Where the rows come from is the node's affair, how it is shown the command line's.
"""

from .document import (
    Coverage,
    CrawlReport,
    ErrorHost,
    Moment,
    Queue,
    Repetition,
    Spread,
    Timeline,
    WorkerFigures,
)
from .gathering import Gathering

__all__ = [
    "Coverage",
    "CrawlReport",
    "ErrorHost",
    "Gathering",
    "Moment",
    "Queue",
    "Repetition",
    "Spread",
    "Timeline",
    "WorkerFigures",
]
