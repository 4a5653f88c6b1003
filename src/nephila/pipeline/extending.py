"""Where plugins have their say in the sentence (E1): before a request, over a body, over links, with a stored page.

None of this runs where a crawl has no plugins. What plugins say is written down with the capture, so that recovery
settles it from the archive as it was then and asks no extractor again; filters are asked again, because what they kept
out is not there to be read.
"""

from __future__ import annotations

from dataclasses import replace

from nephila.interfaces.extensions import Extensions
from nephila.model.exchange import Answer, Fetched
from nephila.model.outcome import Dropped
from nephila.model.page import Link
from nephila.model.plugin import Extract, Glimpse, IncomingAnswer, OutgoingRequest, PageRecord, RequestAdvice
from nephila.model.record import Capture
from nephila.model.task import Candidate, Lease, PageTask

from .judgement import Extracts, Judgement

VETO = "plugin"
"""The reason of a page that a hook keeps from being asked for."""
NOTE_BY = "extractedBy"
NOTE_FIELD = "extracted"
"""Notes in the metadata of a capture."""
REDIRECT = "redirect"
"""The tag of a link that a redirect is shown as."""


async def advice_on(
    extensions: Extensions, lease: Lease, task: PageTask, *, conditional: bool
) -> RequestAdvice | Dropped:
    """What hooks want of a request: headers to add, or that it is not sent."""
    advice = await extensions.before(OutgoingRequest(task.url, lease.host, task.depth, task.via, conditional))
    return Dropped(VETO, advice.veto) if advice.veto else advice


def answer_told(task: PageTask, lease: Lease, answer: Answer) -> IncomingAnswer:
    """What hooks are told of an answer: small, so that the answer itself need not be held for them."""
    if isinstance(answer, Fetched):
        size = len(answer.head) + len(answer.payload)
        return IncomingAnswer(task.url, lease.host, task.depth, answer.status, answer.headers, size, answer.elapsed_ms)
    return IncomingAnswer(task.url, lease.host, task.depth, 0, elapsed_ms=answer.elapsed_ms, error=str(answer.kind))


async def extracts_of(extensions: Extensions, answer: Fetched) -> Extracts:
    """What extractors read out of an answer."""
    if not 200 <= answer.status < 300 or answer.unwanted:
        return ()
    return await extensions.extract(answer)


async def sifted_by(extensions: Extensions, task: PageTask, answer: Fetched, judged: Judgement) -> Judgement:
    """The judgement with the links that filters and scorers leave of it.

    What the crawl itself wants to know (a probe for how a host says that something is missing) is not shown to them.
    """
    sifted = judged.sifted
    shown, others = list[Candidate](), list[Candidate]()
    for one in sifted.candidates:
        own = one.depth == task.depth and not one.hops  # neither a link nor the target of a redirect
        (others if own else shown).append(one)
    if not shown:
        return judged
    page = judged.page
    by_url = {link.url: link for link in (*page.requisites, *page.links)} if page is not None else {}
    links = [by_url.get(one.address.url) or Link(one.address.url, "" if page else REDIRECT, "", "") for one in shown]
    title, language = (page.title, page.language) if page is not None else ("", "")
    glimpse = Glimpse(task.url, task.depth, answer.status, title, language)
    left, refused = await extensions.sift(glimpse, links, shown)
    return replace(judged, sifted=replace(sifted, candidates=[*left, *others], refused=[*sifted.refused, *refused]))


async def hand_on(extensions: Extensions, task: PageTask, answer: Fetched, judged: Judgement) -> None:
    """Give a page that was stored to the sinks; what is no page, or was not read because of its type, is none."""
    if not 200 <= answer.status < 300 or answer.unwanted:
        return
    page = judged.page
    record = PageRecord(
        url=task.url,
        status=answer.status,
        at=answer.sent_at,
        depth=task.depth,
        via=task.via,
        headers=answer.headers,
        title=page.title if page else "",
        language=page.language if page else "",
        links=tuple(page.links) if page else (),
        digest=judged.digest.hex(),
        duplicate_of=judged.original.url if judged.original else "",
        near_duplicate_of=judged.near.url if judged.near else "",
        fields=page.extracted if page else (),
        body=answer.body,
    )
    await extensions.deliver(record)


def notes_on(judged: Judgement) -> list[tuple[str, str]]:
    """What extractors found, for the metadata record; links stand there as all outlinks do."""
    page = judged.page
    if not judged.extracts or page is None:
        return []
    notes = [(NOTE_BY, " ".join(name for name, _ in judged.extracts))]
    return notes + [(NOTE_FIELD, f"{name} {text}") for name, text in page.extracted]


def extracts_in(capture: Capture) -> Extracts:
    """What extractors had found in a capture, as far as it was written down: all in the name of the first of them."""
    names = dict(capture.notes).get(NOTE_BY, "").split()
    if not names:
        return ()
    fields = tuple(
        (name.removeprefix(f"{names[0]}."), text)
        for name, _, text in (value.partition(" ") for note, value in capture.notes if note == NOTE_FIELD)
    )
    return ((names[0], Extract(links=links_in(capture), fields=fields)),)


def links_in(capture: Capture) -> tuple[Link, ...]:
    """The links that were written down with a capture."""
    links = []
    for line in capture.outlinks:
        url, _, rest = line.partition(" ")
        tag, _, rel = rest.partition(" ")
        links.append(Link(url, tag, rel, ""))
    return tuple(links)
