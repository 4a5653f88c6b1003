"""Python's cyclic garbage collector, told that a crawler is mostly tuples that live for a moment.

A page brings thousands of small objects, nearly all of which go by their reference count; by default the collector
looks at the youngest after every 700 and, now and then, at everything there is: a tenth of the time of a crawl. What
was made before the crawl began stays until its end and is not looked at at all.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 50_000
"""Containers made and not yet freed before the youngest are looked at: some ten megabytes."""


def calm_collector() -> None:
    """Call once everything is imported, before a crawl begins."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
