"""When a domain is paused, when its class drops, and how it recovers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier.health import MOST_LOWERED, Health, Seen, after
from nephila.model.settings import PolitenessSettings

STANDARD = PolitenessSettings()
OK, ERROR, SERVER_ERROR = Seen.OK, Seen.ERROR, Seen.SERVER_ERROR

seen = st.sampled_from(Seen)
limits = st.builds(
    PolitenessSettings,
    pause_window=st.integers(10, 60),
    pause_share=st.integers(0, 100).map(lambda percent: percent / 100),
    demote_after=st.integers(1, 8),
)


def lived(
    answers: Iterable[Seen], wanted: PolitenessSettings = STANDARD, health: Health | None = None
) -> tuple[Health, int]:
    """The health after these answers, and how many pauses there were."""
    health, pauses = health or Health(), 0
    for answer in answers:
        health, pause = after(health, answer, wanted)
        pauses += pause
    return health, pauses


@settings(max_examples=300, deadline=None)
@given(limits, st.lists(seen, max_size=200))
def test_a_domain_is_paused_exactly_when_too_many_of_the_last_requests_failed(
    wanted: PolitenessSettings, answers: list[Seen]
) -> None:
    """P4: against a plain list of the last requests since the last pause, in whole percent."""
    last: deque[bool] = deque(maxlen=wanted.pause_window)
    health = Health()
    percent = round(wanted.pause_share * 100)
    for answer in answers:
        last.append(answer is not OK)
        health, pause = after(health, answer, wanted)
        assert pause == (sum(last) * 100 > percent * wanted.pause_window)
        if pause:
            last.clear()
        assert health.errors == sum(last)


@pytest.mark.parametrize("error", [ERROR, SERVER_ERROR])
def test_half_of_the_last_100_is_borne_and_one_more_is_not(error: Seen) -> None:
    """P4: more than half, of 100, however they lie."""
    assert lived([OK, error] * 500)[1] == 0
    assert lived([error] * 50)[1] == 0
    assert lived([error] * 51)[1] == 1
    assert lived([error] * 50 + [OK] * 50 + [error] * 50)[1] == 0
    assert lived([OK] * 1000 + [error] * 51)[1] == 1


def test_after_a_pause_a_domain_is_judged_anew() -> None:
    """P4: the next pause needs as many errors again."""
    health, pauses = lived([ERROR] * 51)
    assert (health.window, pauses) == (b"", 1)
    assert lived([ERROR] * 50, health=health)[1] == 0
    assert lived([ERROR] * 153)[1] == 3


def test_errors_are_forgotten_after_100_requests() -> None:
    """P4: the last 100, not all there ever were."""
    health, _ = lived([ERROR] * 50)
    assert health.errors == 50
    assert lived([OK] * 100, health=health)[0] == Health()


def test_answers_of_5xx_in_a_row_drop_the_class_twice_at_most() -> None:
    """P4: one level after five, another after five more."""
    found = [lived([SERVER_ERROR] * row)[0].lowered for row in range(1, 21)]
    assert found == [*[0] * 4, *[1] * 5, *[2] * 11]


def test_only_5xx_in_a_row_drop_the_class() -> None:
    """P4: timeouts do not, and neither end such a row; a success does."""
    assert lived([ERROR] * 50)[0].lowered == 0
    assert lived([SERVER_ERROR, ERROR] * 5)[0].lowered == 1
    assert lived(([SERVER_ERROR] * 4 + [OK]) * 10)[0].lowered == 0


def test_the_class_recovers_with_successes() -> None:
    """P4: five in a row for a level; an error in between begins the row anew."""
    health, _ = lived([SERVER_ERROR] * 10)
    assert [lived([OK] * row, health=health)[0].lowered for row in range(12)] == [*[2] * 5, *[1] * 5, 0, 0]
    for error in (ERROR, SERVER_ERROR):
        assert lived([*[OK] * 4, error, *[OK] * 4], health=health)[0].lowered == 2
        assert lived([*[OK] * 4, error, *[OK] * 5], health=health)[0].lowered == 1


@settings(max_examples=300, deadline=None)
@given(limits, st.lists(seen, max_size=100))
def test_every_domain_recovers_whole(wanted: PolitenessSettings, answers: list[Seen]) -> None:
    """P4: after a window of successes nothing is left, and on the way there is no pause."""
    health, _ = lived(answers, wanted)
    assert 0 <= health.lowered <= MOST_LOWERED
    healed, pauses = lived([OK] * max(wanted.pause_window, MOST_LOWERED * wanted.demote_after), wanted, health)
    assert (healed, pauses) == (Health(), 0)


@settings(max_examples=200, deadline=None)
@given(limits, st.lists(seen, max_size=100))
def test_health_is_small_and_survives_being_stored(wanted: PolitenessSettings, answers: list[Seen]) -> None:
    """P4, F10: it holds across restarts, in a byte for eight requests."""
    health, _ = lived(answers, wanted)
    packed = msgspec.msgpack.encode(health)
    assert msgspec.msgpack.decode(packed, type=Health) == health
    assert len(packed) <= 6 + (wanted.pause_window + 7) // 8


def test_a_domain_in_good_health_costs_nothing() -> None:
    """P4: the usual case hands back the very same health, six bytes when stored."""
    health = Health()
    assert after(health, OK, STANDARD)[0] is health
    assert len(msgspec.msgpack.encode(health)) == 6


def test_a_smaller_window_holds_from_the_next_request_on() -> None:
    """P4: settings may change between two runs of a crawl."""
    health, _ = lived([ERROR] * 40 + [OK] * 20)
    narrow = PolitenessSettings(pause_window=30)
    changed, pause = after(health, OK, narrow)
    assert (changed.errors, pause) == (9, False)
