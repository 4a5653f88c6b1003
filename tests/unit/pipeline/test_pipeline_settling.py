"""Leases that are being settled, as whoever claims counts them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from worker import Worker, answer

from nephila.model.exchange import Answer, FetchRequest

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


@pytest.mark.parametrize("robots", [False, True])
@pytest.mark.parametrize(("waited_ms", "gap_ms"), [(0, 1000), (1, 1000), (400, 1000), (5000, 5001)])
def test_a_rest_begins_when_the_answer_has_come_not_when_it_is_looked_at(
    tmp_path: Path, waited_ms: int, gap_ms: int, robots: bool
) -> None:
    """P1, Q2: an answer that had to wait costs its host no more than a millisecond, and never less than the delay."""
    worker = Worker(tmp_path, robots=robots)
    first_url = f"{HOME}robots.txt" if robots else HOME

    async def late(request: FetchRequest) -> Answer:
        came_at = worker.clock.steady_ms()
        worker.clock.advance(waited_ms / 1000)
        return answer(request.url, body=b'<a href="/2">2</a>', sent_ms=came_at - 10)

    worker.fetcher.script[first_url] = [late]
    worker.run(lambda: worker.crawl(HOME))
    assert worker.fetcher.urls[:2] == [first_url, HOME if robots else f"{HOME}2"]
    first, second = worker.fetcher.at[:2]
    assert gap_ms <= second - first <= gap_ms + 1
