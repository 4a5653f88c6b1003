"""Leases that are being settled, as whoever claims counts them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from worker import Worker, answer

HOME = "https://a.example/"


@pytest.mark.parametrize("given_to_somebody", [False, True])
def test_a_lease_counts_as_settling_once_it_holds_nothing_of_what_was_fetched(
    tmp_path: Path, given_to_somebody: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q2, Q5: its host is not asked any more; where the page is kept for somebody, its place is kept as well."""
    worker = Worker(tmp_path)
    worker.fetcher.script[HOME] = [answer(HOME, body=b"<p>home")]
    pipeline = worker.pipeline
    if not given_to_somebody:
        pipeline._conduct = replace(pipeline._conduct, deliver=None)
    settle, seen, told = worker.frontier.settle, list[int](), list[int]()

    async def settling(*given: Any) -> Any:
        seen.append(pipeline.settling)
        return await settle(*given)

    monkeypatch.setattr(worker.frontier, "settle", settling)
    pipeline.answered = lambda: told.append(pipeline.settling)
    worker.run(lambda: worker.crawl(HOME))
    assert (seen, told) == (([0], []) if given_to_somebody else ([1], [1]))
    assert pipeline.settling == 0
