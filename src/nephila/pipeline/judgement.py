"""What an answer means: from a task and what was fetched for it to what is kept, what is followed and how it ends.

Pure: no I/O but a look into the indexes of known contents, no clock. The pipeline calls it with an answer from the
wire; recovery calls it with the same answer read back from the archive, and gets the same judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from nephila.interfaces.duplicates import DigestIndex
from nephila.interfaces.politeness import Politeness
from nephila.interfaces.sieve import LinkSieve, Sifted
from nephila.model.digests import content_digest
from nephila.model.exchange import REDIRECTS, TRANSIENT, FailureKind, Fetched, FetchFailed, Truncation
from nephila.model.likeness import Likeness
from nephila.model.listing import ListKind
from nephila.model.near import NearOriginal
from nephila.model.noun import noun
from nephila.model.outcome import Dead, DeferReason, Deferred, Done, Dropped, Outcome, Respelled, Retry
from nephila.model.page import Directives, Page
from nephila.model.plugin import Extract
from nephila.model.record import Original, RecordRef
from nephila.model.task import Candidate, Level, PageTask, Refusal, Validators
from nephila.urls import Address

from .ending import (
    as_given,
    as_missing,
    as_no_page,
    as_partial_page,
    as_whole_page,
    cut_kind,
    say_the_same,
    validators_of,
)
from .lists import NO_SITEMAP, Lists
from .near import NOT_COMPARED, Compared, NearPages
from .notfound import PROBE, SOFT_404, MissingPages

DNS_WAIT_MS = 300_000
"""A name that could not be looked up is tried again when caches have forgotten the failure (RFC 2308, 7.1)."""
Extracts = Sequence[tuple[str, Extract]]
"""What content extractors read out of an answer, each by its name (E1)."""
LONGEST_FIELDS = 65_536
"""Characters of all fields that are kept with a page: they stand in its metadata record."""
HTTP_4XX, HTTP_5XX = "http_4xx", "http_5xx"
ALIAS = "alias"


@noun
class Judgement:
    """All that is decided of one answer, but for where it lies."""

    ending: Callable[[RecordRef], Outcome]
    """Knows nothing of the answer's content: it lives until the task is settled (Q5)."""
    page: Page | None = None
    digest: bytes = b""
    """SHA-256 of the decoded body, where it is whole and may be compared."""
    original: Original | None = None
    """An earlier capture with the same content (D2)."""
    near: NearOriginal | None = None
    """An earlier page of another URL that says nearly the same (D3); never beside an `original` of another URL."""
    likeness: Likeness | None = None
    """What later pages are to be compared with, if this one is stored."""
    body_kept: bool = True
    """Whether the body goes into the archive."""
    not_modified: bool = False
    asked: Directives = field(default_factory=Directives)
    """What the headers of an unchanged page ask of crawlers; what it was known to ask is not among it."""
    sifted: Sifted = field(default_factory=Sifted)
    error: str = ""
    """The kind under which it is counted as an error, if it is one."""
    detail: str = ""
    """Why it is one, where the status does not say so."""
    location: str = ""
    """Where it redirects to."""
    listing: ListKind | None = None
    """What it lists URLs as, if it does: a sitemap, a feed (X3)."""
    extracts: Extracts = ()
    """What its page owes to content extractors."""
    sizes: tuple[int, int] | None = None
    """Bytes of the body and on the wire, of an answer that is read from the archive without its body."""


_UNCOMPARED = Compared()
_PASSING = frozenset({408, 421, 425})
"""What a server would not answer now, or not over this connection (RFC 9110 15.5.9 and 15.5.20, RFC 8470 5.2)."""
_CUT = frozenset({Truncation.TIME, Truncation.DISCONNECT})
"""What was cut by chance, and may come whole another time."""


class Judge:
    """Judges answers for one crawl."""

    def __init__(
        self,
        read: Callable[[Fetched], Page | None],
        sieve: LinkSieve,
        politeness: Politeness,
        duplicates: DigestIndex,
        max_hops: int,
        near: NearPages = NOT_COMPARED,
        missing: MissingPages | None = None,
        lists: Lists | None = None,
    ) -> None:
        """`missing` knows pages that stand for missing ones; None takes every page for what it says it is.

        `lists` knows sitemaps and feeds; None takes them for documents that say nothing.
        """
        self._lists = lists
        self._missing = missing
        self._read = read
        self._sieve = sieve
        self._politeness = politeness
        self._duplicates = duplicates
        self._max_hops = max_hops
        self._near = near

    def failed(self, task: PageTask, answer: FetchFailed) -> Outcome:
        """How a task ends that got no answer."""
        if answer.kind is FailureKind.ADDRESS:
            return Dropped("address", answer.detail)
        if answer.kind is FailureKind.DNS:
            return Deferred(DNS_WAIT_MS, DeferReason.DNS)  # nobody's fault: costs no retry (F2)
        if answer.kind in TRANSIENT:
            return self._politeness.retry(task, answer.kind, answer.detail)
        return Dead(answer.kind, answer.detail)

    def page(self, fetched: Fetched) -> Page | None:
        """What an answer says, and nothing else."""
        return self._read(fetched)

    def instead_of(self, task: PageTask) -> tuple[Candidate, Dropped] | None:
        """How a task ends that need not be sent, for it is due again and is known to be an alias by now (D4)."""
        found = self._sieve.instead_of(task)
        return None if found is None else (found[0], Dropped(ALIAS, found[1]))

    def judge(self, task: PageTask, fetched: Fetched, digest: bytes = b"", extracts: Extracts = ()) -> Judgement:
        """How a task ends that got an answer, and what the answer brought; `digest` is its SHA-256 if it is known."""
        return self._judge(task, fetched, lambda page: self._near.compare(page, task.url), digest, extracts)

    def judge_again(
        self, task: PageTask, fetched: Fetched, near: NearOriginal | None, extracts: Extracts = ()
    ) -> Judgement:
        """The same of an answer that was stored earlier, near to what it was found near to then."""

        def compared(page: Page | None) -> Compared:
            return Compared(near, None if near else self._near.likeness_of(page))

        return self._judge(task, fetched, compared, b"", extracts)

    def _judge(
        self, task: PageTask, fetched: Fetched, compare: _Compare, digest: bytes, extracts: Extracts
    ) -> Judgement:
        status = fetched.status
        if self._missing is not None and self._missing.is_probe(task.url) and status < 500 and status != 429:
            return self._probed(task, fetched)
        if status == 304:
            return self._unchanged(task, fetched)
        if status in REDIRECTS and fetched.header("location"):
            return self._redirected(task, fetched)
        if status == 429 or status >= 500 or status in _PASSING:
            kind = "http_429" if status == 429 else HTTP_5XX if status >= 500 else HTTP_4XX
            ending = self._politeness.retry(task, kind, f"HTTP {status}")
            return Judgement(as_given(ending), error=kind)
        if 200 <= status < 300:
            return self._answered(task, fetched, compare, digest, extracts)
        return self._final(task, fetched)

    def _final(self, task: PageTask, fetched: Fetched) -> Judgement:
        """An answer that is no page; a redirect that lost its target on the way may tell it another time."""
        if 300 <= fetched.status < 400 and fetched.truncated in _CUT:
            ending = self._politeness.retry(task, cut_kind(fetched), "redirect cut off before its target")
            if isinstance(ending, Retry):
                return Judgement(as_given(ending), error=cut_kind(fetched))
        error = HTTP_4XX if 400 <= fetched.status < 500 else ""
        if error and self._lists is not None and self._lists.is_guess(task):
            error = NO_SITEMAP
        return Judgement(as_no_page(fetched), error=error)

    def _unchanged(self, task: PageTask, fetched: Fetched) -> Judgement:
        if not task.validators:  # nobody asked whether it has changed: there is no page behind this answer
            return Judgement(as_no_page(fetched), error=FailureKind.PROTOCOL)
        validators = validators_of(fetched)
        kept = Validators(
            validators.etag or task.validators.etag, validators.last_modified or task.validators.last_modified
        )
        original = self._duplicates.find(task.digest) if task.digest else None
        listing = self._lists.known(task) if self._lists is not None else None
        told = self._read(fetched)
        return Judgement(
            lambda ref: Done(ref, 304, task.digest, kept, changed=False, page=listing is None, listing=listing or ""),
            original=original,
            not_modified=True,
            asked=Directives() if told is None else told.directives,
            listing=listing,
        )

    def _redirected(self, task: PageTask, fetched: Fetched) -> Judgement:
        location = fetched.header("location")
        target = self._sieve.target(location, task)
        if target is None:
            return Judgement(as_no_page(fetched), location=location)
        if isinstance(target, Refusal):
            return Judgement(as_no_page(fetched), sifted=Sifted(refused=[target]), location=target.address.url)
        if task.hops + 1 > self._max_hops:
            ending = Dropped("too_many_redirects", f"more than {self._max_hops} in a row, last to {target.url}")
            return Judgement(as_given(ending), error="redirect", location=target.url)
        if target.fingerprint == task.fingerprint:
            if target.url == task.url or target.url in task.trail:
                ending = Dropped("redirect_loop", f"back to {target.url}")
                return Judgement(as_given(ending), error="redirect", location=target.url)
            return Judgement(as_given(Respelled(target)), location=target.url)
        match self._sieve.follow(target, task):
            case Refusal() as refusal:
                sifted = Sifted(refused=[refusal])
            case candidate:
                sifted = Sifted(candidates=[candidate])
        gone = self._missing.moved(task, target) if self._missing is not None else ""
        if invited := self._invited(task, None, target):
            sifted = replace(sifted, candidates=[*sifted.candidates, *invited])
        end = as_missing() if gone else as_no_page(fetched)
        return Judgement(end, sifted=sifted, location=target.url, error=SOFT_404 if gone else "", detail=gone)

    def _probed(self, task: PageTask, fetched: Fetched) -> Judgement:
        """How a host answers for what it cannot have: no page, no error, and nothing to follow."""
        target = self._sieve.target(fetched.header("location"), task) if fetched.status in REDIRECTS else None
        if isinstance(target, Address) and target.fingerprint == task.fingerprint:
            return self._redirected(task, fetched)  # the same path in another spelling: asked on
        readable = 200 <= fetched.status < 300 and not fetched.unwanted and fetched.truncated is None
        page = self._read(fetched) if readable else None
        location = target.url if isinstance(target, Address) else ""
        return Judgement(as_missing(), page=page, error=PROBE, location=location)

    def absent(self, digest: bytes, original: Original | None) -> Judgement:
        """The judgement of a page that stands for a missing one: its links lead nowhere new."""
        return Judgement(as_missing(digest), digest=digest, original=original, error=SOFT_404)

    def put_off(self, reason: DeferReason, wait_ms: int) -> Judgement:
        """The judgement of an answer that cannot be used now, and is asked for again: nothing of it counts."""
        return Judgement(as_given(Deferred(wait_ms, reason)), error=reason)

    def _invited(self, task: PageTask, page: Page | None, target: Address | None = None) -> list[Candidate]:
        """What to ask a host for whose answer is suspicious: as politely as for anything else.

        The probe at once: that asks again for what is known, should its answer have been forgotten in a crash.
        """
        if self._missing is None:
            return []
        wanted = self._missing.invited(task, page, target)
        if not wanted:
            return []
        return [
            Candidate(one, task.depth, Level.IMMEDIATE if self._missing.is_probe(one.url) else Level.HIGH)
            for one in wanted
            if self._sieve.allows(one, task.depth)
        ]

    def _answered(
        self, task: PageTask, fetched: Fetched, compare: _Compare, digest: bytes, extracts: Extracts
    ) -> Judgement:
        if fetched.unwanted:
            return Judgement(as_no_page(fetched))
        cut = fetched.truncated
        if cut in _CUT:
            ending = self._politeness.retry(task, cut_kind(fetched), f"answer cut ({cut})")
            if isinstance(ending, Retry):
                return Judgement(as_given(ending), error=cut_kind(fetched))
            # The last try brought no more: what there is, is kept and followed.
        kind = self._lists.kind_of(task, fetched) if self._lists is not None else None
        if kind is not None:
            digest = b"" if cut is not None else digest or content_digest(fetched)
            return self.listed(task, fetched, kind, digest, self._duplicates.find(digest) if digest else None)
        page = self._read(fetched)
        if extracts and page is not None:
            page = enriched(page, extracts)
        kept = page is None or page.keep_body
        if self._missing is not None and page is not None and cut is None:
            gone = self._missing.verdict(task, page)
            if gone:
                digest = content_digest(fetched)
                judged = self.absent(digest, self._duplicates.find(digest))
                return replace(judged, page=page, detail=gone)
        sifted = self._sieve.sift(page, task.depth) if page is not None else Sifted()
        if cut is not None or not fetched.body:
            partial = as_partial_page(fetched, page, whole=cut is None)
            return Judgement(partial, page=page, sifted=sifted, body_kept=kept, extracts=extracts)
        if page is not None and (invited := self._invited(task, page)):
            sifted = replace(sifted, candidates=[*sifted.candidates, *invited])
        digest = digest or content_digest(fetched)
        original = self._duplicates.find(digest)
        near, likeness = compare(page) if original is None or original.url == task.url else _UNCOMPARED
        familiar = self._near.is_familiar(near, page, task.url)
        return Judgement(
            as_whole_page(task, fetched, digest, page, original, near=familiar),
            page=page,
            digest=digest,
            original=original,
            near=near,
            likeness=likeness,
            body_kept=kept and (near is None or self._near.stores_body(near)),
            sifted=sifted if near is None else self._near.sift(sifted, near),
            extracts=extracts,
        )

    def listed(
        self, task: PageTask, fetched: Fetched, kind: ListKind, digest: bytes, original: Original | None
    ) -> Judgement:
        """The judgement of a sitemap or feed: no page, and what it names is admitted apart. No digest: it was cut."""
        validators = validators_of(fetched) if digest else Validators()
        changed = not digest or digest != task.digest
        lied = changed and bool(task.digest) and bool(digest) and say_the_same(task.validators, validators)
        status = fetched.status
        return Judgement(
            lambda ref: Done(ref, status, digest, validators, changed=changed, page=False, lied=lied, listing=kind),
            digest=digest,
            original=original,
            listing=kind,
        )

    def known(
        self,
        task: PageTask,
        fetched: Fetched,
        page: Page,
        digest: bytes,
        original: Original | None,
        near: NearOriginal | None = None,
    ) -> Judgement:
        """The judgement of a capture that was stored without its body, from what was written down of it."""
        familiar = self._near.is_familiar(near, page, task.url)
        return Judgement(
            as_whole_page(task, fetched, digest, page, original, near=familiar),
            page=page,
            digest=digest,
            original=original,
            near=near,
            body_kept=False,
            sifted=self._near.sift(self._sieve.sift(page, task.depth), near),
        )


def enriched(page: Page, extracts: Extracts) -> Page:
    """A page with what content extractors found: links behind its own, each URL once; a title where it has none.

    A <link> of the page may lead to no document (a style sheet) and not be followed for that: an extractor that names
    it wants it. Of any other link the page's own word counts (``rel=nofollow``).
    """
    links = {link.url: link for link in page.links}
    title, language, left = page.title, page.language, LONGEST_FIELDS
    fields: list[tuple[str, str]] = []
    for name, extract in extracts:
        for link in extract.links:
            own = links.setdefault(link.url, link)
            if own.tag == "link":
                links[link.url] = link._replace(rel=own.rel)
        title, language = title or extract.title, language or extract.language
        for field_name, text in extract.fields:
            left -= len(field_name) + len(text)
            if left >= 0:
                fields.append((f"{name}.{field_name}", text))
    return replace(page, links=tuple(links.values()), title=title, language=language, extracted=tuple(fields))


_Compare = Callable[[Page | None], Compared]
"""How a page is compared with those before it: now, or by what was written down of that."""
