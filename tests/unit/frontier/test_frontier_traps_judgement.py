"""What the judgement tells the trap rules of a page: the hashes of its text, its links, and known contents."""

from __future__ import annotations

from pathlib import Path

import pytest
from worker import SEGMENT, Worker, answer, linking, page_task

from nephila.model.exchange import Truncation
from nephila.model.outcome import Done
from nephila.model.record import Original, RecordRef
from nephila.model.task import Validators

URL = "https://a.test/x"
REF = RecordRef(SEGMENT, 0, 50, 100)


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    worker = Worker(tmp_path)

    async def nothing() -> None:
        """The judge needs no frontier."""

    worker.run(nothing)
    return worker


def ended(worker: Worker, body: bytes, cut: Truncation | None = None) -> Done:
    outcome = worker.judge.judge(page_task(URL), answer(URL, 200, body, truncated=cut)).ending(REF)
    assert isinstance(outcome, Done)
    return outcome


@pytest.mark.parametrize("cut", [None, Truncation.LENGTH], ids=["whole", "cut"])
def test_a_page_brings_the_hashes_of_its_text_and_its_number_of_links(worker: Worker, cut: Truncation | None) -> None:
    """T2, R1: also of a page that is not compared because it was cut; links are no part of the text."""
    one, other = ended(worker, linking("/1", "/2"), cut), ended(worker, linking("/3"), cut)
    assert (len(one.text), len(one.shape), one.outlinks) == (8, 8, 2)
    assert (other.text, other.shape, other.outlinks) == (one.text, one.shape, 1)


@pytest.mark.parametrize(("first", "duplicate"), [("https://a.test/first", True), (URL, False)])
def test_a_known_content_is_a_duplicate_under_another_url_only(worker: Worker, first: str, duplicate: bool) -> None:
    """D2, T2: the same page fetched again is none."""
    body = linking("/1")
    worker.duplicates.remember(ended(worker, body).digest, Original(first, "urn:uuid:1", 5, "sha1:X", ""))
    assert ended(worker, body).duplicate is duplicate


def test_not_modified_says_nothing_of_the_text(worker: Worker) -> None:
    """H3, T2: there is no body to read."""
    task = page_task(URL, validators=Validators('"1"'), digest=b"d" * 32)
    outcome = worker.judge.judge(task, answer(URL, 304)).ending(REF)
    assert isinstance(outcome, Done)
    assert (outcome.text, outcome.shape, outcome.duplicate, outcome.outlinks) == (b"", b"", False, 0)
