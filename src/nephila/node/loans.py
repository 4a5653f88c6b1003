"""Work for workers that are not ours (C1): programs in any language that lease URLs over HTTP, fetch them, keep what
they get where they like, and report.

A URL that is lent is one that its robots.txt allows: what it forbids is settled here and lent to nobody. The host of a
URL that is lent belongs to its worker until he reports or his lease runs out; it then rests as it would after a request
of our own. Links that he found go through the scope like any others.
"""  # noqa: D205 - one sentence

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nephila.frontier.blocklist import Blocklist
from nephila.frontier.score import bonus_of
from nephila.frontier.sieve import BEYOND, TOLD_OF_A_HOST
from nephila.interfaces.catalogue import EXTERNAL, CaptureRow, ErrorRow
from nephila.interfaces.recrawl import Outlook
from nephila.model.errors import UsageError
from nephila.model.events import Event, EventKind
from nephila.model.exchange import FailureKind, Fetched
from nephila.model.outcome import Dead, Done, Dropped, Outcome, Release, Retry, RulesKind, Settlement
from nephila.model.policy import Block
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Candidate, Lease, Pace, PageTask, Refusal, Token
from nephila.store import ArchivePlace
from nephila.store.rotation import WARC_SUFFIXES
from nephila.urls import Address, Fingerprint, origin_of, registrable_domain

from .cataloguing import open_catalogue
from .desk import Desk
from .operated import OperatedView

ORDINARY_ANSWER_MS = 1000
"""An answer of which it is not told how long it took counts as neither slow nor fast."""
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")
"""Before a port there is a colon, too, and the name of a file of ours may begin with a host."""
ROUNDS = 5
"""How often other hosts are asked for in place of those whose URL turned out to be forbidden."""


@dataclass(frozen=True, slots=True)
class Loan:
    """One URL that was lent."""

    task_id: str
    url: str
    domain: str
    depth: int
    timeout_at: int
    """UTC milliseconds."""
    user_agent: str
    """What to say to this host."""
    etag: str
    last_modified: str


@dataclass(frozen=True, slots=True)
class Loans:
    """An answer to a worker who asks for work."""

    tasks: list[Loan]
    waiting_for_rules: int
    """Hosts that could have been lent but for their robots.txt, which the crawl itself has to fetch first."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a worker reports of a URL that was answered."""

    status: int
    content_type: str
    content_hash: bytes
    storage_path: str
    extracted_urls: Sequence[str]
    length: int
    elapsed_ms: int | None
    worker: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a report. `accepted` is False where the lease was lost before."""

    accepted: bool
    added: int = 0
    known: int = 0
    refused: int = 0
    will_retry: bool = False
    retries: int = 0


class BlockedLoanError(Exception):
    """What was lent was blocked since, or taken down: nothing of it is taken any more."""

    def __init__(self, block: Block) -> None:
        super().__init__(f"{block.pattern}: {block.reason}")


async def lend(desk: Desk, hosts: int, lease_s: float) -> Loans:
    """Lend up to so many URLs, each of another host."""
    loans: list[Loan] = []
    wanting = 0
    for _ in range(ROUNDS):
        found = await desk.frontier.lend(hosts - len(loans), lease_s)
        wanting = found.without_rules
        if not found.leases:
            break
        loans += [_loan(desk, lease) for lease in found.leases if await _is_allowed(desk, lease)]
        if len(loans) >= hosts:
            break
    if wanting:
        desk.nudge()
    return Loans(loans, wanting)


async def _is_allowed(desk: Desk, lease: Lease) -> bool:
    """Whether robots.txt allows what is to be lent; what it does not is settled. Waits for the host's turn."""
    (task,) = lease.tasks
    if not isinstance(task, PageTask):
        raise TypeError("a robots.txt is not lent")
    outcome: Outcome | None = None
    origin = origin_of(task.url)
    rules = await desk.look(lambda view: view.rules(origin)) if lease.rules_at else None
    if rules is not None and rules.kind is RulesKind.NO_HOST:
        is_address = rules.detail.startswith(FailureKind.ADDRESS)
        outcome = Dropped("address", rules.detail) if is_address else Dead(FailureKind.NO_SUCH_NAME, rules.detail)
    elif rules is not None:
        permission = desk.politeness.permits(rules, task.url, lease.user_agent)
        if not permission.allowed:
            detail = f"line {permission.line} of {rules.origin}/robots.txt: {permission.rule}"
            outcome = Dropped("robots", detail)
    wait_ms = max(0, lease.not_before - desk.frontier.timeline.now())
    if outcome is None:
        await asyncio.sleep(wait_ms / 1000)  # a host is claimed a moment ahead of its time
        return True
    await desk.frontier.take_back(lease.token, Settlement(task, outcome), Release(wait_ms, lease.pace))
    return False


def _loan(desk: Desk, lease: Lease) -> Loan:
    task = lease.tasks[0]
    if not isinstance(task, PageTask):
        raise TypeError("a robots.txt is not lent")
    return Loan(
        task_id=str(lease.token),
        url=task.url,
        domain=lease.domain,
        depth=task.depth,
        timeout_at=desk.frontier.timeline.wall_of(lease.expires_at),
        user_agent=lease.user_agent or desk.settings.fetch.user_agent,
        etag=task.validators.etag,
        last_modified=task.validators.last_modified,
    )


async def renew(desk: Desk, token: Token, lease_s: float) -> int | None:
    """Extend a loan: until when, UTC milliseconds; None when it was lost.

    `BlockedLoanError` where it was blocked: until it runs out its host is left alone, for its worker may be asking it.
    """
    ends = desk.clock.wall_ms() + int(lease_s * 1000)  # at least: the answer may come long after it was done
    held = await _held(desk, token)
    if held is not None and held.block is not None:
        raise BlockedLoanError(held.block)
    if held is None or token not in await desk.frontier.renew([token], lease_s):
        return None
    return ends


async def take_result(desk: Desk, token: Token, result: Result) -> Taken:
    """Settle a URL that was answered: its links are admitted in the same act.

    Raises `UsageError` for a place that is not the worker's to name; the loan holds. Raises `BlockedLoanError` where it
    was blocked; the loan has ended.
    """
    held = await _held(desk, token)
    if held is None:
        return Taken(accepted=False)
    check_kept_elsewhere(desk, result.storage_path)
    await _check_not_blocked(desk, token, held, result)
    host, task, _ = held
    candidates, refused, malformed = _sifted(desk, task, result.extracted_urls)
    is_page = 200 <= result.status < 300 or result.status == 304
    changed = bool(result.content_hash) and result.content_hash != task.digest
    ref = RecordRef(SegmentId(result.storage_path), token, 0, token)
    done = Done(
        ref,
        result.status,
        result.content_hash,
        changed=changed and result.status != 304,
        page=is_page,
        outlinks=len(result.extracted_urls),
    )
    settled = await desk.frontier.take_back(
        token, Settlement(task, done, candidates, refused), await _rest(desk, host, result)
    )
    if not settled.accepted:
        return Taken(accepted=False)
    await _list(desk, _row(desk, host, task, token, result, settled.outlook), None)
    if desk.crawls:
        _tell(desk, EventKind.FETCH_OK, host, task, result)
    desk.nudge()
    known = len(candidates) - settled.admission.added
    return Taken(True, settled.admission.added, known, len(refused) + malformed)


def check_kept_elsewhere(desk: Desk, place: str) -> None:
    """Raise `UsageError` where a worker outside says that it keeps something in a file of ours.

    Captures are known by the file that they lie in: one of his under such a name would be taken for one of ours.
    """
    own = place.endswith(WARC_SUFFIXES) and not place.startswith("/") and not _SCHEME.match(place)
    if desk.settings.archive.url:
        archive = str(ArchivePlace.parse(desk.settings.archive.url))
        own = own or place == archive or place.startswith(f"{archive}/")
    path = os.path.normpath(place.removeprefix("file://").removeprefix("file:"))
    if own or Path(path).is_relative_to(desk.directory.root.absolute()):
        raise UsageError(
            f"storage_path {place!r} is, or could be, a file of the crawl's own archive",
            "say where the worker keeps it, as s3://BUCKET/KEY or file:///PATH, outside of the crawl's own place",
        )


async def take_failure(desk: Desk, token: Token, error: str, status: int, worker: str) -> Taken:
    """Settle a URL that was not answered, or not well: it is tried again, or given up.

    Raises `BlockedLoanError` where it was blocked; the loan has ended.
    """
    held = await _held(desk, token)
    if held is None:
        return Taken(accepted=False)
    report = Result(status or 504, "", b"", "", (), 0, None, worker)
    await _check_not_blocked(desk, token, held, report)
    host, task, _ = held
    kind = _kind(error, status)
    detail = f"worker {worker}: {error}" if worker else error
    passing = status in {0, 408, 429} or status >= 500
    outcome: Retry | Dead = desk.politeness.retry(task, kind, detail) if passing else Dead(kind, detail)
    release = await _rest(desk, host, report)
    settled = await desk.frontier.take_back(token, Settlement(task, outcome), release)
    if not settled.accepted:
        return Taken(accepted=False)
    will_retry = isinstance(outcome, Retry)
    at = desk.clock.wall_ms()
    row = ErrorRow(task.url, task.fingerprint, host, kind, detail, at, task.retries, not will_retry)
    await _list(desk, None, row)
    if desk.crawls:
        event = Event(EventKind.ERROR, at, task.url, task.fingerprint, host, task.depth, reason=kind, detail=detail)
        desk.emit(event)
    desk.nudge()
    return Taken(True, will_retry=will_retry, retries=task.retries + will_retry)


class _Held(NamedTuple):
    """A loan that still holds."""

    host: str
    task: PageTask
    block: Block | None
    """What forbids the URL by now, by a person's word."""


async def _held(desk: Desk, token: Token) -> _Held | None:
    def look(view: OperatedView) -> _Held | None:
        loan = desk.census.loan(token)
        task = None if loan is None else view.task(loan.host, Fingerprint(loan.fingerprint))
        if loan is None or task is None:
            return None
        return _Held(loan.host, task, Blocklist(view.blocks()).find(loan.host, task.url, task.fingerprint))

    return await desk.look(look)


async def _check_not_blocked(desk: Desk, token: Token, held: _Held, result: Result) -> None:
    """`BlockedLoanError` where a URL was blocked since it was lent: it is queued again, as it would be without a lease.

    A page that was taken down is not listed anew, nor is there a line of it in any file.
    """
    if held.block is not None:
        await desk.frontier.settle(token, (), await _rest(desk, held.host, result))
        raise BlockedLoanError(held.block)


def _sifted(desk: Desk, task: PageTask, urls: Sequence[str]) -> tuple[list[Candidate], list[Refusal], int]:
    """Links that may be admitted, those that a rule keeps out, and how many were no addresses."""
    desk.follow_scope()
    candidates: dict[bytes, Candidate] = {}
    refused: list[Refusal] = []
    malformed = 0
    depth, most = task.depth + 1, desk.settings.scope.links_per_page
    beyond = BEYOND, f"{len(urls):,} links were given of the page, {most:,} are taken"
    for place, url in enumerate(urls[: most + TOLD_OF_A_HOST[BEYOND]]):
        address = desk.identifier.identify(url)
        if not isinstance(address, Address):
            malformed += 1
            continue
        verdict = desk.scope.judge(address, depth) or (None if place < most else beyond)
        if verdict is None:
            bonus = bonus_of(desk.settings.priority, address.url)
            candidates[address.fingerprint] = Candidate(address, depth, bonus=bonus)
        elif address.fingerprint not in candidates:
            refused.append(Refusal(address, *verdict))
    return list(candidates.values()), refused, malformed


async def _rest(desk: Desk, host: str, result: Result) -> Release:
    """How long the host rests, as after an answer to a request of our own."""
    domain = registrable_domain(host)
    state, policy = await desk.look(lambda view: (view.host(host), view.policy(domain)))
    base_ms = -1 if policy is None or policy.delay_s is None else int(policy.delay_s * 1000)
    own_ms = int(desk.settings.politeness.delay_s * 1000)
    delay_ms = state.delay_ms if state is not None and state.delay_ms >= 0 else max(own_ms, base_ms)
    pace = Pace(delay_ms, 0 if state is None else state.crawl_delay_ms, base_ms)
    elapsed_ms = ORDINARY_ANSWER_MS if result.elapsed_ms is None else result.elapsed_ms
    at = desk.clock.wall_ms()
    answer = Fetched("", b"", b"", b"", result.status, (), b"", "", at - elapsed_ms, at, elapsed_ms)
    return desk.politeness.release(pace, answer, None, at)


def _kind(error: str, status: int) -> str:
    if status == 429:
        return "http_429"
    if status >= 400:
        return "http_5xx" if status >= 500 else "http_4xx"
    return error if error in set(FailureKind) else "worker"


def _row(desk: Desk, host: str, task: PageTask, token: Token, result: Result, outlook: Outlook | None) -> CaptureRow:
    elapsed_ms = result.elapsed_ms or 0
    return CaptureRow(
        url=task.url,
        fingerprint=task.fingerprint,
        host=host,
        domain=registrable_domain(host),
        depth=task.depth,
        via=task.via,
        level=int(task.level),
        retries=task.retries,
        at=desk.clock.wall_ms() - elapsed_ms,
        status=result.status,
        content_type=result.content_type,
        content_hash=result.content_hash,
        length=result.length,
        wire_bytes=result.length,
        elapsed_ms=elapsed_ms,
        kind=EXTERNAL,
        segment=SegmentId(result.storage_path),
        offset=token,
        record_length=0,
        end=token,
        payload_digest="",
        worker=result.worker,
        next_crawl_at=None if outlook is None else outlook.next_at,
        change_rate=None if outlook is None else outlook.change_rate,
    )


async def _list(desk: Desk, row: CaptureRow | None, error: ErrorRow | None) -> None:
    """Write it into the catalogue, in a thread: another process may be writing."""

    def write() -> None:
        catalogue = open_catalogue(desk.directory, desk.settings, secret=desk.frontier.secret)
        try:
            catalogue.record([row] if row else [], [error] if error else [])
        finally:
            catalogue.close()

    await asyncio.to_thread(write)


def _tell(desk: Desk, kind: EventKind, host: str, task: PageTask, result: Result) -> None:
    desk.emit(
        Event(
            kind,
            desk.clock.wall_ms(),
            task.url,
            task.fingerprint,
            host,
            task.depth,
            result.status,
            result.length,
            result.content_type,
            detail=f"worker {result.worker}" if result.worker else "",
            via=task.via,
            elapsed_ms=result.elapsed_ms,
        )
    )
