"""What the machine-readable reasons mean, in words that follow "because": used by `why` (T8).

A reason that is not listed is told by its own name, so that a new one is never hidden; a test holds that every rule of
the crawler has its words here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nephila.model.outcome import DeferReason

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "scope": "outside the scope of the crawl",
        "excluded": "an exclude pattern matches",
        "excluded_builtin": "a built-in exclude: forms, sessions and carts are not crawled",
        "extension": "its file extension says that it is no page",
        "depth": "too many hops from a seed",
        "repeated_segments": "its path repeats itself, as endless ones do",
        "nofollow": "the page or the link asks not to follow it",
        "links_per_page": "the page that it was found on has more links than are taken from one (scope.links_per_page)",
        "near_duplicate": "it was found on a page that says nearly what another one says",
        "robots": "robots.txt forbids it",
        "blocked": "a person blocked it",
        "region": "its domain is pinned to another group of workers",
        "taken_down": "a takedown took what was stored of it out of the archive",
        "policy_depth": "deeper than the policy of its domain allows",
        "address": "it leads to an address that is not public",
        "redirect_loop": "it redirects in a circle",
        "too_many_redirects": "it redirects too often",
        "malformed": "it is no URL",
        "scheme": "neither http nor https",
        "no_host": "there is no host in it",
        "too_long": "the URL is too long",
        "too_many_segments": "its path has too many parts",
        "alias": "it is an alias of another URL, which is asked for instead",
        "plugin": "a plugin keeps it out",
        "gone": "proven gone: missing in every answer for days",
        DeferReason.ROBOTS: "the site's robots.txt cannot be fetched, so nothing may be asked until it can",
        DeferReason.RETRY: "it failed and will be tried again",
        DeferReason.COOLING: "it was fetched too short a while ago",
        DeferReason.HOST_LIMIT: "its host has had its pages for this cycle",
        DeferReason.CRAWL_DELAY: "its robots.txt asks for a very long delay",
        DeferReason.RETRY_AFTER: "the server said when to come back",
        DeferReason.STOPPED: "the crawl was stopped",
        DeferReason.DNS: "the name of its host could not be looked up",
        DeferReason.ADDRESS: "the server behind its host has had as many requests of ours as it may have at once",
        DeferReason.PAUSED: "a person paused its domain",
        DeferReason.HOURS: "its domain may be asked at other hours only",
        DeferReason.ERRORS: "its domain failed too often and is left alone for a while",
        DeferReason.BUDGET: "more than its host has earned",
        DeferReason.TRAP: "URLs of its shape stopped bringing anything new",
        DeferReason.COVERAGE: "its domain is known, and new domains are looked for first",
        DeferReason.RENDER: "it needs a browser, and every browser is busy",
        DeferReason.DUE: "it was fetched, and its next visit is planned",
        DeferReason.SPILLED: "its host's queue is kept in the database, and is being brought back",
    }
)

VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "queued": "queued: it waits for its turn",
        "in_progress": "in progress: it is being fetched now",
        "delayed": "delayed: it waits for its time",
        "parked": "parked: known and kept, but not queued for now",
        "stored_pending": "stored, not yet confirmed as durable",
        "completed": "fetched and stored",
        "dropped": "decided against",
        "dead_letter": "given up",
        "refused": "found, but not admitted",
    }
)
