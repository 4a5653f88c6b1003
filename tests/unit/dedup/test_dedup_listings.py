"""What sitemaps have shown is kept: in memory and on disk alike, over processes and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from nephila.dedup import LearnedEnvironment, LmdbListings, MemoryListings
from nephila.interfaces.listings import Listings
from nephila.model.listing import ListedNote, ListNote, ListTotals, SiteTrust
from nephila.urls import Fingerprint

ONE, TWO = Fingerprint(b"1" * 16), Fingerprint(b"2" * 16)


@pytest.fixture(params=["memory", "disk"])
def listings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listings]:
    if request.param == "memory":
        yield MemoryListings()
        return
    environment = LearnedEnvironment(tmp_path / "learned", sync=False)
    yield LmdbListings(environment)
    environment.close()


def test_what_is_kept_is_known_at_once_and_after_a_flush(listings: Listings) -> None:
    """X3: of lists, pages and hosts, each apart."""
    assert (listings.list_of(ONE), listings.listed(ONE), listings.site("a")) == (None, None, SiteTrust())
    for _ in range(2):
        listings.keep(ONE, ListNote("sitemap", 5, 7, 3))
        listings.keep(ONE, ListedNote(10, 9, b"text", TWO, 4))
        listings.keep("a.example", SiteTrust(1, 2, 3, 4, ("because",)))
        assert listings.list_of(ONE) == ListNote("sitemap", 5, 7, 3)
        assert listings.listed(ONE) == ListedNote(10, 9, b"text", TWO, 4)
        assert listings.site("a.example") == SiteTrust(1, 2, 3, 4, ("because",))
        assert listings.list_of(TWO) is None
        listings.flush()


def test_totals_add_up_over_processes_and_restarts(tmp_path: Path) -> None:
    """X3: each process counts for itself."""
    environment = LearnedEnvironment(tmp_path / "learned", sync=False)
    one, two = LmdbListings(environment, 1), LmdbListings(environment, 2)
    one.keep("", ListTotals(1, 0, 10, 5))
    two.keep("", ListTotals(0, 1, 3, 3, 1))
    one.close()
    two.close()
    one.keep("", ListTotals(1, 0, 10, 0))
    one.close()
    environment.close()
    environment = LearnedEnvironment(tmp_path / "learned", read_only=True)
    assert LmdbListings(environment).totals() == ListTotals(2, 1, 23, 8, 1)
    environment.close()


def test_a_directory_of_an_earlier_version_has_none(tmp_path: Path) -> None:
    """X3: looking into it finds nothing, and breaks nothing."""
    path = tmp_path / "learned"
    path.mkdir()
    with lmdb.open(str(path), max_dbs=2) as old:
        old.open_db(b"absences")
    environment = LearnedEnvironment(path, read_only=True)
    assert LmdbListings(environment).totals() == ListTotals()
    assert LmdbListings(environment).list_of(ONE) is None
    environment.close()


def test_what_another_process_has_kept_is_seen_after_the_next_flush(tmp_path: Path) -> None:
    """X3: what was looked for in vain is not looked for again at once, but soon."""
    environment = LearnedEnvironment(tmp_path / "learned", sync=False)
    one, two = LmdbListings(environment, 1), LmdbListings(environment, 2)
    assert (one.list_of(ONE), one.listed(ONE)) == (None, None)
    two.keep(ONE, ListNote("sitemap", 5))
    two.keep(ONE, ListedNote(10, 9, b"text", TWO, 4))
    two.flush()
    one.flush()
    assert one.list_of(ONE) == ListNote("sitemap", 5)
    assert one.listed(ONE) == ListedNote(10, 9, b"text", TWO, 4)
    environment.close()


def test_what_was_looked_for_in_vain_takes_no_more_than_its_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X3, Q3: of any number of URLs that no list names, the first few are remembered."""
    monkeypatch.setattr("nephila.dedup.listings.MISSED", 3)
    environment = LearnedEnvironment(tmp_path / "learned", sync=False)
    kept = LmdbListings(environment)
    kept.keep(TWO, ListedNote(10, 9, b"text", TWO, 4))
    kept.flush()  # where there is nothing at all, nothing is looked for
    for number in range(9):
        assert kept.listed(Fingerprint(number.to_bytes(16, "big"))) is None
    kept.keep(Fingerprint(bytes(16)), ListedNote(10, 9, b"text", TWO, 4))
    assert kept.listed(Fingerprint(bytes(16))) == ListedNote(10, 9, b"text", TWO, 4)
    assert len(kept._missed) == 2
    environment.close()


def test_a_store_is_not_asked_for_what_it_has_none_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """X3: every page asks whether it is a list, or named by one; most crawls meet none."""
    environment = LearnedEnvironment(tmp_path / "learned", sync=False)
    listings = LmdbListings(environment)
    asked: list[bytes] = []
    get = environment.get
    monkeypatch.setattr(environment, "get", lambda table, key: asked.append(key) or get(table, key))
    assert (listings.list_of(ONE), listings.listed(ONE), asked) == (None, None, [])
    listings.keep(TWO, ListNote("sitemap", 5))
    listings.flush()
    assert (listings.list_of(ONE), listings.listed(ONE), asked) == (None, None, [b"l" + ONE])
    assert listings.list_of(TWO) == ListNote("sitemap", 5)
    environment.close()
    environment = LearnedEnvironment(tmp_path / "learned", sync=False)
    assert LmdbListings(environment).list_of(TWO) == ListNote("sitemap", 5)
    environment.close()
