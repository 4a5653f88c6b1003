"""What the machine-readable reasons mean, in a few words for the closing summary.

A reason that is not listed here is shown by its name alone: `why` has the details of every single case.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nephila.model.exchange import FailureKind
from nephila.model.outcome import DeferReason
from nephila.model.summary import StoppedBy

ENDINGS: Mapping[StoppedBy, str] = MappingProxyType(
    {
        StoppedBy.DONE: "Done: nothing is left that could run within --max-wait.",
        StoppedBy.MAX_PAGES: "Stopped by --max-pages: that many pages are stored.",
        StoppedBy.MAX_DOMAINS: "Stopped by --max-domains: that many domains were fetched from.",
        StoppedBy.MAX_BYTES: "Stopped by --max-total-bytes: that much came over the wire.",
        StoppedBy.MAX_TIME: "Stopped by --max-time: the time is up.",
        StoppedBy.DRAINED: "Drained: what this worker had begun is stored; the rest is for others.",
        StoppedBy.INTERRUPT: "Interrupted: what was fetched is stored, the rest stays queued.",
        StoppedBy.UNSENT: "Ended with part of the archive not uploaded: it waits in the spool, nothing is lost.",
        StoppedBy.STORAGE: "Stopped by a failure: what was settled is safe; mend its cause, and go on.",
        StoppedBy.GONE: "Stopped because its directory was moved or removed: leave it in place while a crawl runs.",
    }
)

ERRORS: Mapping[str, str] = MappingProxyType(
    {
        FailureKind.DNS: "the name could not be looked up just then",
        FailureKind.NO_SUCH_NAME: "the name does not exist",
        FailureKind.CONNECT: "no connection: refused or unreachable",
        FailureKind.TLS: "no secure connection: certificate or handshake",
        FailureKind.TIMEOUT: "no whole answer within the time limit",
        FailureKind.RESET: "the connection broke off",
        FailureKind.PROTOCOL: "what came was no HTTP",
        FailureKind.TOO_LARGE: "headers or unpacked body over the limit",
        FailureKind.BAD_CONTENT: "the body could not be unpacked",
        FailureKind.ADDRESS: "the address is not public (--allow-address opens ranges)",
        FailureKind.PROXY: "the proxy failed",
        "http_429": "the server says that we ask too often",
        "redirect": "redirects that lead nowhere: a circle, or too many",
        "http_4xx": "the server says that there is no such page, or not for us",
        "http_5xx": "the server failed",
        "robots": "robots.txt forbids it",
        "soft_404": "the page that its host sends for everything it does not have",
    }
)

REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        FailureKind.DNS: "check the network, and the name server given with --resolver",
        FailureKind.NO_SUCH_NAME: "check the spelling of the seeds",
        FailureKind.CONNECT: "check the network, and that the server is up",
        FailureKind.TLS: "check that the server speaks https at that port; --ca-file adds an authority of your own",
        FailureKind.TIMEOUT: "check the network, or give more time with --timeout",
        FailureKind.RESET: "check the network, and that the server is up",
        FailureKind.PROTOCOL: "check that a web server listens at that port",
        FailureKind.ADDRESS: "open the range with --allow-address if that is meant",
        FailureKind.PROXY: "check the proxy given with --proxy; --no-proxy-tunnel where it tunnels to port 443 only",
    }
)
"""What to do when not a single server answered, by the commonest failure."""

REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        "scope": "outside what was asked for (--scope)",
        "excluded": "kept out by a pattern (--exclude)",
        "excluded_builtin": "kept out by a built-in pattern (--no-builtin-excludes)",
        "extension": "the name ends like no page's (--no-skip-extensions)",
        "nofollow": "the page asks not to follow it (--no-nofollow)",
        "near_duplicate": "on a page that says nearly what another one says (dedup.near_follow)",
        "depth": "too many hops from a seed (--max-depth)",
        "repeated_segments": "the path repeats itself (traps.repeated_segments)",
        "blocked": "somebody blocked it (nephila block)",
        "alias": "another spelling of a URL that is asked for instead (nephila aliases)",
        "plugin": "a plugin keeps it out (nephila why tells which)",
        "policy_depth": "deeper than the policy of its domain allows (nephila policy)",
        "robots": "robots.txt forbids it",
        "address": "the address is not public (--allow-address opens ranges)",
        "redirect_loop": "redirects go round in a circle",
        "too_many_redirects": "too many redirects in a row",
        "cooling": "fetched not long ago (--cooldown)",
        "trap": "looks like an endless supply of pages",
        "links_per_page": "more links than one page may bring",
        "malformed": "not a URL",
        "scheme": "neither http nor https",
        "no_host": "no host in it",
        "too_long": "the URL is too long",
        "too_many_segments": "the path has too many parts",
    }
)

WAITS: Mapping[str, str] = MappingProxyType(
    {
        DeferReason.ROBOTS: "robots.txt cannot be read at present",
        DeferReason.CRAWL_DELAY: "the site asks for a very long delay",
        DeferReason.DNS: "the name cannot be looked up at present",
        DeferReason.ADDRESS: "their server has had as many requests as it may have at once",
        DeferReason.COOLING: "fetched not long ago (--cooldown)",
        DeferReason.STOPPED: "was under way when the crawl stopped",
        DeferReason.RENDER: "wait for a browser (docs/rendering.md)",
        DeferReason.RETRY: "failed and will be tried again",
        DeferReason.RETRY_AFTER: "the server said when to come back",
        DeferReason.HOST_LIMIT: "the host has had its share (--max-pages-per-host)",
        DeferReason.PAUSED: "somebody paused the domain (nephila policy)",
        DeferReason.BLOCKED: "somebody blocked it (nephila block)",
        DeferReason.HOURS: "the domain may be asked at other hours only",
        DeferReason.ERRORS: "the domain failed too often and is left alone for a while",
        DeferReason.SPILLED: "their host's queue is being brought back from the database",
        "queued": "waiting for their host's turn",
    }
)

UNANSWERED = frozenset({DeferReason.ROBOTS, DeferReason.DNS, DeferReason.RETRY, DeferReason.ERRORS})
"""Why URLs wait whose servers did not answer, or not as they should."""

PARKED: Mapping[str, str] = MappingProxyType(
    {
        DeferReason.BUDGET: "more than host or domain has earned by now",
        DeferReason.TRAP: "of a shape that brings nothing new (nephila traps)",
        DeferReason.COVERAGE: "of known domains, until enough others were reached",
    }
)
