"""How long a host rests."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.exchange import FailureKind, Fetched, FetchFailed
from nephila.model.settings import PolitenessSettings
from nephila.model.task import Pace
from nephila.politeness import (
    Observation,
    first_pace,
    next_pace,
    observe,
    parks,
    retry_after_ms,
    wait_ms,
    with_crawl_delay,
)
from nephila.politeness.pace import heavy_ms

STANDARD = PolitenessSettings()
AT_ONCE = PolitenessSettings(delay_s=0)
WALL = 1_800_000_000_000


def delays(start_ms: int, seen: Observation, times: int, polite: PolitenessSettings = STANDARD) -> list[int]:
    pace, found = Pace(start_ms), []
    for _ in range(times):
        pace = next_pace(pace, seen, polite)
        found.append(pace.delay_ms)
    return found


def test_slow_answers_lengthen_the_delay() -> None:
    """P3: over 2 s, x1.5 up to 30 s."""
    assert delays(1000, Observation(2001, 200), 10) == [
        *(1500, 2250, 3375, 5062, 7593, 11390, 17085, 25628, 30000, 30000),
    ]
    assert delays(1000, Observation(2000, 200), 2) == [1000, 1000]


@pytest.mark.parametrize("kind", [FailureKind.TIMEOUT, FailureKind.RESET, FailureKind.CONNECT])
def test_no_answer_counts_as_a_slow_one(kind: FailureKind) -> None:
    """P3: however soon it failed."""
    assert delays(1000, Observation(10, failure=kind), 2) == [1500, 2250]


@pytest.mark.parametrize("kind", [FailureKind.DNS, FailureKind.TLS, FailureKind.ADDRESS, FailureKind.BAD_CONTENT])
def test_failures_that_say_nothing_of_the_hosts_load_change_nothing(kind: FailureKind) -> None:
    """P3: neither slower nor faster."""
    assert delays(4000, Observation(10, failure=kind), 2) == [4000, 4000]


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_half_as_often(status: int) -> None:
    """P3: x2 up to 60 s, however fast it said so."""
    assert delays(1000, Observation(10, status), 7) == [2000, 4000, 8000, 16000, 32000, 60000, 60000]


def test_under_a_base_delay_of_nothing_only_a_busy_server_brings_a_delay() -> None:
    """P3: 429 must still slow us."""
    assert delays(0, Observation(10, 429), 3, AT_ONCE) == [1000, 2000, 4000]
    assert delays(0, Observation(5000, 200), 2, AT_ONCE) == [0, 0]
    assert delays(1000, Observation(10, 200), 40, AT_ONCE)[-1] == 0


def test_fast_answers_shorten_the_delay_towards_the_base() -> None:
    """P3: under 500 ms, x0.8; a 404 is an answer too."""
    assert delays(2000, Observation(499, 200), 5) == [1600, 1280, 1024, 1000, 1000]
    assert delays(2000, Observation(499, 404), 1) == [1600]
    assert delays(2000, Observation(500, 200), 1) == [2000]


@pytest.mark.parametrize("status", [500, 502, 504, 599])
def test_a_server_error_counts_as_a_slow_answer(status: int) -> None:
    """P3: however fast it came."""
    assert delays(1000, Observation(10, status), 2) == [1500, 2250]


def test_a_wave_of_403_slows_and_single_ones_do_not() -> None:
    """P3: each x1.25 up to 30 s; a fast answer after each undoes it."""
    wave = delays(1000, Observation(10, 403), 20)
    assert wave[:4] == [1250, 1562, 1952, 2440]
    assert wave[-1] == 30_000
    pace = Pace(1000)
    for _ in range(50):
        pace = next_pace(next_pace(pace, Observation(10, 403), STANDARD), Observation(10, 200), STANDARD)
    assert pace.delay_ms == 1000
    assert delays(0, Observation(10, 403), 5, AT_ONCE) == [0] * 5


def answers(most_ms: int, *statuses: int) -> st.SearchStrategy[Observation]:
    return st.builds(Observation, st.integers(0, most_ms), st.sampled_from(statuses), st.none())


GOOD = answers(499, 200, 204, 301, 304, 404, 410)
ANY_ANSWER = answers(40_000, 200, 301, 304, 404)
ERROR = st.one_of(
    answers(40_000, 403, 429, 500, 502, 503, 504),
    st.builds(Observation, st.integers(0, 40_000), st.just(0), st.sampled_from(list(FailureKind))),
)
STEP = st.one_of(
    ANY_ANSWER.map(lambda seen: (seen, seen, False)), st.tuples(ERROR, GOOD).map(lambda pair: (*pair, True))
)


@given(st.lists(STEP, max_size=60), st.integers(0, 70_000), st.sampled_from([0.0, 0.05, 1.0, 5.0]))
@settings(max_examples=400, deadline=None)
def test_errors_never_lead_to_a_shorter_gap(
    steps: list[tuple[Observation, Observation, bool]], start_ms: int, base_s: float
) -> None:
    """P3, P4: at no point of any history is the gap shorter than with good answers in the place of the errors.

    Nor is it shorter than if the requests that met errors had not been made at all.
    """
    polite = PolitenessSettings(delay_s=base_s)
    met = spared = without = Pace(start_ms)
    for seen, instead, is_error in steps:
        before = met
        met, spared = next_pace(met, seen, polite), next_pace(spared, instead, polite)
        without = without if is_error else next_pace(without, seen, polite)
        assert wait_ms(met, polite) >= wait_ms(spared, polite)
        assert wait_ms(met, polite) >= wait_ms(without, polite)
        if is_error:
            assert wait_ms(met, polite) >= wait_ms(before, polite)


def test_a_ceiling_lowers_nothing() -> None:
    """P3: a base delay over the ceilings stays."""
    patient = PolitenessSettings(delay_s=100)
    for seen in (Observation(9000, 200), Observation(10, 503), Observation(10, 200)):
        assert next_pace(first_pace(patient), seen, patient).delay_ms == 100_000


def test_what_an_exchange_showed() -> None:
    """P3: from answers and failures alike."""
    fetched = Fetched("http://h/", b"", b"", b"", 503, (), b"", "192.0.2.1", 0, 0, 12)
    assert observe(fetched) == Observation(12, 503)
    refused = FetchFailed("http://h/", FailureKind.RESET, "", sent=True, elapsed_ms=7)
    assert observe(refused) == Observation(7, 0, FailureKind.RESET)


def test_crawl_delay_binds_when_it_is_longer() -> None:
    """P1, P2: and only then."""
    pace = with_crawl_delay(Pace(2000), 5)
    assert wait_ms(pace, STANDARD) == 5000
    assert wait_ms(with_crawl_delay(pace, 0.5), STANDARD) == 2000
    assert with_crawl_delay(pace, None) == Pace(2000)
    assert next_pace(pace, Observation(10, 503), STANDARD) == Pace(4000, 5000)


def test_a_very_long_crawl_delay_parks_the_host() -> None:
    """P2: over 300 s."""
    assert not parks(with_crawl_delay(Pace(1000), 300), STANDARD)
    assert parks(with_crawl_delay(Pace(1000), 300.5), STANDARD)


def test_retry_after_is_obeyed_and_capped() -> None:
    """P3: it may lengthen the wait, never shorten it."""
    assert wait_ms(Pace(2000), STANDARD, 120_000) == 120_000
    assert wait_ms(Pace(2000), STANDARD, 500) == 2000
    assert wait_ms(Pace(2000), STANDARD, 10**15) == 86_400_000


@pytest.mark.parametrize(
    ("value", "wanted_ms"),
    [
        ("120", 120_000),
        (" 0 ", 0),
        ("9" * 5000, 10**12),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60_000),
        ("Fri, 15 Jan 2027 08:01:00", 60_000),
        ("Friday, 15-Jan-27 08:01:00 GMT", 60_000),
        ("Fri Jan 15 08:01:00 2027", 60_000),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", 1500),
        ("1,5", 1500),
        ("0.0001", 1),
        (f"{'9' * 5000}.5", 10**12),
        ("2027-01-15T08:01:00Z", 60_000),
        ("2027-01-15 10:01:00+02:00", 60_000),
        ("2027-01-15 08:01:00.5", 60_500),
        ("Fri, 15 Jan 10000 08:01:00 GMT", 10**12),
        ("1.", None),
        (".5", None),
        ("1.5.2", None),
        ("٣", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str, wanted_ms: int | None) -> None:
    """P3: RFC 9110, 10.2.3, in all three forms of dates, and as servers write them; nonsense asks for nothing."""
    assert retry_after_ms(value, WALL) == wanted_ms


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_retry_after_can_be_read(value: str) -> None:
    """P3, Q5: no header raises or asks for the past."""
    found = retry_after_ms(value, WALL)
    assert found is None or found >= 0


OBSERVATIONS = st.builds(
    Observation,
    st.integers(0, 60_000),
    st.sampled_from([0, 200, 301, 404, 429, 500, 503]),
    st.sampled_from([None, *FailureKind]),
)


@given(st.lists(OBSERVATIONS, max_size=60), st.floats(0, 120))
@settings(max_examples=200, deadline=None)
def test_the_delay_stays_within_its_bounds(history: list[Observation], base_s: float) -> None:
    """P2, P3: never under the base delay, never over the ceilings unless the base is."""
    polite = PolitenessSettings(delay_s=base_s)
    pace = first_pace(polite)
    base_ms = pace.delay_ms
    for seen in history:
        pace = next_pace(pace, seen, polite)
        assert base_ms <= pace.delay_ms <= max(base_ms, 60_000)
        assert wait_ms(pace, polite) >= base_ms
    for _ in range(60):
        pace = next_pace(pace, Observation(1, 200), polite)
    assert pace.delay_ms == base_ms


# The base delay of a policy


def test_a_raised_base_binds_at_once() -> None:
    """R4, P2: before the next answer, and after it."""
    raised = Pace(1000, base_ms=5000)
    assert wait_ms(raised, STANDARD) == 5000
    assert next_pace(raised, Observation(10, 200), STANDARD) == Pace(5000, base_ms=5000)
    assert next_pace(raised, Observation(10, 503), STANDARD).delay_ms == 10_000


def test_under_a_lowered_base_the_delay_comes_down_with_fast_answers() -> None:
    """R4, P3: towards the new base, not under it; 0 is a base like any other."""
    pace, found = Pace(1000, base_ms=500), []
    for _ in range(5):
        pace = next_pace(pace, Observation(10, 200), STANDARD)
        found.append((pace.delay_ms, wait_ms(pace, STANDARD)))
    assert found == [(800, 800), (640, 640), (512, 512), (500, 500), (500, 500)]
    free = Pace(0, base_ms=0)
    assert (wait_ms(free, STANDARD), next_pace(free, Observation(10, 200), STANDARD).delay_ms) == (0, 0)


@given(
    delay=st.integers(0, 90_000),
    base=st.integers(-1, 20_000),
    seen=st.builds(Observation, st.integers(0, 40_000), st.sampled_from([0, 200, 304, 404, 429, 500, 503])),
)
def test_the_delay_is_never_under_the_base_in_force(delay: int, base: int, seen: Observation) -> None:
    """R4, P2: the policy's where there is one, the settings' otherwise."""
    after = next_pace(Pace(delay, base_ms=base), seen, STANDARD)
    least = base if base >= 0 else 1000
    assert after.base_ms == base
    assert after.delay_ms >= least
    assert wait_ms(Pace(delay, base_ms=base), STANDARD) >= least


@pytest.mark.parametrize(
    ("body", "rules", "rest_ms"),
    [(0, 0, 0), (1_000_000, 100_000, 0), (2_000_000, 0, 1_000), (20_000_000, 0, 19_000), (30_000, 512_000, 2_060)],
)
def test_a_host_that_costs_much_to_read_rests_longer(body: int, rules: int, rest_ms: int) -> None:
    """Q5: by the size of its unpacked answer and of its robots.txt, which a server decides, not by the time of day."""
    assert heavy_ms(body, rules, STANDARD) == rest_ms
    assert heavy_ms(body, rules, PolitenessSettings(heavy_s=0)) == 0
