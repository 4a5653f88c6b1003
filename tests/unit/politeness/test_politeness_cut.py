"""A robots.txt that did not come whole, or that is found elsewhere."""

from __future__ import annotations

import pytest

from nephila.interfaces.politeness import RobotsRedirect
from nephila.model.exchange import FailureKind, Fetched, FetchFailed, Truncation
from nephila.model.outcome import OriginRules, RulesKind, RulesLearned
from nephila.model.settings import RobotsSettings
from nephila.model.task import RobotsTask
from nephila.politeness import judge_robots

ORIGIN = "https://a.test"
OWN = RobotsTask(ORIGIN, f"{ORIGIN}/robots.txt")
MOVED = RobotsTask(ORIGIN, "https://gone.test/robots.txt", hops=1)
GOOD = OriginRules(ORIGIN, RulesKind.RULES, b"User-agent: *\nDisallow: /\n", 1, 2)


def cut(why: Truncation) -> Fetched:
    body = b"User-agent: *\nDisal"
    return Fetched(OWN.url, b"", b"", body, 200, (), body, "127.0.0.1", 0, 0, 5, truncated=why)


@pytest.mark.parametrize("why", [Truncation.DISCONNECT, Truncation.TIME])
def test_a_cut_file_opens_nothing(why: Truncation) -> None:
    """P1: half a file may lack the very line that forbids; the last good rules stay, else nothing is fetched."""
    learned = judge_robots(OWN, cut(why), None, RobotsSettings(), 1000, 1000)
    assert isinstance(learned, RulesLearned)
    assert learned.rules.kind is RulesKind.UNAVAILABLE
    kept = judge_robots(OWN, cut(why), GOOD, RobotsSettings(), 1000, 1000)
    assert isinstance(kept, RulesLearned)
    assert kept.rules.body == GOOD.body


@pytest.mark.parametrize("why", [Truncation.DISCONNECT, Truncation.TIME])
@pytest.mark.parametrize("location", ["", "https://b.test/robots.txt"])
def test_a_redirect_that_lost_its_target_opens_nothing(why: Truncation, location: str) -> None:
    """P1: a header block that ends before its Location is a failure; one that has it is followed."""
    headers = (("location", location),) if location else ()
    moved = Fetched(OWN.url, b"", b"", b"", 301, headers, b"", "127.0.0.1", 0, 0, 5, truncated=why)
    learned = judge_robots(OWN, moved, None, RobotsSettings(), 1000, 1000)
    if location:
        assert isinstance(learned, RobotsRedirect)
        return
    assert isinstance(learned, RulesLearned)
    assert learned.rules.kind is RulesKind.UNAVAILABLE
    kept = judge_robots(OWN, moved, GOOD, RobotsSettings(), 1000, 1000)
    assert isinstance(kept, RulesLearned)
    assert kept.rules.body == GOOD.body


def test_a_file_over_the_cap_is_read_up_to_it() -> None:
    """P1: 500 KiB are read and count (RFC 9309, 2.5)."""
    learned = judge_robots(OWN, cut(Truncation.LENGTH), None, RobotsSettings(), 1000, 1000)
    assert isinstance(learned, RulesLearned)
    assert (learned.rules.kind, learned.rules.body) == (RulesKind.RULES, b"User-agent: *\n")


@pytest.mark.parametrize("kind", [FailureKind.NO_SUCH_NAME, FailureKind.ADDRESS])
def test_a_redirect_to_a_host_that_is_not_there_does_not_end_the_origin(kind: FailureKind) -> None:
    """P1, H6: only the redirect leads nowhere; the origin itself answers."""
    failed = FetchFailed(MOVED.url, kind, "nowhere", sent=False)
    learned = judge_robots(MOVED, failed, None, RobotsSettings(), 1000, 1000)
    assert isinstance(learned, RulesLearned)
    assert learned.rules.kind is RulesKind.UNAVAILABLE
    own = judge_robots(OWN, failed, None, RobotsSettings(), 1000, 1000)
    assert isinstance(own, RulesLearned)
    assert own.rules.kind is RulesKind.NO_HOST
