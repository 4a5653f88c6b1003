"""How tasks end that got an answer, as functions of where it was stored."""

from __future__ import annotations

from collections.abc import Callable

from xxhash import xxh3_64_digest

from nephila.model.exchange import FailureKind, Fetched, Truncation
from nephila.model.outcome import Done, Outcome
from nephila.model.page import Page
from nephila.model.record import Original, RecordRef
from nephila.model.task import PageTask, Validators

_ERROR = 400
NOT_FOUND = 404
"""What a page counts as that stands for a missing one, whatever its own status is (T4)."""

LONGEST_ETAG, LONGEST_LAST_MODIFIED = 512, 64
"""Characters: what real servers send has a tenth of that."""


def as_whole_page(
    task: PageTask,
    fetched: Fetched,
    digest: bytes,
    page: Page | None,
    original: Original | None,
    *,
    near: bool,
) -> Callable[[RecordRef], Outcome]:
    """The end of a task that got a whole page; `near`: another one of its host said nearly the same (T2)."""
    validators, status = validators_of(fetched), fetched.status
    changed = digest != task.digest
    lied = changed and bool(task.digest) and say_the_same(task.validators, validators)
    duplicate = original is not None and original.url != task.url
    text, shape, outlinks = _brought(page)
    said = b"" if page is None else page.said_hash
    return lambda ref: Done(
        ref,
        status,
        digest,
        validators,
        changed=changed,
        lied=lied,
        duplicate=duplicate,
        near=near,
        text=text,
        shape=shape,
        outlinks=outlinks,
        said=said,
    )


def _brought(page: Page | None) -> tuple[bytes, bytes, int]:
    """What a page says, as two hashes, and how many links it has: nothing of what could not be read."""
    return (b"", b"", 0) if page is None else (page.text_hash, page.shape_hash, len(page.links))


def say_the_same(old: Validators, new: Validators) -> bool:
    """Whether a server that is asked under the old validators would say that nothing has changed (RFC 9110, 13.2.2)."""
    if old.etag:
        return old.etag.removeprefix("W/") == new.etag.removeprefix("W/")
    return bool(old.last_modified) and old.last_modified == new.last_modified


def cut_kind(fetched: Fetched) -> str:
    """What kind of failure an answer is that was cut."""
    return FailureKind.TIMEOUT if fetched.truncated is Truncation.TIME else FailureKind.RESET


def validators_of(fetched: Fetched) -> Validators:
    """What a server can be asked by whether the page has changed; one that is too long to be kept says nothing cut."""
    etag, modified = fetched.header("etag"), fetched.header("last-modified")
    return Validators(
        etag if len(etag) <= LONGEST_ETAG else "", modified if len(modified) <= LONGEST_LAST_MODIFIED else ""
    )


def as_no_page(fetched: Fetched) -> Callable[[RecordRef], Outcome]:
    """The end of a task whose answer was no page."""
    status, said = fetched.status, _said_by_headers(fetched)
    return lambda ref: Done(ref, status, page=False, said=said)


def as_missing(digest: bytes = b"") -> Callable[[RecordRef], Outcome]:
    """The end of a task whose answer stands for a missing page."""
    return lambda ref: Done(ref, NOT_FOUND, digest, page=False)


def as_partial_page(fetched: Fetched, page: Page | None, *, whole: bool) -> Callable[[RecordRef], Outcome]:
    """The end of a task that got a page of which no digest is taken: it was cut, or has no body."""
    # Only a whole page is asked for conditionally: a 304 must never stand for a redirect, an error or half a page.
    validators, status = validators_of(fetched) if whole else Validators(), fetched.status
    text, shape, outlinks = _brought(page)
    said = (b"" if page is None else page.said_hash) or _said_by_headers(fetched)
    return lambda ref: Done(ref, status, b"", validators, text=text, shape=shape, outlinks=outlinks, said=said)


def _said_by_headers(fetched: Fetched) -> bytes:
    """Eight bytes that stand for an answer whose content is not compared: where it leads, and what tells bodies apart.

    Without them a redirect, or a picture that was not read, would have changed at every visit, and be visited ever more
    often (R2). An error is compared with nothing.
    """
    if fetched.status >= _ERROR:
        return b""
    told = [fetched.header(name) for name in ("location", "etag", "last-modified", "content-length")]
    return xxh3_64_digest("\n".join([str(fetched.status), *told]).encode("utf-8", "surrogatepass"))


def as_given(outcome: Outcome) -> Callable[[RecordRef], Outcome]:
    """An end that has nothing to do with what is stored."""
    return lambda _: outcome
