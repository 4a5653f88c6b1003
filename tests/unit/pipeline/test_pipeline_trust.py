"""Whether a site's lastmod is believed: what each visit shows, and what it comes to."""

from __future__ import annotations

import pytest

from nephila.model.listing import ListedNote, SiteTrust
from nephila.model.settings import SitemapSettings
from nephila.pipeline.trust import FADES_AT, FALSE, MISSED, RIGHT, after_reading, after_visit, is_believed, weigh

SETTINGS = SitemapSettings()
NOW = 1_000_000


@pytest.mark.parametrize(
    ("lastmod_s", "text", "same", "finding", "flagged"),
    [
        (20, b"new", False, RIGHT, False),
        (20, b"old", False, FALSE, False),
        (20, b"", True, FALSE, False),
        (10, b"new", False, "", True),
        (10, b"old", False, "", False),
    ],
)
def test_a_visit_against_what_the_list_says(
    lastmod_s: int, text: bytes, same: bool, finding: str, flagged: bool
) -> None:
    """X3: announced and found, announced and not found, found and not announced."""
    note = ListedNote(lastmod_s, 10, b"old")
    after, found = after_visit(note, text, NOW, 0, same=same)
    assert found == finding
    assert bool(after.flagged_s) is flagged
    assert after.seen_s == lastmod_s


def test_the_first_visit_shows_nothing() -> None:
    """X3: there is nothing to compare with."""
    after, found = after_visit(ListedNote(20), b"text", NOW, 0, same=False)
    assert (found, after) == ("", ListedNote(20, 20, b"text"))


def test_a_change_that_is_announced_late_was_announced() -> None:
    """X3: the page was visited between its change and the next reading of the list."""
    flagged = ListedNote(10, 10, b"new", b"", NOW)
    after, found = after_reading(flagged, 15, b"list")
    assert (found, after.flagged_s, after.seen_s) == (RIGHT, 0, 15)
    assert after_reading(flagged, 10, b"list")[1] == MISSED


def test_an_unchanged_list_settles_a_flag_at_the_next_visit() -> None:
    """X3: a 304 says that nothing was announced; a list that was not read since says nothing."""
    flagged = ListedNote(10, 10, b"new", b"list", NOW)
    assert after_visit(flagged, b"new", NOW + 50, NOW + 20, same=True)[1] == MISSED
    assert after_visit(flagged, b"new", NOW + 50, NOW - 20, same=True)[1] == ""


def test_beliefs_follow_the_evidence_both_ways() -> None:
    """X3: nothing is held against a site before there is evidence; it may mend its ways."""
    site = SiteTrust()
    for number in range(4):
        site = weigh(site, FALSE, f"https://a.example/{number}")
        assert is_believed(site, SETTINGS)
    site = weigh(site, MISSED, "https://a.example/4")
    assert not is_believed(site, SETTINGS)
    assert site.evidence[-1] == "https://a.example/4: other content, the same lastmod"
    for _ in range(2 * FADES_AT):
        site = weigh(site, RIGHT, "https://a.example/")
    assert is_believed(site, SETTINGS)
    assert len(site.evidence) == 5
    assert site.right + site.false + site.missed <= FADES_AT
