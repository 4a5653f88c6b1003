"""One question and its answer, as they were on the wire."""

from __future__ import annotations

import re
from dataclasses import field
from enum import StrEnum
from functools import lru_cache

from .noun import noun

_TYPE = ":type"
"""Where an answer's Content-Type headers are noted (`Fetched.memo`)."""
_ESSENCE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")


class FailureKind(StrEnum):
    """Why there is no usable answer (H5). The web misbehaving is a value, not an exception."""

    DNS = "dns"
    """The name does not resolve now: server failure, timeout."""
    NO_SUCH_NAME = "no_such_name"
    """The name does not exist (NXDOMAIN, or no address records)."""
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    """The connection ended before the answer was complete enough to keep."""
    PROTOCOL = "protocol"
    """What came is no HTTP."""
    TOO_LARGE = "too_large"
    """The header block alone is over its limit, or the decoded body is a bomb."""
    BAD_CONTENT = "bad_content"
    """The content coding cannot be decoded."""
    ADDRESS = "address"
    """The address is not one that we may connect to (H6)."""
    ADDRESS_BUSY = "address_busy"
    """The address has had enough for now (P2). No failure of anybody: nothing was sent, and it is no error."""
    PROXY = "proxy"


REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Statuses of answers that lead elsewhere, if they say where."""

TRANSIENT = frozenset(
    {
        FailureKind.DNS,
        FailureKind.CONNECT,
        FailureKind.TIMEOUT,
        FailureKind.RESET,
        FailureKind.PROXY,
    }
)
"""Kinds worth another try; the others are final."""


class Truncation(StrEnum):
    """Why a stored answer is not whole: the values of WARC-Truncated."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"
    UNSPECIFIED = "unspecified"
    """We did not want the body: its type is not one that was asked for (H7)."""


@noun
class FetchRequest:
    """What the fetcher is asked to get. One exchange: a redirect is an answer, never followed (DESIGN 11)."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    """On top of the fetcher's own, e.g. If-None-Match."""
    accept_types: tuple[str, ...] | None = None
    """Media types whose body is wanted; None means any. Applies to 2xx answers only."""
    max_body_bytes: int | None = None
    """Another limit than the fetcher's own, e.g. robots.txt's 500 KiB."""
    user_agent: str = ""
    """Said instead of the fetcher's own, where a policy of the domain wants it (R4)."""


@noun
class Fetched:
    """An answer, whatever its status. `head + payload` is exactly what the server sent, byte for byte.

    Over HTTP/2 request and head are in the spelling of HTTP/1.1, and the payload is the data without its frames.
    """

    url: str
    request: bytes
    """What was sent, verbatim."""
    head: bytes
    """Status line and headers up to and including the empty line, verbatim."""
    payload: bytes
    """The bytes after the head as they were on the wire: chunk framing and content coding included."""
    status: int
    headers: tuple[tuple[str, str], ...]
    """Names in lower case, values decoded as latin-1 and stripped, in order, repeats kept."""
    body: bytes
    """The payload without transfer and content coding; empty when the type was not wanted."""
    address: str
    """The IP address that answered; the proxy's when there is one."""
    sent_at: int
    """When the request left: UTC milliseconds."""
    ended_at: int
    """When the answer was complete: UTC milliseconds."""
    elapsed_ms: int
    """From sending to the end of the answer, on a clock that does not jump."""
    truncated: Truncation | None = None
    unwanted: bool = False
    """The type is not one of `accept_types`: the body was not read."""
    bad_certificate: str = ""
    """Why the certificate or the protocol would have been refused, where the settings allowed it all the same."""
    sent_ms: int = 0
    """When the request left, on the clock that does not jump: milliseconds since the machine booted."""
    stale_address: bool = False
    """The last known address of the name was used, because no name server answered (H4); told by the event alone."""
    protocol: str = ""
    """``h2`` where HTTP/2 was spoken; nothing where the status line says what it was."""
    memo: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was found out before and is asked for again: headers by their names, and under names that begin with a
    colon, as no header's does, what others make of it. Says nothing that the rest does not say."""

    def without_content(self) -> Fetched:
        """The same without payload and body: for whoever must wait, and needs neither."""
        kept = Fetched(
            self.url,
            self.request,
            self.head,
            b"",
            self.status,
            self.headers,
            b"",
            self.address,
            self.sent_at,
            self.ended_at,
            self.elapsed_ms,
            self.truncated,
            self.unwanted,
            self.bad_certificate,
            self.sent_ms,
            self.stale_address,
            self.protocol,
        )
        kept.memo.update(self.memo)
        return kept

    def header(self, name: str) -> str:
        """The first value of a header by its lower-case name, or an empty string."""
        if not self.memo:
            self.memo.update(reversed(self.headers))
        return self.memo.get(name, "")

    @property
    def content_type(self) -> str:
        """What the Content-Type headers say, several joined by a comma: the last usable one counts (Fetch 2.2.2)."""
        found = self.memo.get(_TYPE)
        if found is None:
            found = self.header("content-type")
            if found:
                found = ", ".join([value for name, value in self.headers if name == "content-type"])
            self.memo[_TYPE] = found
        return found


@noun
class FetchFailed:
    """No answer worth keeping."""

    url: str
    kind: FailureKind
    detail: str
    """One sentence for people."""
    sent: bool
    """Whether any byte reached the host: then its delay starts anew."""
    address: str = ""
    started_at: int = 0
    ended_at: int = 0
    elapsed_ms: int = 0
    wait_ms: int = 0
    """When to come back, where `kind` is ADDRESS_BUSY."""
    sent_ms: int = 0
    """When it was begun, on the clock that does not jump."""


Answer = Fetched | FetchFailed


@lru_cache(maxsize=256)
def told_type(content_type: str) -> str:
    """The type that `Fetched.content_type` names, without parameters, in lower case: of several the last usable one."""
    for one in reversed(content_type.split(",")):
        essence = one.partition(";")[0].strip().lower()
        if essence != "*/*" and _ESSENCE.fullmatch(essence):
            return essence
    return content_type.partition(";")[0].strip().lower()
