"""What an answer means: every way in which a task that was answered, or not, can end."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from worker import SEGMENT, Worker, address, answer, failure, linking, page_task

from nephila.model.exchange import FailureKind, Truncation
from nephila.model.outcome import Dead, DeferReason, Deferred, Done, Dropped, Outcome, Respelled, Retry
from nephila.model.page import Directives, Link, Page
from nephila.model.plugin import Extract
from nephila.model.record import Original, RecordRef
from nephila.model.task import Validators
from nephila.pipeline import Judge, Judgement
from nephila.pipeline.judgement import enriched

URL = "https://a.test/x"
REF = RecordRef(SEGMENT, 0, 50, 100)
ORIGINAL = Original("https://a.test/first", "urn:uuid:1", 5, "sha1:X", "")


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    worker = Worker(tmp_path)

    async def nothing() -> None:
        """The judge needs no frontier."""

    worker.run(nothing)
    return worker


@pytest.fixture
def judge(worker: Worker) -> Judge:
    return worker.judge


def end(judged: Judgement) -> Outcome:
    return judged.ending(REF)


def followed(judged: Judgement) -> list[str]:
    return [candidate.address.url for candidate in judged.sifted.candidates]


def test_a_redirect_that_lost_its_target_is_tried_again(judge: Judge) -> None:
    """H2, H5: a header block that ends before its Location is an answer that broke off, kept at the last try."""
    cut = replace(answer(URL, 302), truncated=Truncation.DISCONNECT)
    assert isinstance(end(judge.judge(page_task(URL), cut)), Retry)
    assert isinstance(end(judge.judge(page_task(URL, retries=3), cut)), Done)


# 304


@pytest.mark.parametrize(("length", "kept"), [(510, 512), (511, 0), (60_000, 0)])
def test_a_validator_that_is_too_long_is_not_asked_by(judge: Judge, length: int, kept: int) -> None:
    """H3: half of one would be no validator, and some servers refuse what they cannot read."""
    etag = f'"{"x" * length}"'
    ended = end(judge.judge(page_task(URL), answer(URL, body=b"<p>hello", headers={"etag": etag})))
    assert isinstance(ended, Done)
    assert len(ended.validators.etag) == kept


def test_not_modified_keeps_digest_and_validators(worker: Worker) -> None:
    """H3: the capture that has not changed is the original, and what it left is asked with again."""
    worker.duplicates.remember(b"d" * 32, ORIGINAL)
    task = page_task(URL, validators=Validators('"1"', "Mon"), digest=b"d" * 32)
    judged = worker.judge.judge(task, answer(URL, 304, headers={"etag": '"2"'}))
    assert end(judged) == Done(REF, 304, b"d" * 32, Validators('"2"', "Mon"), changed=False)
    assert (judged.not_modified, judged.original, judged.error) == (True, ORIGINAL, "")


def test_not_modified_without_its_original_is_still_not_modified(judge: Judge) -> None:
    """H3, D2: a lost entry of the index costs the reference, never the page."""
    task = page_task(URL, validators=Validators('"1"'), digest=b"d" * 32)
    judged = judge.judge(task, answer(URL, 304))
    assert (judged.not_modified, judged.original) == (True, None)
    assert end(judged) == Done(REF, 304, b"d" * 32, Validators('"1"'), changed=False)


def test_a_304_that_nobody_asked_for_is_no_page(judge: Judge) -> None:
    """H3, H5, S3: it is kept, counted as an error, and uses no limit up."""
    judged = judge.judge(page_task(URL), answer(URL, 304))
    outcome = end(judged)
    assert isinstance(outcome, Done)
    assert (outcome.page, judged.not_modified, judged.error) == (False, False, "protocol")


# Redirects


def test_a_redirect_to_another_key_is_followed_like_a_link_at_the_same_depth(judge: Judge) -> None:
    """H2: a stored capture that ends the exchange; hops carried."""
    judged = judge.judge(page_task(URL, depth=4, hops=1), answer(URL, 301, headers={"location": "/y"}))
    outcome = end(judged)
    assert isinstance(outcome, Done)
    assert not outcome.page
    (candidate,) = judged.sifted.candidates
    assert (candidate.address.url, candidate.depth, candidate.hops) == ("https://a.test/y", 4, 2)
    assert judged.location == "https://a.test/y"


def test_a_redirect_to_the_same_key_is_a_new_spelling(judge: Judge) -> None:
    """U2, H2: slash, tracking parameter, spelling."""
    judged = judge.judge(page_task(URL), answer(URL, 308, headers={"location": "/x/"}))
    assert end(judged) == Respelled(address("https://a.test/x/"))
    assert followed(judged) == []


@pytest.mark.parametrize(
    ("location", "trail"),
    [("/x", ()), ("https://a.test/x#here", ()), ("/x/", ("https://a.test/x/",))],
    ids=["itself", "fragment", "earlier"],
)
def test_a_redirect_back_to_an_exact_spelling_is_a_loop(judge: Judge, location: str, trail: tuple[str, ...]) -> None:
    """T6, H2: judged on exact spellings."""
    judged = judge.judge(page_task(URL, trail=trail, hops=len(trail)), answer(URL, 302, headers={"location": location}))
    outcome = end(judged)
    assert isinstance(outcome, Dropped)
    assert (outcome.reason, judged.error) == ("redirect_loop", "redirect")


@pytest.mark.parametrize("location", ["/y", "/x/"], ids=["other-key", "same-key"])
def test_redirects_end_after_so_many_hops(judge: Judge, location: str) -> None:
    """H2, T6: three in this crawl."""
    allowed = end(judge.judge(page_task(URL, hops=2), answer(URL, 307, headers={"location": location})))
    assert isinstance(allowed, Done | Respelled)
    judged = judge.judge(page_task(URL, hops=3), answer(URL, 307, headers={"location": location}))
    outcome = end(judged)
    assert isinstance(outcome, Dropped)
    assert outcome.reason == "too_many_redirects"
    assert followed(judged) == []


def test_a_redirect_out_of_scope_is_refused_with_its_rule(tmp_path: Path) -> None:
    """S2, H2, T8: targets go through scope as any URL does; a page deeper than the seeds widens nothing."""
    worker = Worker(tmp_path, scope="domain")
    worker.scope.add_seed(address(URL))
    judged = worker.judge.judge(page_task(URL, depth=1), answer(URL, 302, headers={"location": "https://b.test/"}))
    assert followed(judged) == []
    assert [(one.address.url, one.reason) for one in judged.sifted.refused] == [("https://b.test/", "scope")]
    worker.run(worker.claim)


@pytest.mark.parametrize("location", ["mailto:x@a.test", "https://", "javascript:0"])
def test_a_redirect_to_nowhere_is_kept_and_ends(judge: Judge, location: str) -> None:
    """H2: an answer without a target is an answer."""
    judged = judge.judge(page_task(URL), answer(URL, 301, headers={"location": location}))
    assert isinstance(end(judged), Done)
    assert (followed(judged), judged.location) == ([], location)


@pytest.mark.parametrize("status", [300, 301, 302])
def test_a_3xx_without_a_location_is_an_answer(judge: Judge, status: int) -> None:
    """H2: neither a page nor an error."""
    judged = judge.judge(page_task(URL), answer(URL, status, b"choose"))
    outcome = end(judged)
    assert isinstance(outcome, Done)
    assert (outcome.page, outcome.validators, judged.error) == (False, Validators(), "")


# Errors


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "http_429"),
        (500, "http_5xx"),
        (503, "http_5xx"),
        (599, "http_5xx"),
        *((one, "http_4xx") for one in (408, 421, 425)),
    ],
)
def test_a_passing_error_is_retried_and_then_given_up(judge: Judge, status: int, kind: str) -> None:
    """H5, F2: 5 and 30 seconds with jitter, then a dead letter."""
    for retries, wait_s in enumerate((5, 30)):
        outcome = end(judge.judge(page_task(URL, retries=retries), answer(URL, status)))
        assert isinstance(outcome, Retry)
        assert outcome.kind == kind
        assert abs(outcome.wait_ms / 1000 - wait_s) <= wait_s * 0.2
    judged = judge.judge(page_task(URL, retries=2), answer(URL, status))
    assert end(judged) == Dead(kind, f"HTTP {status}")
    assert judged.error == kind


@pytest.mark.parametrize("status", [400, 401, 404, 410, 451])
def test_a_4xx_is_final_and_kept_without_validators(judge: Judge, status: int) -> None:
    """H5, H3: a 304 must never stand for an error of old."""
    judged = judge.judge(page_task(URL), answer(URL, status, headers={"etag": '"e"'}))
    assert end(judged) == Done(REF, status, page=False)
    assert judged.error == "http_4xx"


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (FailureKind.TIMEOUT, Retry),
        (FailureKind.RESET, Retry),
        (FailureKind.CONNECT, Retry),
        (FailureKind.PROXY, Retry),
        (FailureKind.NO_SUCH_NAME, Dead),
        (FailureKind.TLS, Dead),
        (FailureKind.PROTOCOL, Dead),
        (FailureKind.TOO_LARGE, Dead),
        (FailureKind.BAD_CONTENT, Dead),
        (FailureKind.ADDRESS, Dropped),
        (FailureKind.DNS, Deferred),
    ],
)
def test_a_failure_ends_by_its_kind(judge: Judge, kind: FailureKind, outcome: type[Outcome]) -> None:
    """H5, F2, H6: transient ones are retried, final ones not, a resolver's failure costs no retry."""
    ended = judge.failed(page_task(URL), failure(URL, kind))
    assert type(ended) is outcome
    if isinstance(ended, Deferred):
        assert ended.reason is DeferReason.DNS


# Pages


def unsigned(outcome: Outcome) -> Outcome:
    """An outcome without the marks of its text (T2, R2), which have tests of their own."""
    assert isinstance(outcome, Done)
    return replace(outcome, text=b"", shape=b"", outlinks=0, said=b"")


def test_a_page_that_prints_the_time_says_the_same_each_time(judge: Judge) -> None:
    """R2, D2, H3: its bytes are others, and go by themselves; what it says is not."""
    story = "The orb weaver spins a new web every evening and eats the old one before dawn, thread by thread, again."
    shown = "<html><body><p>{0}</p><p>{0}</p><p>It is {1} now.</p></body></html>"
    one, later, other = (
        judge.judge(page_task(URL, digest=b"d" * 32), answer(URL, 200, shown.format(story + more, time).encode()))
        for time, more in (("12:34", ""), ("23:01", ""), ("12:34", " Nobody sees it."))
    )
    ends = [end(one), end(later), end(other)]
    assert all(isinstance(outcome, Done) and outcome.changed and outcome.said for outcome in ends)
    first, second, third = (outcome.said for outcome in ends if isinstance(outcome, Done))
    assert first == second != third
    assert one.digest != later.digest


def test_a_page_brings_its_digest_its_validators_and_its_links(judge: Judge) -> None:
    """X1, D2, H3: all of it in one judgement."""
    body = linking("/1", "https://b.test/")
    judged = judge.judge(page_task(URL, depth=2), answer(URL, 200, body, headers={"etag": '"1"'}))
    digest = hashlib.sha256(body).digest()
    assert unsigned(end(judged)) == Done(REF, 200, digest, Validators('"1"'), changed=True)
    assert followed(judged) == ["https://a.test/1", "https://b.test/"]
    assert {candidate.depth for candidate in judged.sifted.candidates} == {3}
    assert judged.page is not None
    assert (judged.page.title, judged.digest) == ("T", digest)


def test_the_same_content_as_last_time_has_not_changed(judge: Judge) -> None:
    """R2, H3: 200 with the old body."""
    body = linking()
    outcome = end(judge.judge(page_task(URL, digest=hashlib.sha256(body).digest()), answer(URL, 200, body)))
    assert isinstance(outcome, Done)
    assert not outcome.changed


def test_a_known_content_is_a_duplicate_whose_links_are_followed(worker: Worker) -> None:
    """D2: the earlier capture is named."""
    body = linking("/1")
    worker.duplicates.remember(hashlib.sha256(body).digest(), ORIGINAL)
    judged = worker.judge.judge(page_task(URL), answer(URL, 200, body))
    assert judged.original == ORIGINAL
    assert followed(judged) == ["https://a.test/1"]


def test_an_unwanted_type_is_no_page(judge: Judge) -> None:
    """H7: kept as far as it was read, nothing is made of it."""
    cut = Truncation.UNSPECIFIED
    judged = judge.judge(page_task(URL), answer(URL, 200, unwanted=True, truncated=cut, headers={"etag": '"1"'}))
    assert unsigned(end(judged)) == Done(REF, 200, page=False)
    assert judged.page is None


@pytest.mark.parametrize(
    ("status", "headers", "other"),
    [
        (302, {"location": "/moved"}, {"location": "/elsewhere"}),
        (301, {"location": "https://b.test/", "date": "now"}, {"location": "https://c.test/"}),
        (200, {"etag": '"1"'}, {"etag": '"2"'}),
        (200, {"content-length": "7"}, {"content-length": "8"}),
        (204, {}, {"last-modified": "Mon"}),
    ],
)
def test_what_is_no_page_has_changed_when_its_headers_say_so(
    judge: Judge, status: int, headers: dict[str, str], other: dict[str, str]
) -> None:
    """R2: where a redirect leads, or what tells bodies apart that are not read; not at every visit."""

    def said(told: dict[str, str]) -> bytes:
        ended = end(judge.judge(page_task(URL), answer(URL, status, b"", unwanted=status == 200, headers=told)))
        assert isinstance(ended, Done)
        return ended.said

    assert said(headers) == said({**headers, "date": "later"}) != said(other)
    assert said(headers)


def test_an_empty_body_is_a_page_without_content(judge: Judge) -> None:
    """D2: nothing is the same as nothing else."""
    judged = judge.judge(page_task(URL), answer(URL, 200, b"", headers={"etag": '"1"'}))
    assert unsigned(end(judged)) == Done(REF, 200, validators=Validators('"1"'))
    assert (judged.digest, judged.original) == (b"", None)


@pytest.mark.parametrize(("cut", "kind"), [(Truncation.TIME, "timeout"), (Truncation.DISCONNECT, "reset")])
def test_an_answer_that_broke_off_is_retried_and_kept_at_last(judge: Judge, cut: Truncation, kind: str) -> None:
    """H5, H2: the last try brings what there is; a cut capture is no original and is not asked for conditionally."""
    broken = answer(URL, 200, linking("/1"), truncated=cut, headers={"etag": '"1"'})
    first = judge.judge(page_task(URL), broken)
    assert isinstance(end(first), Retry)
    assert first.error == kind
    assert followed(first) == []
    last = judge.judge(page_task(URL, retries=2), broken)
    assert unsigned(end(last)) == Done(REF, 200)
    assert (last.digest, followed(last)) == (b"", ["https://a.test/1"])


def test_an_answer_over_its_limit_is_kept_as_a_page(judge: Judge) -> None:
    """H2: cut, marked, followed, not compared; asked for whole the next time."""
    long = answer(URL, 200, linking("/1"), truncated=Truncation.LENGTH, headers={"etag": '"1"'})
    judged = judge.judge(page_task(URL), long)
    assert unsigned(end(judged)) == Done(REF, 200)
    assert (judged.digest, followed(judged)) == (b"", ["https://a.test/1"])


def test_what_an_extractor_names_is_followed_though_the_page_loads_it_as_a_resource() -> None:
    """E1, X1: a style sheet for a replay; where the page itself links to a URL, what it says of it counts."""
    own = (
        Link("https://a.test/style.css", "link", "stylesheet", ""),
        Link("https://a.test/next", "a", "nofollow", "Next"),
    )
    page = Page("https://a.test/", "https://a.test/", "utf-8", "", own, Directives())
    named = [Link(f"https://a.test/{name}", "mine", "", "") for name in ("style.css", "next", "new")]
    links = enriched(page, (("mine", Extract(links=tuple(named))),)).links
    assert links == (Link("https://a.test/style.css", "mine", "stylesheet", ""), own[1], named[2])
    assert enriched(page, (("mine", Extract(links=tuple(links))),)).links == links, "as after a crash"
