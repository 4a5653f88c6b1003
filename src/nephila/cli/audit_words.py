"""The words of an audit: what was looked at, what was found, what the chains say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .figures import count, moment, size, span
from .rows import many

if TYPE_CHECKING:
    from nephila.node.audit import Audit
    from nephila.store.trail_check import TrailVerdict
    from nephila.store.trail_line import Receipt

_ROBOTS = ("forbidden", "no_rules", "stale_rules", "robots_off", "wrong_rules")
_PACE = ("overlap", "hurry", "retry_after", "visit")
_RECORDS = ("undated", "missing", "damaged")

_SENTENCES = {
    "overlap": "the host was asked while it was answering",
    "hurry": "the host was asked too soon",
    "forbidden": "robots.txt forbids it",
    "no_rules": "asked for without rules",
    "retry_after": "the host had asked for more time",
    "stale_rules": "asked for under rules that were too old",
    "robots_off": "robots.txt was ignored",
    "wrong_rules": "rules that are not the server's",
    "crowd": "too many requests to one address",
    "address": "an address that is not public",
    "visit": "a page in a browser asked for too much",
    "undated": "a request without times",
    "missing": "an answer that is not in the archive",
    "damaged": "an archive file that cannot be read",
}

SHOWN_BREACHES = 20
SHOWN_POLICIES = 5
SHOWN_RECEIPTS = 5


def kind_sentence(kind: str) -> str:
    """What a kind of finding means, in a few words."""
    return _SENTENCES.get(kind, kind)


def request_rows(found: Audit) -> Iterator[tuple[str, str]]:
    """Label and text of all but the chains."""
    yield "requests", _requests(found)
    yield "robots.txt", _with(_robots(found), found, _ROBOTS)
    yield "pace", _with(_pace(found), found, _PACE)
    yield "addresses", _with(_addresses(found), found, ("crowd", "address"))
    yield "records", _with(_records(found), found, _RECORDS)
    for note in found.notes:
        yield "note", note


def chain_rows(found: Audit) -> Iterator[tuple[str, str]]:
    """Label and text of the chains."""
    trail = found.trail
    if not trail.sealed:
        yield "seal", "not sealed: the crawl was made before there were chains of hashes"
        return
    yield "seal", _sealed(trail)
    yield from _receipts(trail)
    for breach in trail.breaches[:SHOWN_BREACHES]:
        yield "TAMPERED", f"{breach.file}: {breach.what}"
    if len(trail.breaches) > SHOWN_BREACHES:
        yield "TAMPERED", f"{count(len(trail.breaches) - SHOWN_BREACHES)} more"
    for head in trail.missing:
        yield "TAMPERED", f"no line of any chain has the hash that was expected: {head}"
    for note in trail.notes:
        yield "note", note
    yield from _heads(trail)


def _receipts(trail: TrailVerdict) -> Iterator[tuple[str, str]]:
    """Files that were rewritten, for each reason: by name where they are few, in one line where they are many."""
    by_reason: dict[str, list[tuple[str, Receipt]]] = {}
    for at, receipt in trail.receipts:
        by_reason.setdefault(receipt.why, []).append((at, receipt))
    for why, found in by_reason.items():
        if len(found) <= SHOWN_RECEIPTS:
            for at, receipt in found:
                yield "rewritten", f"{receipt.file} at {at}: {count(len(receipt.removed))} taken out ({why})"
        else:
            first, last = found[0][0], found[-1][0]
            taken = sum(len(receipt.removed) for _, receipt in found)
            text = f"{many(len(found), 'file')}, {first} to {last}: {count(taken)} taken out ({why}); --json names them"
            yield "rewritten", text


def _heads(trail: TrailVerdict) -> Iterator[tuple[str, str]]:
    """What may be noted elsewhere: the head that stands for all, or that of each worker."""
    if trail.head:
        yield "head", f"{trail.head} of {trail.head_at}"
        return
    for worker, head in sorted(trail.heads.items()):
        yield "head", f"{head} of the worker {worker}"


def _sealed(trail: TrailVerdict) -> str:
    state = "to its end" if trail.ended and not trail.unsealed_bytes else "as far as it goes"
    text = f"{many(trail.files, 'file')}, {size(trail.sealed_bytes)}, sealed {state} by {many(trail.lines, 'line')}"
    if trail.unsealed_bytes:
        text += f"; {size(trail.unsealed_bytes)} not sealed yet (a crawl that runs, or was cut off)"
    if trail.older_files:
        text += f"; {many(trail.older_files, 'file')} older than the chain"
    if trail.under_way:
        text += f"; {many(trail.under_way, 'file')} not in the store yet"
    return text


def _requests(found: Audit) -> str:
    text = f"{count(found.requests)} to {many(found.hosts, 'host')}"
    if found.requests:
        text += f", {moment(found.first_at)} to {moment(found.last_at)} UTC"
    text += f"; {count(found.pages)} for pages, {count(found.robots)} for robots.txt"
    if found.parts:
        text += f", {count(found.parts)} in {many(found.visits, 'visit')} of pages in browsers"
    if found.cut_visits:
        text += f" ({count(found.cut_visits)} of them cut short by the death of a process)"
    return text + (f"; {count(found.unanswered)} brought no answer to store" if found.unanswered else "")


def _robots(found: Audit) -> str:
    text = f"{many(found.judged, 'page')} held against {many(found.rules, 'different file')}"
    if found.unjudged:
        text += f"; {count(found.unjudged)} not, for their rules were lost with the power, or they were taken out"
    return text


def _pace(found: Audit) -> str:
    delays = ", ".join(span(delay / 1000) for delay in found.delays_ms) or "unknown"
    text = f"{many(found.gaps, 'gap')} measured, promised {delays}"
    if found.shortest_gap_ms is not None:
        text += f"; the shortest {found.shortest_gap_ms / 1000:.3f} s ({found.shortest_host})"
    shown = sorted(found.policies.items())[:SHOWN_POLICIES]
    if shown:
        more = len(found.policies) - len(shown)
        listed = ", ".join(f"{host} {span(delay / 1000)}" for host, delay in shown)
        text += f"; by policy: {listed}" + (f" and {count(more)} more" if more else "")
    if found.unmeasured:
        text += f"; {count(found.unmeasured)} not measured, across a restart of the machine with its clock set back"
    return text


def _addresses(found: Audit) -> str:
    if found.proxied:
        return f"{many(found.proxied, 'request')} went through a proxy, which hides the addresses"
    return "public or opened, within their limits" if not _sum(found, ("crowd", "address")) else "not as promised"


def _records(found: Audit) -> str:
    parts = []
    if found.untold:
        parts.append(f"{many(found.untold, 'answer')} that no event tells of, since a process died")
    if found.waiting:
        parts.append(f"{many(found.waiting, 'answer')} whose archive is not in the store yet")
    if found.lost:
        parts.append(
            f"{many(found.lost, 'event')} of answers that were lost with the power, or cut out under a receipt"
        )
    if found.taken_out:
        parts.append(f"{many(found.taken_out, 'capture')} taken out by takedowns and retention")
    if found.wall_only:
        parts.append(f"{count(found.wall_only)} dated by the wall clock alone, as an earlier version did")
    return "; ".join(parts) or "archive and event log agree"


def _with(text: str, found: Audit, kinds: tuple[str, ...]) -> str:
    told = [f"{count(found.counts[kind])} {kind}" for kind in found.counts if kind in kinds]
    return f"{text}: {', '.join(told)}" if told else f"{text}: no violation"


def _sum(found: Audit, kinds: tuple[str, ...]) -> int:
    return sum(number for kind, number in found.counts.items() if kind in kinds)
