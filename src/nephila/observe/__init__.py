"""Listeners to what the crawl tells of itself: event files, running figures, log lines (O1).

All are `EventSink`s, joined by a `Fanout`. None of them can stop or slow the crawl: they do not raise, and they write
to memory or to the page cache only. What they show is masked (K4).
"""

from .events import JsonlEventSink
from .fanout import Fanout
from .log import LogSink
from .logger import LoggingSink
from .reader import LoggedEvent, read_events
from .tally import Tally

__all__ = ["Fanout", "JsonlEventSink", "LogSink", "LoggedEvent", "LoggingSink", "Tally", "read_events"]
