"""The limits of a crawl that several workers share, on real engines."""

from __future__ import annotations

from pathlib import Path

from fleet_engines import Engines, Fleet
from served import served_articles

MAX_PAGES, HOSTS = 60, 8
LIMIT = 3
"""The exit code of what was stopped by a limit."""


def test_workers_share_the_limit_of_pages(tmp_path: Path, engines: Engines) -> None:
    """S3, N1: two workers together store what a crawl may and what they had begun; a third nothing."""
    with (
        served_articles(tmp_path / "web", 85, hosts=HOSTS, pages=240, delay_s=0.2) as web,
        Fleet(tmp_path / "fleet", engines, web, 0.2, more=f"max_pages = {MAX_PAGES}") as fleet,
    ):
        fleet.seed()
        workers = [fleet.start(name) for name in ("first", "second")]
        summaries = [worker.end(code=LIMIT) for worker in workers]
        late = fleet.start("third").end(code=LIMIT)
        stored = sum(fleet.stored().values())
    assert {one["stopped_by"] for one in (*summaries, late)} == {"max_pages"}
    assert late["pages"] == 0
    assert MAX_PAGES <= stored <= MAX_PAGES + HOSTS + len(workers)
