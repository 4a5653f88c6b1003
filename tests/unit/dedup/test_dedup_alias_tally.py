"""When a rule about aliases is believed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nephila.dedup.alias_storage import TALLIES, applied
from nephila.dedup.alias_tally import AliasTally, Evidence, Subject, after, fresh, redone, undone
from nephila.model.alias import EVERYWHERE, AliasKind, AliasState

PARAMETER = Subject(AliasKind.PARAMETER, "/item/{n}", "ref")
ANYWHERE = PARAMETER._replace(scope=EVERYWHERE)
HOST = Subject(AliasKind.HOST, "http://old.example", "", "https://new.example")
VOTES = 5


def agreement(number: int, subject: Subject = PARAMETER, **more: bool) -> Evidence:
    content = number.to_bytes(8, "big")
    return Evidence(subject, True, number, (f"http://a.example/{number}", "b"), content, **{"place": True, **more})


def contradiction(at_s: int, subject: Subject = PARAMETER) -> Evidence:
    return Evidence(subject, False, at_s, ("one", "other"))


def told(*evidence: Evidence) -> AliasTally:
    tally = fresh(evidence[0].subject, 0)
    for one in evidence:
        tally = after(tally, one, VOTES)
    return tally


def test_it_takes_enough_agreements_over_enough_pages() -> None:
    """D4: five in a row over three pages; then it is tried, and in force once two stand-ins were seen."""
    assert told(*(agreement(n) for n in range(4))).state == AliasState.WATCHED
    assert told(*(agreement(n) for n in range(5))).state == AliasState.TRIED
    assert told(*(agreement(n // 3) for n in range(6))).state == AliasState.WATCHED, "two pages"
    stand_ins = (agreement(n, stand_in=n > 3) for n in range(6))
    assert told(*stand_ins).state == AliasState.IN_FORCE


def test_the_same_content_on_every_page_counts_as_one_page() -> None:
    """T3: an application's shell, or an error page."""
    alike = [agreement(n)._replace(content=b"shell...") for n in range(100)]
    assert told(*alike).places == 1
    assert told(*alike).state == AliasState.WATCHED


def test_everywhere_needs_several_shapes_of_paths() -> None:
    """T3: a parameter that means nothing in one part of a site may mean all in another."""
    one = [agreement(n, ANYWHERE, stand_in=True, shape=n == 0) for n in range(100)]
    three = [agreement(n, ANYWHERE, stand_in=True, shape=n < 3) for n in range(100)]
    assert told(*one).state == AliasState.WATCHED
    assert told(*three).state == AliasState.IN_FORCE


def test_a_host_is_in_force_at_once() -> None:
    """D4: what it is replaced by is where it led itself."""
    assert told(*(agreement(n, HOST) for n in range(5))).state == AliasState.IN_FORCE


def test_a_contradiction_suspends_and_doubles_what_is_asked_for() -> None:
    """D4: and the share of contradictions must be small all the same."""
    tally = told(*(agreement(n, HOST) for n in range(200)), contradiction(200, HOST))
    assert (tally.state, tally.run, tally.since_s) == (AliasState.SUSPENDED, 0, 200)
    for number in range(9):
        tally = after(tally, agreement(300 + number, HOST), VOTES)
    assert tally.state == AliasState.SUSPENDED
    assert after(tally, agreement(400, HOST), VOTES).state == AliasState.IN_FORCE
    early = told(*(agreement(n, HOST) for n in range(5)), contradiction(5, HOST), *(agreement(n) for n in range(6, 30)))
    assert early.state == AliasState.SUSPENDED, "one in thirty is too much"


def test_undone_stays_undone_until_it_is_redone() -> None:
    """D4: whatever is seen meanwhile counts later."""
    tally = undone(told(*(agreement(n, HOST) for n in range(5))), 10)
    for number in range(50):
        tally = after(tally, agreement(number, HOST), VOTES)
    assert (tally.state, tally.agreed) == (AliasState.UNDONE, 55)
    assert redone(tally, 99, VOTES).state == AliasState.IN_FORCE
    assert redone(undone(told(agreement(1)), 5), 6, VOTES).state == AliasState.WATCHED


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.booleans(), st.booleans()), max_size=300))
def test_a_rule_in_force_has_the_evidence_for_it(steps: list[tuple[bool, int, bool, bool]]) -> None:
    """D4: whatever the order of evidence; and right after a contradiction nothing is in force."""
    tally = fresh(PARAMETER, 0)
    for at_s, (agrees, page, place, stand_in) in enumerate(steps):
        one = agreement(page, place=place, stand_in=stand_in) if agrees else contradiction(at_s)
        tally = after(tally, one, VOTES)
        if tally.state == AliasState.IN_FORCE:
            assert agrees
            assert tally.run >= VOTES << min(tally.against, 5)
            assert tally.places >= 3
            assert tally.stand_ins >= 2
            assert tally.against <= 0.02 * (tally.agreed + tally.against)


def test_a_domain_keeps_what_is_acted_on_when_it_has_too_many_tallies() -> None:
    """D4, F8: a site that mints names drives out its own."""
    strong = applied({}, [agreement(n, stand_in=True) for n in range(6)], VOTES)
    minted = [agreement(n, PARAMETER._replace(name=f"p{n}")) for n in range(3 * TALLIES)]
    tallies = strong
    for one in minted:
        tallies = applied(tallies, [one], VOTES)
        assert len(tallies) <= TALLIES
    assert tallies[PARAMETER].state == AliasState.IN_FORCE
    assert minted[-1].subject in tallies
