"""Look into a crawl directory, also while a crawl runs on it. `python inspect_crawl.py site`.

The same view that `nephila status`, `pages`, `dead` and `why` print from. Reading takes no lock and disturbs nobody.
"""
# ruff: noqa: T201 - an example shows what it finds

import sys
from pathlib import Path

from nephila.node.inspect import open_view


def main(directory: str) -> None:
    """Where the crawl stands, its newest pages and their story, what was given up."""
    view = open_view(Path(directory))
    status = view.status()
    print(f"{status.pages} pages of {status.hosts} hosts, cycle {status.cycle}, running: {status.running}")
    print(f"queued: {sum(status.queued.values())}, waiting for a time: {sum(status.waiting_for_a_time.values())}")
    for page in view.pages(status=200, limit=3):
        print(f"\n{page.url}  {page.title}")
        for label, text in view.why(page.url).lines[1:]:
            print(f"  {label:<13}{text}")
    for letter in view.dead(limit=5):
        print(f"\ngiven up: {letter.url} ({letter.reason}: {letter.detail})")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
