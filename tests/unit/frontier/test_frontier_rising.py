"""Which queued URLs get a better place when they are met again: in C what it is in Python."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_128_digest

from nephila.frontier.embedded.arrivals import FIELDS, Ledger
from nephila.frontier.embedded.links import Met, Writes
from nephila.frontier.embedded.records import HostState
from nephila.frontier.embedded.rising import Move, bettered, plain_rise
from nephila.model.task import Candidate, Level
from nephila.native import native
from nephila.urls import Address, Fingerprint

KEYS = tuple(bytes((number,)) * 12 for number in range(3))
EVEN = tuple((rank << 32) + (1 << 31) for rank in range(4))
"""Every other link raises the rank, as its spelling has it."""

standings = st.builds(
    lambda lane, step, depth: bytes((lane, 0, 0, step, depth)), st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)
)
marks = st.builds(
    lambda first, standing, rank, more: bytes((first,)) + standing + b"tie!" + bytes((rank,)) + more,
    st.sampled_from((0, 0, 0, 0, 0, 1, 0x9E)),
    standings,
    st.integers(0, 3),
    st.sampled_from((b"", b"", b"", b"x")),
)


@st.composite
def cases(draw: st.DrawFn) -> Met:
    url = f"https://a.test/{draw(st.sampled_from(('', 'a', 'b/c', 'ü')))}"
    fingerprint = Fingerprint(xxh3_128_digest(url.encode()))
    level = draw(st.sampled_from((None, None, None, None, Level.LOW)))
    candidate = Candidate(Address(url, "a.test", url, fingerprint), draw(st.integers(0, 2)), level, 0, 0)
    return draw(st.sampled_from(KEYS)) + b"\1" + fingerprint[:8], draw(marks), candidate


def host(referrers: int) -> HostState:
    state = HostState("a.test", [0] * 7)
    state.referrers = referrers
    return state


@given(st.lists(cases(), max_size=8), st.data())
def test_urls_rise_alike(again: list[Met], data: st.DataObject) -> None:
    """R1, F8: the same URLs move to the same places, the same ranks are written, the same is left for a closer look."""
    tokens = {key: data.draw(st.sampled_from((0, 5, 5, 6))) for key in KEYS[: data.draw(st.integers(1, 3))]}
    states = {key: host(data.draw(st.integers(0, 3))) for key in KEYS[: data.draw(st.integers(1, 3))]}
    waiting = {KEYS[2]: 1} if data.draw(st.booleans()) else {}
    known = {
        (rank, depth, 0, bits): data.draw(standings) for rank in range(4) for depth in range(3) for bits in range(2)
    }
    ledger = Ledger(states, waiting, tokens, known, _none, _none, FIELDS, 0, 0, 0, 0, 0, 0)
    covered = {5: [one.address.fingerprint for _, _, one in again if one.depth]}
    own = data.draw(st.sampled_from((b"", KEYS[0][:6])))
    inside, abroad = data.draw(st.sampled_from(((EVEN, None), (None, EVEN), (EVEN, EVEN))))
    salt = data.draw(st.integers(0, 2**32 - 1))
    plain_writes: Writes = []
    native_writes: Writes = []
    expected = plain_rise(again, ledger, covered, own, inside, abroad, salt, plain_writes)
    found = native.rise(again, ledger, covered, own, inside, abroad, salt, native_writes)
    assert found == expected
    assert native_writes == plain_writes
    for move in expected[0]:
        assert_is_better(move)


def assert_is_better(move: Move) -> None:
    _, raw, _, _, better, _, _ = move
    assert better[0] <= raw[1]
    assert better[1:4] <= raw[2:5]


@given(standings, standings)
def test_of_two_standings_the_better_lane_and_the_better_step_count(fresh: bytes, place: bytes) -> None:
    """R1: neither is given up for the other."""
    assert bettered(fresh, place + b"tie!") == bytes((min(fresh[0], place[0]), 0, 0, min(fresh[3], place[3]), fresh[4]))


def _none(*_: object) -> HostState:
    raise AssertionError("nothing is looked for")
