"""Figures added up row by row."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.interfaces.catalogue import CaptureFigures, ErrorFigures
from nephila.report import Gathering
from nephila.report.gathering import HOSTS, STEPS, TYPES, Measures, Steps

NOON = 1_700_000_000_000
PAGE = CaptureFigures(NOON, 200, False, "text/html; charset=utf-8", 5000, 2000, 40, 1, False, False, False, True, True)


def gathered(*rows: CaptureFigures) -> Gathering:
    gathering = Gathering()
    gathering.captures(rows)
    return gathering


def test_answers_are_told_from_pages_and_rules() -> None:
    """O3: a robots.txt is neither; a redirect, an error and a body that was not read are answers."""
    found = gathered(
        PAGE,
        PAGE._replace(status=404),
        PAGE._replace(status=302),
        PAGE._replace(robots=True),
        PAGE._replace(whole=False, changed=False),
        PAGE._replace(status=304, whole=False, changed=False),
    )
    assert (found.pages, found.answers, found.robots, found.bytes) == (2, 5, 1, 12_000)
    assert found.statuses == {200: 2, 404: 1, 302: 1, 304: 1}
    assert found.repetition().unchanged == 1
    assert found.ended_at == NOON + 40


def test_what_brought_nothing_new_is_counted_by_how() -> None:
    """O3, D2, D3: exact, near, unchanged."""
    again = gathered(
        PAGE._replace(duplicate=True), PAGE._replace(near=True), PAGE._replace(near=True), PAGE._replace(changed=False)
    ).repetition()
    assert (again.exact, again.near, again.unchanged) == (1, 2, 1)


def test_types_are_told_without_their_parameters_and_bounded() -> None:
    """O3: servers make types up; what is one too many is summed up."""
    found = gathered(PAGE, PAGE._replace(content_type="TEXT/html"), PAGE._replace(content_type=""))
    assert found.types == {"text/html": 2, "none told": 1}
    assert gathered(PAGE, PAGE._replace(content_type="text/html, text/html; charset=utf-8")).types == {"text/html": 2}
    found.captures(PAGE._replace(content_type=f"x/{number}") for number in range(TYPES + 50))
    assert len(found.types) == TYPES + 1
    assert found.types["other"] == 52


def test_errors_are_counted_by_kind_and_host() -> None:
    """O3: the worst host first."""
    found = Gathering()
    found.failures(
        ErrorFigures(NOON + place, kind, host)
        for place, (kind, host) in enumerate([("timeout", "a.test"), ("reset", "b.test"), ("timeout", "b.test")])
    )
    assert found.errors == {"timeout": 2, "reset": 1}
    worst, other = found.error_hosts()
    assert (worst.host, worst.errors, worst.kinds) == ("b.test", 2, {"reset": 1, "timeout": 1})
    assert other.host == "a.test"
    assert sum(moment.errors for moment in found.timeline().moments) == 3


def test_hosts_with_errors_do_not_fill_the_memory() -> None:
    """O3, Q3: of more hosts than are counted, those with few errors go first."""
    found = Gathering()
    found.failures(ErrorFigures(NOON, "timeout", "bad.test") for _ in range(5))
    found.failures(ErrorFigures(NOON, "timeout", f"{number}.test") for number in range(HOSTS + 10))
    assert found.error_hosts()[0].host == "bad.test"
    assert found.errors["timeout"] == HOSTS + 15


@given(st.lists(st.integers(0, 40 * 86_400_000), min_size=1, max_size=60))
def test_a_timeline_has_a_bounded_number_of_steps_and_loses_nothing(instants: list[int]) -> None:
    """O3: in whatever order, over seconds or over weeks."""
    steps = Steps()
    for at in instants:
        steps.add(NOON + at, 1, 1, 0, 7)
    timeline = steps.timeline()
    assert 1 <= len(timeline.moments) <= STEPS
    assert sum(moment.pages for moment in timeline.moments) == len(instants)
    assert timeline.begun_at <= NOON + min(instants)
    assert timeline.begun_at + timeline.step_ms * len(timeline.moments) > NOON + max(instants)
    for at in instants:
        assert timeline.moments[(NOON + at - timeline.begun_at) // timeline.step_ms].pages


def test_percentiles_are_within_an_eighth() -> None:
    """O3: without keeping the figures themselves."""
    draw = random.Random(4)
    figures = sorted(int(draw.lognormvariate(8, 2)) for _ in range(5000))
    measures = Measures()
    for figure in figures:
        measures.add(figure)
    spread = measures.spread()
    for told, share in ((spread.median, 0.5), (spread.ninth, 0.9), (spread.ninety_ninth, 0.99)):
        true = figures[int(share * len(figures)) - 1]
        assert true * 7 / 8 - 1 <= told <= true
    assert (spread.most, spread.total, spread.count) == (figures[-1], sum(figures), 5000)
    assert spread.counts[10] == sum(512 <= figure < 1024 for figure in figures)


@pytest.mark.parametrize("figure", [*range(40), 255, 256, 1_000_000, (1 << 40) + 5])
def test_small_figures_are_exact(figure: int) -> None:
    """O3: and large ones are told by the least of their part."""
    measures = Measures()
    measures.add(figure)
    told = measures.spread().median
    assert told <= figure < max(told + 1, told * 9 / 8)
    assert figure >= 16 or told == figure


def test_nothing_is_a_report_too() -> None:
    """O3: before the first answer."""
    found = Gathering()
    assert found.timeline().moments == ()
    assert found.sizes().count == found.latencies().median == 0
    assert found.error_hosts() == ()
