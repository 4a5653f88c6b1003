"""What a settled answer teaches, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from nephila.model.alias import AliasRule, Sighting
from nephila.model.exchange import Fetched, Truncation
from nephila.model.outcome import Done, Outcome, Retry
from nephila.model.page import Directives, Page
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Lease, Level, Pace, PageTask, Token
from nephila.pipeline.judgement import Judgement
from nephila.pipeline.learning import Learning
from nephila.pipeline.notfound import PROBE, SOFT_404
from nephila.testing.clock import VirtualClock
from nephila.urls import Fingerprint

URL = "http://a.example/x?s=1"
TASK = PageTask(Fingerprint(b"f" * 16), URL, 1, Level.MEDIUM)
LEASE = Lease(Token(1), "a.example", "a.example", (TASK,), 0, 0, Pace(0))
ANSWER = Fetched(URL, b"", b"", b"", 200, (), b"", "127.0.0.1", 0, 1, 1)
DONE = Done(RecordRef(SegmentId("s"), 0, 1, 1), 200)
PAGE = Page(URL, URL, "utf-8", "", (), Directives())


@dataclass
class Listener:
    """Aliases that only listen."""

    seen: list[Sighting] = field(default_factory=list)

    def observe(self, seen: Sighting) -> None:
        self.seen.append(seen)

    def rules(self, domain: str = "") -> list[AliasRule]:
        raise NotImplementedError(domain)


def heard(judged: Judgement, outcome: Outcome = DONE, answer: Fetched = ANSWER) -> list[Sighting]:
    aliases = Listener()
    learning = Learning(aliases, None, VirtualClock())  # type: ignore[arg-type]  # nothing else is asked of them
    learning.learn(LEASE, TASK, answer, judged, outcome)
    return aliases.seen


def judgement(**more: object) -> Judgement:
    return replace(Judgement(lambda _: DONE), **more)  # type: ignore[arg-type]


def test_a_page_is_seen_as_a_page() -> None:
    """D4: with its host and domain."""
    (seen,) = heard(judgement(page=PAGE))
    assert (seen.url, seen.host, seen.domain, seen.page) == (URL, "a.example", "a.example", PAGE)


def test_what_is_no_page_is_seen_as_something_else() -> None:
    """D4, T4: another type, errors, and pages that stand for missing ones."""
    picture = replace(ANSWER, unwanted=True, truncated=Truncation.UNSPECIFIED)
    (seen,) = heard(judgement(), replace(DONE, page=False), picture)
    assert seen.page is None
    (seen,) = heard(judgement(page=PAGE, error=SOFT_404), replace(DONE, status=404, page=False))
    assert seen.page is None


@pytest.mark.parametrize(
    ("judged", "outcome", "answer"),
    [
        (judgement(page=PAGE), Retry(1, "reset"), ANSWER),
        (judgement(not_modified=True), DONE, ANSWER),
        (judgement(page=PAGE), DONE, replace(ANSWER, truncated=Truncation.LENGTH)),
        (judgement(page=PAGE, error=PROBE), DONE, ANSWER),
    ],
    ids=["to be tried again", "not modified", "cut", "a probe"],
)
def test_what_is_not_final_or_not_whole_teaches_nothing(judged: Judgement, outcome: Outcome, answer: Fetched) -> None:
    """D4: half a page would speak against every rule."""
    assert heard(judged, outcome, answer) == []


@pytest.mark.parametrize(
    ("location", "seen"),
    [
        ("http://a.example/y", "http://a.example/y"),
        ("http://[bad", ""),
        ("javascript:1", "javascript:1"),
        ("http://", ""),
    ],
)
def test_a_location_that_leads_nowhere_is_not_handed_on(location: str, seen: str) -> None:
    """Q5: whatever a server writes there."""
    (sighting,) = heard(judgement(location=location), replace(DONE, status=302, page=False))
    assert sighting.location == seen
