"""A bare domain is tried as https first, then as http (S1): the rule for the second step.

The frontier knows nothing of it. Whoever runs the crawl remembers which seeds were bare (`SeedAccepted.bare`). When
the https fetch of such a seed, or of the robots.txt that must come before it, ends for good in a failure of a
`CONNECTION_LEVEL` kind, its `http_twin` is admitted like any seed. An answer, whatever its status, settles the
question: then https is what the site speaks.
"""

from __future__ import annotations

from nephila.model.exchange import FailureKind

CONNECTION_LEVEL = frozenset(
    {
        FailureKind.DNS,
        FailureKind.CONNECT,
        FailureKind.TLS,
        FailureKind.TIMEOUT,
        FailureKind.RESET,
        FailureKind.PROTOCOL,
    }
)
"""Failures after which plain http may still be answered. A name that does not exist, or an address that may not be
asked, is the same for both schemes and is not tried twice."""

_HTTPS = "https://"


def http_twin(url: str) -> str | None:
    """The same URL over plain http, port kept when one was written; None when `url` is not https."""
    if not url.startswith(_HTTPS):
        return None
    return "http://" + url[len(_HTTPS) :]
