"""Which headers a fetch hook may add to a request.

What belongs to the crawl is its own: who we are (P6), what we accept, how the connection is kept, whether a page is
asked for conditionally. Credentials are nobody's, unless the settings allow them (K4); what is allowed stands in the
archive, as everything that was sent.
"""

from __future__ import annotations

import re

OWN = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "content-type", "expect", "forwarded", "from", "host"),
        *("http2-settings", "keep-alive", "range", "signature", "signature-agent", "signature-input", "te", "trailer"),
        *("transfer-encoding", "upgrade", "user-agent", "via", "x-forwarded-for", "x-real-ip"),
    }
)
OWN_BEGINNINGS = ("if-", "proxy-", "sec-", ":")
CREDENTIALS = re.compile(
    r"(^|-)(authorization|authentication|cookie2?|credentials?|csrf|password|secret|session|token|apikey|key|auth|jwt)(-|$)"
)
"""By any word of the name: ``X-Api-Key``, ``X-Auth-Token``, ``Authorization``, ``Cookie``."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # token, RFC 9110 5.6.2
_VALUE = re.compile(r"[^\x00\r\n\u0100-\U0010ffff]{0,4096}")


def objection(name: str, value: str, *, credentials: bool) -> str:
    """Why a header is not added; empty where it may be. `credentials` are allowed or not."""
    lowered = name.lower()
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        return "it cannot be sent"
    if lowered in OWN or lowered.startswith(OWN_BEGINNINGS):
        return "it belongs to the crawl"
    if not credentials and CREDENTIALS.search(lowered):
        return "it carries credentials (plugins.allow_credentials allows them)"
    return ""
