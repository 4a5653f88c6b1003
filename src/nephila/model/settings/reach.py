"""Where a crawl goes and where it ends: scope, limits, and what counts as one address."""

from __future__ import annotations

from dataclasses import dataclass

from .declaration import setting

LONGEST_URL = 32_000
"""Characters: frontiers count them in fifteen bits, with a few of their own beside them."""


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """Which URLs are followed (S2)."""

    mode: str = setting(
        "domain", "what to follow from the seeds", flag="scope", choices=("all", "domain", "host", "prefix", "list")
    )
    domains: tuple[str, ...] = setting((), "registrable domains to stay in, for mode list", flag="scope-domain")
    include: tuple[str, ...] = setting((), "regexes of URLs to follow whatever scope and excludes say", flag="include")
    exclude: tuple[str, ...] = setting((), "regexes of URLs to keep out", flag="exclude")
    builtin_excludes: bool = setting(True, "keep out of /login, /admin, /cart and the like", flag="builtin-excludes")
    skip_extensions: bool = setting(
        True, "skip URLs whose file extension is not a page's: images, media, archives", flag="skip-extensions"
    )
    nofollow: bool = setting(True, "obey rel=nofollow and robots nofollow", flag="nofollow")
    images: bool = setting(False, "follow img and srcset as links too", flag="images")
    requisites: bool = setting(
        False,
        "also store what pages are shown with, on other hosts too: style sheets, scripts, pictures, fonts, frames",
        flag="page-requisites",
    )
    links_per_page: int = setting(500, "links of one page that go to the frontier (X1)", low=1)


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Where a crawl ends (S3). 0 means no limit, but of the depth: there it means the seeds alone, as in policies."""

    max_depth: int = setting(15, "hops from a seed; 0 fetches the seeds alone", flag="max-depth", low=0, high=250)
    max_pages: int = setting(0, "pages in all", flag="max-pages", low=0)
    max_pages_per_host: int = setting(100_000, "pages of one host in a cycle", flag="max-pages-per-host", low=0)
    max_domains: int = setting(0, "registrable domains in all", flag="max-domains", low=0)
    max_total_bytes: int = setting(0, "bytes on the wire in all", flag="max-total-bytes", low=0)
    max_time_s: float = setting(0.0, "seconds of wall time", flag="max-time", low=0)
    target_domains: int = setting(
        0,
        "coverage mode: until so many registrable domains were fetched, queue only links that add one (S4)",
        flag="target-domains",
        low=0,
    )
    max_wait_s: float = setting(120.0, "end when nothing can run within so many seconds", flag="max-wait", low=0)


@dataclass(frozen=True, slots=True)
class UrlSettings:
    """The normal form and its limits (U2, U4)."""

    sort_query: bool = setting(True, "sort query parameters")
    drop_tracking: bool = setting(True, "drop tracking and session parameters")
    drop_trailing_slash: bool = setting(True, "drop the trailing slash of paths")
    extra_tracking: tuple[str, ...] = setting((), "further parameter names to drop; a trailing * matches the rest")
    exceptions: tuple[str, ...] = setting((), "rules that are off for a domain, each as DOMAIN:RULE")
    max_length: int = setting(2048, "characters of a URL", low=16, high=LONGEST_URL)
    max_segments: int = setting(15, "path segments of a URL", low=1, high=1000)
