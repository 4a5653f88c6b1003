"""Pages that say nearly what another one said: marked, followed or not, stored or not, and never near to themselves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from near_reference import likeness_of
from worker import IDENTIFIER, SEGMENT, answer, page_task

from nephila.dedup import MemoryDigestIndex, MemoryNearIndex
from nephila.frontier.scope import Scope
from nephila.frontier.sieve import ScopeSieve
from nephila.model.exchange import Fetched, Truncation
from nephila.model.likeness import Likeness
from nephila.model.near import NearOriginal
from nephila.model.outcome import Done
from nephila.model.page import Page
from nephila.model.record import Original, RecordRef
from nephila.model.settings import (
    DedupSettings,
    FrontierSettings,
    PolitenessSettings,
    RobotsSettings,
    ScopeSettings,
)
from nephila.parse import links_that_matter, parse_html
from nephila.pipeline import Judge, Judgement, NearPages, near, original_of
from nephila.pipeline.near import notes_of
from nephila.politeness import StandardPoliteness

FIRST, SECOND, ELSEWHERE = "https://a.test/1", "https://a.test/2", "https://b.test/1"
REF = RecordRef(SEGMENT, 0, 50, 100)
TEXT = " ".join(f"word{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(400))
NEARLY = TEXT.replace("wordbh ", "another ")
OTHER = " ".join(reversed(TEXT.split()))


def body(text: str, title: str = "") -> bytes:
    return f'<title>{title}</title><main>{text}</main><a href="/on">on</a>'.encode()


@dataclass
class Desk:
    """A judge that compares, and what it compares with."""

    settings: DedupSettings = field(default_factory=DedupSettings)
    digests: MemoryDigestIndex = field(default_factory=MemoryDigestIndex)
    index: MemoryNearIndex = field(default_factory=MemoryNearIndex)

    def __post_init__(self) -> None:
        scope = ScopeSettings(mode="all")
        sieve = ScopeSieve(IDENTIFIER, Scope(scope, 15), scope, links_that_matter, lambda: None)
        politeness = StandardPoliteness(PolitenessSettings(), RobotsSettings(), FrontierSettings(), "Nephila")
        self.near = NearPages(self.index, self.settings)
        self.judge = Judge(self._read, sieve, politeness, self.digests, 3, self.near)

    def _read(self, fetched: Fetched) -> Page:
        text = fetched.body.decode().partition("<main>")[2].partition("</main>")[0]
        simhash, sketch, words = likeness_of(text)
        page = parse_html(fetched.body, fetched.url, "text/html", agent="Nephila")
        return replace(page, simhash=simhash, sketch=sketch, words=words)

    def judged(self, url: str, text: str, title: str = "") -> Judgement:
        """Judge a page, and remember it as the pipeline does."""
        judged = self.judge.judge(page_task(url), answer(url, 200, body(text, title)))
        self.near.remember(judged.likeness, url)
        return judged


def done(judged: Judgement) -> Done:
    outcome = judged.ending(REF)
    assert isinstance(outcome, Done)
    return outcome


def test_a_near_duplicate_has_its_original_and_is_none_itself() -> None:
    """D3: marked, followed and stored; what is near to it has the same original."""
    desk = Desk()
    first = desk.judged(FIRST, TEXT)
    assert (first.near, first.likeness) == (None, likeness_of(TEXT))
    second = desk.judged(SECOND, NEARLY)
    assert second.near is not None
    assert (second.near.url, second.likeness, second.body_kept) == (FIRST, None, True)
    assert second.near.distance <= 6
    assert [one.address.url for one in second.sifted.candidates] == ["https://a.test/on"]
    assert (done(first).near, done(second).near, done(second).duplicate) == (False, True, False)
    assert desk.judged(ELSEWHERE, OTHER).near is None
    assert desk.index.snapshot().originals == 2


def test_traps_hear_of_near_duplicates_of_their_own_host_only() -> None:
    """D3, T2: a mirror on another host says nothing against this one."""
    desk = Desk()
    desk.judged(FIRST, TEXT)
    mirror = desk.judged(ELSEWHERE, NEARLY)
    assert mirror.near is not None
    assert not done(mirror).near


def test_traps_do_not_hear_of_near_duplicates_with_titles_of_their_own() -> None:
    """D3, T2: products that share a template are marked, and are no maze; rooms that are called alike are one."""
    desk = Desk()
    desk.judged(FIRST, TEXT, "Red chair")
    blue = desk.judged(SECOND, NEARLY, "Blue table")
    assert blue.near is not None
    assert not done(blue).near
    assert not done(desk.judged(SECOND, NEARLY, "Blue table")).near  # judged twice, it is still the first to have it
    assert done(desk.judged("https://a.test/3", NEARLY, "Blue table")).near
    assert done(desk.judged("https://a.test/4", NEARLY, "RED chair 42")).near


@pytest.mark.parametrize("title", ["7 Blue table", "Blue 4x4 table", "Blue table no4", "Blue\ttable"])
def test_words_that_hold_a_digit_are_no_part_of_a_title(title: str) -> None:
    """D3, T2: wherever they stand, and whatever stands around the digit."""
    desk = Desk()
    desk.judged(FIRST, TEXT, "Blue table")
    assert done(desk.judged(SECOND, NEARLY, title)).near


def test_titles_of_near_duplicates_that_were_forgotten_are_learned_again() -> None:
    """D3, T2: after a restart the first of a family counts as new, and the next one of its title does not."""
    desk = Desk()
    desk.judged(FIRST, TEXT, "Room")
    later = Desk(digests=desk.digests, index=desk.index)
    assert not done(later.judged(SECOND, NEARLY, "Room")).near
    assert done(later.judged("https://a.test/3", NEARLY, "Room")).near


def test_titles_take_no_more_memory_than_there_are_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """D3, Q3: one that falls where another one was takes its place, and the other one is learned again."""
    monkeypatch.setattr(near, "TITLES", 1)
    desk = Desk()
    desk.judged(FIRST, TEXT, "Red chair")
    assert not done(desk.judged(SECOND, NEARLY, "Blue table")).near
    assert done(desk.judged("https://a.test/3", NEARLY, "Blue table")).near
    assert not done(desk.judged("https://a.test/4", NEARLY, "Red chair")).near


def test_a_page_that_changes_a_little_is_not_near_to_itself() -> None:
    """D3, R2: its earlier version is no original of it, and is not remembered twice."""
    desk = Desk()
    desk.judged(FIRST, TEXT)
    again = desk.judged(FIRST, NEARLY)
    assert (again.near, again.likeness) == (None, None)
    assert desk.index.snapshot().originals == 1
    assert desk.judged(FIRST, OTHER).likeness is not None
    assert desk.index.snapshot().originals == 2


def test_exact_duplicates_are_not_compared() -> None:
    """D2, D3: they have an original already, and are not remembered as one."""
    desk = Desk()
    desk.digests.remember(done(desk.judged(FIRST, TEXT)).digest, Original(FIRST, "urn:uuid:1", 5, "sha1:X", ""))
    same = desk.judged(SECOND, TEXT)
    assert same.original is not None
    assert (same.near, same.likeness) == (None, None)
    assert done(same).duplicate


def test_short_cut_and_odd_pages_are_not_compared() -> None:
    """D3: too few words, an answer that is not whole, a page that the settings find too short."""
    short = Desk().judged(FIRST, "a few words only")
    assert (short.near, short.likeness) == (None, None)
    cut = replace(answer(FIRST, 200, body(TEXT)), truncated=Truncation.LENGTH)
    judged = Desk().judge.judge(page_task(FIRST), cut)
    assert (judged.near, judged.likeness) == (None, None)
    assert Desk(DedupSettings(near_min_words=401)).judged(FIRST, TEXT).likeness is None
    assert Desk(DedupSettings(near_min_words=400)).judged(FIRST, TEXT).likeness is not None


def test_links_of_near_duplicates_are_refused_on_request() -> None:
    """D3, T8: each with the rule that says so, and the original."""
    desk = Desk(DedupSettings(near_follow=False))
    assert len(desk.judged(FIRST, TEXT).sifted.candidates) == 1
    near = desk.judged(SECOND, NEARLY)
    assert near.sifted.candidates == []
    [refusal] = near.sifted.refused
    assert (refusal.address.url, refusal.reason, refusal.detail) == (
        "https://a.test/on",
        "near_duplicate",
        f"like {FIRST}",
    )


def test_bodies_of_near_duplicates_are_left_out_on_request() -> None:
    """D3: and only theirs."""
    desk = Desk(DedupSettings(near_store=False))
    assert [desk.judged(url, text).body_kept for url, text in ((FIRST, TEXT), (SECOND, NEARLY))] == [True, False]


def test_a_stored_page_is_judged_as_it_was_whatever_the_index_knows_now() -> None:
    """D3, F10: near to what was written down, or to nothing: not to itself, and not to who came later."""
    desk = Desk()
    fetched = answer(SECOND, 200, body(NEARLY))
    desk.judged(FIRST, TEXT)
    desk.judged(SECOND, NEARLY)
    alone = desk.judge.judge_again(page_task(SECOND), fetched, None)
    assert (alone.near, alone.likeness) == (None, likeness_of(NEARLY))
    written = NearOriginal("https://long.gone.test/", 2, 0.75)
    again = desk.judge.judge_again(page_task(SECOND), fetched, written)
    assert (again.near, again.likeness) == (written, None)


@pytest.mark.parametrize("original", [NearOriginal(FIRST, 0, 1.0), NearOriginal("https://é.test/a b", 6, 0.512)])
def test_the_original_comes_back_from_the_notes(original: NearOriginal) -> None:
    """D3, F10: what is written beside a capture is what is read."""
    assert original_of(dict(notes_of(original))) == original
    assert original_of({}) is None


def test_nothing_is_compared_where_nobody_wants_it(tmp_path: Path) -> None:
    """D3: without an index there is nothing to ask and nothing to forget."""
    off = NearPages(None, DedupSettings())
    likeness = Likeness(1, b"s" * 64, 500)
    assert off.remember(likeness, FIRST) is None
    off.forget(likeness, FIRST)
    page = Desk()._read(answer(FIRST, 200, body(TEXT)))
    assert off.compare(page, FIRST) == (None, None)
