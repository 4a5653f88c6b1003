"""R1, F5, N1: what a worker need not tell a fleet's engine again, and what it must."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.frontier.redis import told as telling
from nephila.frontier.redis.told import ONE_IN, Era, Sifted, Told
from nephila.model.task import Candidate, Level
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())
HOME, BIT, OTHER_BIT = "www.home.test", 3, 44


def link(number: int, host: str = HOME, depth: int = 1, level: Level | None = None) -> Candidate:
    address = IDENTIFIER.identify(f"https://{host}/page-{number}")
    assert isinstance(address, Address)
    return Candidate(address, depth, level)


def tells(sifted: Sifted, one: Candidate) -> bool:
    return one in sifted.fresh or one in sifted.again


def quiet_page(memory: Told, links: Sequence[Candidate], host: str = HOME, bit: int = BIT) -> Sifted:
    """Sift the links of a page that does not tell again what was told."""
    for number in range(1000):
        sifted = memory.sift(f"https://{host}/from-{number}", 0, host, bit, links)
        if not sifted.again:
            return sifted
    raise AssertionError("every page tells everything")


def test_what_was_told_is_left_out_and_what_is_new_is_not() -> None:
    """R1, D1: only what the engine has taken is remembered."""
    memory, links = Told(), [link(number) for number in range(40)]
    assert quiet_page(memory, links) == Sifted(links, (), 0)
    assert quiet_page(memory, links).left_out == 0  # it was never said that the engine has taken them
    memory.note(HOME, BIT, links[:30])
    sifted = quiet_page(memory, links)
    assert (sifted.fresh, sifted.left_out) == (links[30:], 30)


def test_one_page_in_eight_tells_everything() -> None:
    """R1: by chance, which is the same when the same page is settled again, and another at its next visit."""
    memory, links = Told(), [link(number) for number in range(5)]
    memory.note(HOME, BIT, links)
    pages = [memory.sift(f"https://{HOME}/{number}", 0, HOME, BIT, links) for number in range(8_000)]
    telling_pages = [one for one in pages if one.again]
    assert all(list(one.again) == links and not one.left_out for one in telling_pages)
    assert 8_000 / ONE_IN * 0.9 < len(telling_pages) < 8_000 / ONE_IN * 1.1
    assert [bool(memory.sift(f"https://{HOME}/{number}", 0, HOME, BIT, links).again) for number in range(8_000)] == [
        bool(one.again) for one in pages
    ]
    visits = [bool(memory.sift(f"https://{HOME}/1", visit, HOME, BIT, links).again) for visit in range(200)]
    assert True in visits
    assert False in visits


def test_what_brings_more_than_rank_is_told() -> None:
    """R1, F1, F5: a nearer link, one that asks for a class, the first one from a domain, and one from the deep."""
    memory, abroad = Told(), link(1, "www.abroad.test")
    known = [link(2, depth=4), abroad, link(3, depth=20)]
    memory.note(HOME, BIT, known)
    assert tells(quiet_page(memory, [link(2, depth=3)]), link(2, depth=3))
    assert not tells(quiet_page(memory, [link(2, depth=4)]), link(2, depth=4))
    assert not tells(quiet_page(memory, [link(2, depth=9)]), link(2, depth=9))
    classed = link(2, depth=9, level=Level.IMMEDIATE)
    assert tells(quiet_page(memory, [classed]), classed)
    assert tells(quiet_page(memory, [link(3, depth=20)]), link(3, depth=20))
    assert not tells(quiet_page(memory, [abroad]), abroad)
    assert tells(quiet_page(memory, [abroad], "www.third.test", OTHER_BIT), abroad)
    memory.note("www.third.test", OTHER_BIT, [abroad])
    assert not tells(quiet_page(memory, [abroad], "www.third.test", OTHER_BIT), abroad)
    sister = link(5, "shop.home.test")  # of the same domain: nothing is counted for it
    memory.note("www.third.test", OTHER_BIT, [sister])
    assert not tells(quiet_page(memory, [sister]), sister)


def test_a_new_cycle_and_another_primary_are_told_everything() -> None:
    """F2, N4: a link brings back what has ended in an earlier cycle, and a primary may have lost its last moments."""
    memory, links = Told(), [link(1)]
    for era in (Era(1, 0, 0), Era(2, 0, 0), Era(2, 1, 0), Era(2, 1, 1)):
        memory.enter(era)
        assert memory.era == era
        assert quiet_page(memory, links).fresh == links
        memory.note(HOME, BIT, links)
        memory.enter(era)
        assert quiet_page(memory, links).left_out == 1


def test_memory_is_bounded_and_who_is_pushed_out_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q3: a URL has one place; hosts are forgotten together."""
    monkeypatch.setattr(telling, "_PLACES", 4)
    monkeypatch.setattr(telling, "_MASK", 15)
    monkeypatch.setattr(telling, "_DEPTH", 15)
    monkeypatch.setattr(telling, "_HOSTS", 3)
    memory, links = Told(), [link(number) for number in range(200)]
    for one in links:
        memory.note(HOME, BIT, [one])
    sifted = quiet_page(memory, links)
    assert len(sifted.fresh) + sifted.left_out == 200
    assert 1 <= sifted.left_out <= 16
    hosts = [link(1, f"h{number}.test") for number in range(5)]
    for one in hosts:
        memory.note(HOME, BIT, [one])
    assert tells(quiet_page(memory, [hosts[0]]), hosts[0])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a.test", "b.test", "www.b.test"]),
            st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["a.test", "b.test"]), st.integers(0, 17))),
            st.booleans(),
        ),
        max_size=25,
    )
)
def test_nothing_is_left_out_that_the_engine_was_not_told(
    pages: list[tuple[str, list[tuple[int, str, int]], bool]],
) -> None:
    """R1, F5, D1: of what is left out the engine has the URL, from as near, and the word of its domain."""
    memory, depths, heard = Told(), dict[bytes, int](), set[tuple[str, int]]()
    for number, (host, targets, taken) in enumerate(pages):
        bit = {"a.test": 1, "b.test": 2, "www.b.test": 2}[host]
        links = [link(which, target, depth) for which, target, depth in targets]
        sifted = memory.sift(f"https://{host}/{number}", 0, host, bit, links)
        assert len(sifted.fresh) + len(sifted.again) + sifted.left_out == len(links)
        for one in links:
            if one not in sifted.fresh:
                assert depths[one.address.fingerprint] <= one.depth
                assert host.endswith(one.address.host) or (one.address.host, bit) in heard
        if taken:
            memory.note(host, bit, sifted.fresh)
            for one in sifted.fresh:
                name = one.address.fingerprint
                depths[name] = min(one.depth, depths.get(name, 99))
                heard.add((one.address.host, bit))
