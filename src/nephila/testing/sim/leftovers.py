"""What must not be left in memory when a crawl has ended."""

from __future__ import annotations

from nephila.node.machinery import Machinery


def leftovers(machinery: Machinery) -> list[str]:
    """Tables of a process that should be empty at its end, and bounds that were passed."""
    bookkeeper, pipeline = machinery.bookkeeper, machinery.pipeline
    fetcher = pipeline._to.fetcher
    held = {
        "captures that nobody settled": sum(map(len, bookkeeper._outstanding.values())),
        "originals that nobody was told of": len(bookkeeper._originals),
        "rows that were not recorded": len(bookkeeper._rows),
        "errors that were not recorded": len(bookkeeper._errors),
        "segments without an index": len(bookkeeper._rolled),
        "leases": len(machinery.expiries),
        "tasks that send": len(pipeline.sending),
        "bytes of bodies": fetcher._budget.total,  # type: ignore[attr-defined]  # the real fetcher has one
        "connections": len(fetcher._pool),  # type: ignore[attr-defined]  # as above
    }
    return [f"{count} {name} at the end" for name, count in held.items() if count]
