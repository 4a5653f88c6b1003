"""Every setting there is, in small groups: each stage is given its own group and never the whole.

A field says all that is to be said of a setting: default, meaning, range, and the flag of `nephila crawl` that sets it.
`config` reads these declarations to build the configuration file, the environment variables, the flags and `config
show`; a setting that is not here does not exist. SPEC ids name where a default comes from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def setting(
    default: Any,  # noqa: ANN401 - the field's annotation is the type
    help_text: str,
    *,
    flag: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:  # noqa: ANN401 - as dataclasses.field
    """A field that knows its help text, its range and its flag (without the leading dashes)."""
    metadata = {"help": help_text, "flag": flag, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata=metadata)


RENDER_CHOICES = ("auto", "never")
RESOURCE_CHOICES = ("any", "site", "none")


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """Which URLs are followed (S2)."""

    mode: str = setting(
        "domain", "what to follow from the seeds", flag="scope", choices=("all", "domain", "host", "prefix", "list")
    )
    domains: tuple[str, ...] = setting((), "registrable domains to stay in, for mode list", flag="scope-domain")
    include: tuple[str, ...] = setting((), "regexes that let a URL in whatever else says no", flag="include")
    exclude: tuple[str, ...] = setting((), "regexes that keep a URL out", flag="exclude")
    builtin_excludes: bool = setting(True, "keep out of /login, /admin, /cart and the like", flag="builtin-excludes")
    skip_extensions: bool = setting(
        True, "keep out URLs whose file extension is no page: images, media, archives", flag="skip-extensions"
    )
    nofollow: bool = setting(True, "obey rel=nofollow and robots nofollow", flag="nofollow")
    images: bool = setting(False, "follow img and srcset as links too", flag="images")
    links_per_page: int = setting(500, "links of one page that go to the frontier (X1)", low=1)


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Where a crawl ends (S3). 0 means no limit."""

    max_depth: int = setting(15, "hops from a seed", flag="max-depth", low=0, high=250)
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
    max_length: int = setting(2048, "characters of a URL", low=16, high=65_536)
    max_segments: int = setting(15, "path segments of a URL", low=1, high=1000)


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How gently a host is treated (P2, P3)."""

    delay_s: float = setting(
        1.0, "seconds between the end of an answer and the next request to a host", flag="delay", low=0
    )
    slow_after_s: float = setting(2.0, "an answer slower than this lengthens the delay", low=0)
    slow_factor: float = setting(1.5, "by this factor", low=1)
    slow_max_s: float = setting(30.0, "up to this", low=0)
    busy_factor: float = setting(2.0, "429 and 503 lengthen the delay by this factor", low=1)
    busy_max_s: float = setting(60.0, "up to this", low=0)
    forbidden_factor: float = setting(
        1.25, "403 lengthens the delay by this factor, up to slow_max_s: one is undone by one fast answer", low=1
    )
    fast_below_s: float = setting(0.5, "an answer faster than this shortens the delay towards the base", low=0)
    fast_factor: float = setting(0.8, "by this factor", low=0, high=1)
    max_crawl_delay_s: float = setting(300.0, "a longer Crawl-delay parks the host", low=0)
    address_concurrency: int = setting(
        4, "requests at once to one IP address (IPv6: one /64), whatever the host; not under --delay 0", low=1
    )
    address_rate: float = setting(10.0, "requests a second to one IP address (IPv6: one /64)", low=0.001)
    address_limits: tuple[str, ...] = setting(
        (), "ranges with limits of their own, each as CIDR=CONCURRENCY/RATE (content networks serve many hosts)"
    )
    pause_window: int = setting(
        100, "requests of a domain that are looked back on for its errors (P4)", low=10, high=1000
    )
    pause_share: float = setting(0.5, "a larger share of errors among them pauses the domain", low=0, high=1)
    pause_s: float = setting(3600.0, "seconds of that pause", low=1)
    demote_after: int = setting(5, "answers with 5xx in a row after which a domain's class drops one level", low=1)
    heavy_s: float = setting(
        1.0, "a host rests at least so many seconds for each megabyte of an unpacked answer beyond the first", low=0
    )
    max_retry_after_s: float = setting(86_400.0, "a longer Retry-After counts as this", low=0)


@dataclass(frozen=True, slots=True)
class RobotsSettings:
    """robots.txt (P1)."""

    obey: bool = setting(True, "obey robots.txt; off prints a warning", flag="robots")
    max_bytes: int = setting(500 * 1024, "bytes of a robots.txt that are read (RFC 9309, 2.5)", low=1024)
    fresh_s: float = setting(86_400.0, "seconds that rules stay in force", low=1)
    retry_s: float = setting(300.0, "seconds until an unreachable robots.txt is tried again, doubling", low=1)
    retry_max_s: float = setting(21_600.0, "the doubling ends here", low=1)
    give_up_s: float = setting(30 * 86_400.0, "unreachable for so long: no restrictions", low=0)
    permissive: bool = setting(False, "treat an unreachable robots.txt as no restrictions at once")
    max_hops: int = setting(5, "redirects of a robots.txt (RFC 9309, 2.3.1.2)", low=0, high=20)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """The wire (H1, H2, H6, H7)."""

    user_agent: str = setting(
        "Nephila/0.1 (+https://nephila.invalid/bot)",
        "User-Agent; its first word is matched in robots.txt",
        flag="user-agent",
    )
    concurrency: int = setting(
        256, "exchanges in flight at once, in each process", flag="concurrency", low=1, high=100_000
    )
    connect_timeout_s: float = setting(10.0, "seconds to connect, TLS included", low=0.1)
    timeout_s: float = setting(30.0, "seconds for a whole fetch", flag="timeout", low=0.1)
    max_bytes: int = setting(10_000_000, "bytes of one answer, then it is cut", flag="max-bytes", low=1)
    max_decoded_bytes: int = setting(20_000_000, "bytes of one answer after decompression", low=1)
    max_header_bytes: int = setting(65_536, "bytes of the header block", low=1024)
    max_hops: int = setting(10, "redirects in a row", low=0, high=50)
    verify_unchanged_every: int = setting(
        32,
        "of pages that could be asked for conditionally, one in so many is asked for in full all the same, another one "
        "in each cycle, and all of a host that was caught with wrong validators; 0 trusts every server",
        low=0,
    )
    keep_alive_s: float = setting(60.0, "seconds an idle connection is kept", low=0)
    kept_connections: int = setting(
        4096,
        "idle connections kept at once, as far as file descriptors reach; over TLS some 55 KB of memory each",
        low=0,
        high=100_000,
    )
    authorities: str = setting("", "PEM file of certificate authorities to trust beside the usual ones", flag="ca-file")
    bad_certificates: bool = setting(
        False, "accept bad certificates and outdated TLS, and record it", flag="bad-certificates"
    )
    proxy: str = setting("", "http://, https:// or socks5:// proxy for all requests", flag="proxy")
    proxy_tunnel: bool = setting(
        True, "tunnel plain http through the proxy too; off lets it resolve names itself", flag="proxy-tunnel"
    )
    allow_addresses: tuple[str, ...] = setting((), "non-public ranges that may be fetched (CIDR)", flag="allow-address")
    source_addresses: tuple[str, ...] = setting((), "local addresses to send from, fixed by host")
    types: tuple[str, ...] = setting(
        ("text/html", "application/xhtml+xml"), "media types that are read and saved; */* for all", flag="type"
    )
    max_in_flight_bytes: int = setting(256_000_000, "bytes of bodies in memory at once", low=1_000_000)


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """Names to addresses (H4)."""

    resolvers: tuple[str, ...] = setting((), "HOST:PORT of name servers; the system's when empty", flag="resolver")
    timeout_s: float = setting(3.0, "seconds for one try", low=0.1)
    tries: int = setting(3, "tries over all resolvers", low=1, high=20)
    max_ttl_s: float = setting(3600.0, "seconds that an answer is kept at most", low=0)
    min_ttl_s: float = setting(5.0, "and at least", low=0)
    negative_ttl_s: float = setting(
        60.0,
        "seconds that a failure is kept, and that a name does not exist where its zone does not say how long",
        low=0,
    )
    stale_s: float = setting(
        86_400.0, "the last known addresses are used for so many seconds where no name server answers", low=0
    )
    cache_size: int = setting(100_000, "names in the cache", low=1)


@dataclass(frozen=True, slots=True)
class FrontierSettings:
    """The queue (F1-F3, S5)."""

    lease_s: float = setting(300.0, "seconds of a lease; renewed while its holder lives", low=1)
    urls_per_lease: int = setting(8, "URLs of one host in a lease where its delay is short", low=1, high=1000)
    look_ahead_ms: int = setting(100, "hosts are claimed so long before they may be asked", low=0, high=10_000)
    cooldown_s: float = setting(0.0, "seconds before a URL may be queued again", flag="cooldown", low=0)
    max_retries: int = setting(3, "tries after the first, then the URL is a dead letter", low=0, high=100)
    retry_waits_s: tuple[float, ...] = setting((5.0, 30.0, 180.0), "seconds before each retry, +-20 % (H5)")
    map_bytes: int = setting(1 << 40, "address space of the store (sparse: no disk is taken)", low=1 << 20)
    sync: bool = setting(True, "sync every group commit to disk")
    linger_ms: float = setting(5.0, "how long a group commit waits for company", low=0, high=100)
    max_refusals: int = setting(1_000_000, "refused URLs remembered for why", low=0)
    spill_above: int = setting(
        2_000,
        "of a fleet: where a host has more URLs waiting, the far ends of its queues are kept in the database; 0: never",
        low=0,
    )
    spill_keep: int = setting(
        500, "and URLs of each class that stay in the engine then, and are brought back before they end", low=1
    )


@dataclass(frozen=True, slots=True)
class PrioritySettings:
    """What goes first (R1, F1, F4, F7): points of a URL's score, and how the classes share the fetches."""

    authority: int = setting(40, "points for the highest rank of page and domain", low=0, high=100)
    depth: int = setting(20, "points of a seed; each hop from it costs depth_step", low=0, high=100)
    depth_step: int = setting(2, "points that a hop costs", low=0, high=100)
    freshness: int = setting(
        20, "points for a page that is known to have changed since its last visit", low=0, high=100
    )
    news: int = setting(20, "points for news", low=0, high=100)
    sitemap: int = setting(15, "points for being listed in a sitemap", low=0, high=100)
    document: int = setting(-10, "points for a PDF", low=-100, high=0)
    other: int = setting(-20, "points for what is neither HTML nor PDF", low=-100, high=0)
    high_from: int = setting(45, "a score from here on is of the class high", low=0, high=101)
    medium_from: int = setting(20, "and from here on of the class medium", low=0, high=101)
    high_share: int = setting(80, "weight of the class high in the draw", low=1)
    medium_share: int = setting(15, "weight of the class medium", low=1)
    low_share: int = setting(5, "weight of the class low", low=1)
    new_share: int = setting(30, "weight of URLs that were never fetched, against those due again", low=1)
    due_share: int = setting(70, "weight of URLs that are due again", low=1)
    ageing_s: float = setting(30 * 86_400.0, "seconds of waiting after which any URL has the highest priority", low=60)
    starving_s: float = setting(86_400.0, "a host with work that waits so many seconds is starving", low=1)
    reserve: float = setting(0.2, "share of the fetches that is kept for starving hosts", low=0, high=1)


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """How much of a host is taken on before it has shown what it is worth (F5, T1)."""

    queued_per_host: int = setting(
        100_000, "URLs of one host that are queued at once; the rest is parked on disk", low=1
    )
    first_urls: int = setting(1_000, "URLs that an unknown host may have queued in all", low=1)
    urls_per_page: int = setting(50, "further ones that it earns by a page with new content", low=0)
    urls_per_referrer: int = setting(1_000, "and by being linked from another registrable domain", low=0)
    first_hosts: int = setting(50, "hosts of an unknown registrable domain that are taken on", low=1)
    hosts_per_useful_host: int = setting(2, "further ones that it earns by a host with new content", low=0)
    hosts_per_referrer: int = setting(10, "and by being linked from another registrable domain", low=0)
    queued_per_prefix: int = setting(20_000, "URLs queued under one first path segment of a host (T1)", low=1)


@dataclass(frozen=True, slots=True)
class TrapSettings:
    """What is taken for a trap (T1, T2, T5)."""

    repeated_segments: int = setting(3, "a path in which one segment stands so often in a row is refused", low=2)
    slow_after: int = setting(20, "fetches of one URL skeleton in a row without new content until it is slowed", low=1)
    stop_after: int = setting(50, "and until it is quarantined", low=2)
    slow_s: float = setting(60.0, "seconds between two fetches of a slowed skeleton", low=0)
    probe_s: float = setting(7 * 86_400.0, "seconds until one page of a quarantined skeleton is tried again", low=1)
    poured_per_hour: int = setting(10_000, "new URLs an hour that pages of one skeleton may bring", low=1)
    times_its_like: float = setting(100.0, "a domain with so many times the URLs of the median is looked at", low=1)


@dataclass(frozen=True, slots=True)
class DedupSettings:
    """Pages that say nearly what another one said before (D3)."""

    near: bool = setting(True, "look for near-duplicates, and mark them with their original", flag="near-duplicates")
    near_distance: int = setting(6, "bits of the 64-bit hash of the main text that may differ", low=0, high=7)
    near_resemblance: float = setting(
        0.6, "share of the text that must be the same, by the sketches; 0 decides by the hash alone", low=0, high=1
    )
    near_plain: bool = setting(False, "decide by the hash alone, at distance 3, whatever the two settings above say")
    near_min_words: int = setting(50, "pages with fewer words of main text are not compared", low=1)
    near_follow: bool = setting(True, "follow the links of near-duplicates")
    near_store: bool = setting(True, "store the bodies of near-duplicates; off stores their headers and links")


@dataclass(frozen=True, slots=True)
class AliasSettings:
    """What is learned of sites while crawling: aliases (D4, T3) and pages that stand for missing ones (T4)."""

    learn: bool = setting(
        True, "learn which parameters mean nothing and which hosts always redirect, and act on it", flag="aliases"
    )
    votes: int = setting(5, "comparisons in a row that must agree before a rule is believed", low=2, high=1000)
    verify_every: int = setting(
        50, "of the URLs that a rule catches, the first of so many is let through to test the rule; 0 for none", low=0
    )
    soft_404: bool = setting(
        True, "ask a suspicious host once for a page that cannot exist, and take its like for missing", flag="soft-404"
    )


@dataclass(frozen=True, slots=True)
class RecrawlSettings:
    """When a page is fetched again (R2, R5)."""

    enabled: bool = setting(True, "plan the next visit of every page", flag="recrawl")
    first_s: float = setting(7 * 86_400.0, "seconds until the second visit of an ordinary page", low=1)
    news_home_s: float = setting(900.0, "and of the home page of a news domain", low=1)
    min_s: float = setting(900.0, "the shortest interval", low=1)
    max_s: float = setting(30 * 86_400.0, "the longest interval", low=1)
    factor: float = setting(2.0, "the interval is divided by this when the content changed, else multiplied", low=1)
    gone_after: int = setting(3, "answers of 404 or 410 in a row that prove a page gone", low=1)
    gone_over_s: float = setting(3 * 86_400.0, "if they are spread over at least so many seconds", low=0)
    gone_max_s: float = setting(180 * 86_400.0, "the longest interval at which a gone page is asked for", low=1)
    sitemap_first_s: float = setting(86_400.0, "seconds until the second visit of a sitemap", low=1)
    sitemap_min_s: float = setting(3600.0, "the shortest interval of a sitemap", low=1)
    sitemap_max_s: float = setting(7 * 86_400.0, "the longest interval of a sitemap", low=1)
    feed_first_s: float = setting(3600.0, "seconds until the second visit of a feed", low=1)
    feed_min_s: float = setting(900.0, "the shortest interval of a feed", low=1)
    feed_max_s: float = setting(86_400.0, "the longest interval of a feed", low=1)


@dataclass(frozen=True, slots=True)
class SitemapSettings:
    """Sitemaps and feeds (X3)."""

    follow: bool = setting(
        True, "read sitemaps and feeds: those that robots.txt and pages name, and what they list", flag="sitemaps"
    )
    guess: bool = setting(
        True, "ask a host once for /sitemap.xml where its robots.txt names no sitemap", flag="guess-sitemap"
    )
    max_bytes: int = setting(
        50 * 1024 * 1024, "bytes of one sitemap or feed, on the wire and unpacked (sitemaps.org)", low=1024
    )
    per_robots: int = setting(500, "sitemaps of one robots.txt that are taken", low=0)
    at_once: int = setting(8, "sitemaps and feeds that are fetched and read at once, in each process", low=1)
    batch: int = setting(500, "URLs of a list that are admitted at once", low=1, high=10_000)
    priority: int = setting(5, "points, up or down, for the priority that a believed sitemap gives a page", low=0)
    news_s: float = setting(2 * 86_400.0, "what was published within so many seconds is news", low=0)
    evidence: int = setting(5, "visits that must speak for or against a site's lastmod before it is judged", low=1)
    wrong_share: float = setting(
        0.5, "a site whose lastmod was wrong in a larger share of them is not believed", low=0, high=1
    )
    sampled: int = setting(1_000, "listed pages of a host whose lastmod is checked against their content", low=0)


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """WARC files (W1)."""

    url: str = setting(
        "", "store for the archive, as s3://bucket/prefix; empty keeps it in the crawl directory (W2)", flag="archive"
    )
    layout: str = setting("rolling", "how files are named", flag="warc-layout", choices=("rolling", "domain-hour"))
    max_bytes: int = setting(1_000_000_000, "a file is rolled at this size", low=1024)
    max_age_s: float = setting(3600.0 * 24, "or at this age", low=1)
    prefix: str = setting("nephila", "first word of every file name")
    sync_ms: float = setting(100.0, "synced at least so often", low=1, high=10_000)
    operator: str = setting("", "operator field of warcinfo")


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The store that archive.url names (W2). Credentials are no settings: they are looked for where S3 tools do."""

    endpoint: str = setting("", "URL of the store; Amazon's for the region when empty", flag="s3-endpoint")
    region: str = setting("", "region of the bucket; us-east-1 when empty", flag="s3-region")
    path_style: str = setting(
        "auto", "the bucket in the path and not in the host name; auto: with an endpoint", choices=("auto", "yes", "no")
    )
    authorities: str = setting("", "PEM file of certificate authorities to trust beside the usual ones")
    connect_timeout_s: float = setting(10.0, "seconds to connect", low=0.1)
    timeout_s: float = setting(60.0, "seconds without a sign of life after which a request is given up", low=0.1)
    uploads: int = setting(4, "uploads at once, in each process", low=1, high=64)
    max_bytes_per_s: int = setting(0, "bytes a second that are uploaded, in each process; 0 is no limit", low=0)
    part_bytes: int = setting(
        64 * 1024 * 1024, "larger objects are uploaded in parts of this size", low=5 * 1024 * 1024, high=5 * 1024**3
    )


@dataclass(frozen=True, slots=True)
class SpoolSettings:
    """Where files wait for their upload (W2)."""

    segment_bytes: int = setting(64_000_000, "a file is closed and uploaded at this size", low=1024)
    segment_age_s: float = setting(60.0, "or at this age; in the layout domain-hour with its hour", low=0.1)
    max_bytes: int = setting(100_000_000_000, "bytes that may wait; then fetching does", low=1_000_000)
    max_share: float = setting(0.8, "share of the free disk that may be taken by them", low=0.01, high=1)
    retry_s: float = setting(1.0, "seconds until a store that is away is asked again, doubling, with jitter", low=0.01)
    retry_max_s: float = setting(60.0, "the doubling ends here", low=0.01)


@dataclass(frozen=True, slots=True)
class CatalogueSettings:
    """Where the catalogue is (W3). Passwords are no settings: they are read from a file or from PGPASSWORD."""

    url: str = setting(
        "",
        "PostgreSQL for the catalogue, as postgresql://USER@HOST:PORT/DATABASE; empty keeps it in the crawl directory",
        flag="catalogue",
    )
    name: str = setting("", "name of the crawl there, which its schema is called by; that of its directory when empty")
    password_file: str = setting("", "file whose first line is the password; else PGPASSWORD or ~/.pgpass")
    tls: str = setting(
        "auto",
        "how the line is secured; auto: verified, but for a server on this machine",
        choices=("auto", "verified", "unverified", "off"),
    )
    authorities: str = setting("", "PEM file of certificate authorities to trust beside the usual ones")
    connections: int = setting(4, "connections at once, in each process", low=1, high=100)
    connect_timeout_s: float = setting(10.0, "seconds to connect", low=0.1)
    timeout_s: float = setting(60.0, "seconds after which a batch or a question is given up and asked again", low=0.1)
    open_s: float = setting(30.0, "seconds that the start waits for a server that is away", low=0)
    retry_s: float = setting(0.2, "seconds until a server that is away is asked again, doubling, with jitter", low=0.01)
    retry_max_s: float = setting(10.0, "the doubling ends here", low=0.01)
    batch_rows: int = setting(5_000, "rows in one transaction", low=1, high=100_000)
    max_waiting: int = setting(
        20_000,
        "rows that may wait in memory for a catalogue that is away or slow, in each process; then fetching does",
        low=1,
    )


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Messages for others, one for each page (W7). Passwords are no settings: a file or NEPHILA_STREAM_PASSWORD."""

    url: str = setting(
        "",
        "where they go: redis://USER@HOST:PORT/DB, nats://USER@HOST:PORT, kafka://USER@HOST:PORT,HOST:PORT or "
        "file:///PATH; empty for nowhere",
        flag="stream",
    )
    name: str = setting("nephila.pages", "the stream, subject or topic")
    answers: bool = setting(False, "tell of every answer, redirects and errors too, and not of pages only")
    password_file: str = setting("", "file whose first line is the password; else NEPHILA_STREAM_PASSWORD")
    mechanism: str = setting(
        "SCRAM-SHA-512", "for Kafka: how a user is authenticated", choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    )
    tls: str = setting(
        "auto",
        "how the line is secured; auto: verified, but for a server on this machine",
        choices=("auto", "verified", "unverified", "off"),
    )
    authorities: str = setting("", "PEM file of certificate authorities to trust beside the usual ones")
    keep: int = setting(0, "for Redis: entries that the stream keeps, more or less; 0 is all of them", low=0)
    batch: int = setting(500, "messages that are sent and acknowledged together", low=1, high=10_000)
    timeout_s: float = setting(30.0, "seconds after which a batch is given up and sent again", low=0.1)
    open_s: float = setting(30.0, "seconds that the start waits for a stream that is away", low=0)
    retry_s: float = setting(0.2, "seconds until a stream that is away is tried again, doubling, with jitter", low=0.01)
    retry_max_s: float = setting(10.0, "the doubling ends here", low=0.01)


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """Workers on several machines that share a crawl (N1-N8). Passwords are no settings: see `password_file`."""

    crawl: str = setting("", "name of the crawl on its engines; several crawls share them, each under its name")
    servers: tuple[str, ...] = setting(
        (), "Valkey or Redis for the frontier, each as redis://HOST:PORT or rediss://HOST:PORT; some nodes of a cluster"
    )
    username: str = setting("", "user there; the default one when empty")
    password_file: str = setting("", "file whose first line is the password; else REDISCLI_AUTH")
    tls: str = setting(
        "verified",
        "how a line to a rediss:// server is secured: its certificate is verified, or not",
        choices=("verified", "unverified"),
    )
    authorities: str = setting("", "PEM file of certificate authorities to trust beside the usual ones")
    shards: int = setting(256, "parts that the frontier is divided into, for good at its beginning", low=1, high=256)
    wait_replicas: int = setting(
        0,
        "replicas that must have a claim or a settle before it counts; where the engine may lose its last second",
        low=0,
        high=10,
    )
    directory: str = setting("nephila-worker", "directory of a worker's own: spool, events, what it learned of sites")
    worker: str = setting("", "name of a worker, for people; that of its machine when empty")
    group: str = setting("", "the group of workers that a worker belongs to (N6)")
    regions: tuple[str, ...] = setting(
        (), "domains that one group alone may ask, each as GROUP=NAME,NAME: top-level or registrable domains"
    )
    beat_s: float = setting(2.0, "seconds between two signs of life of a worker", low=0.1, high=60)
    silent_s: float = setting(30.0, "a worker that was silent for so long counts as away", low=1)
    lost_s: float = setting(
        86_400.0,
        "and one that was silent for so long as lost, with what waited in its spool: its pages are fetched again",
        low=10,
    )
    events_per_s: int = setting(
        200, "events a second that all workers together tell whoever reads along; 0 for none", low=0, high=10_000
    )
    dns_ttl_s: float = setting(86_400.0, "seconds that a name's addresses are shared at most (H4)", low=0, high=86_400)


@dataclass(frozen=True, slots=True)
class ObserveSettings:
    """Events (O1)."""

    heartbeat_pages: int = setting(50, "a heartbeat event after so many pages", low=1)
    event_max_bytes: int = setting(256_000_000, "an event file is rolled at this size", low=1024)


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """When somebody is to be told that something is wrong (O2). 0 switches an alert off."""

    tell: bool = setting(False, "say on the console when an alert begins and ends", flag="alerts")
    webhook: str = setting("", "http(s) URL to which alerts are posted as JSON; its address must be allowed")
    window_s: float = setting(300.0, "seconds that an alert looks back over", low=10, high=3600)
    least_answers: int = setting(100, "answers and errors in that time below which no share is judged", low=1)
    min_pages_per_s: float = setting(300.0, "pages a second below which, with hosts ready, the rate is too low", low=0)
    max_error_share: float = setting(0.05, "share of errors", low=0, high=1)
    max_busy_per_host: int = setting(20, "answers of 429 or 503 from one host", low=0)
    max_bytes_per_day: int = setting(4_000_000_000_000, "bytes stored in a day at the present rate", low=0)
    max_frontier: int = setting(100_000_000, "queued URLs, if they are growing in number", low=0)
    max_render_queue: int = setting(10_000, "pages that wait to be rendered", low=0)
    min_dns_hit_share: float = setting(0.9, "share of names found in the cache", low=0, high=1)
    max_duplicate_share: float = setting(0.3, "share of pages that are duplicates", low=0, high=1)
    max_latency_s: float = setting(3.0, "mean seconds of an answer", low=0)
    max_wait_s: float = setting(2 * 86_400.0, "seconds that a host with work has waited", low=0)
    max_descriptors_share: float = setting(0.9, "share of the limit of open files", low=0, high=1)
    min_free_share: float = setting(0.05, "share of the disk that is free", low=0, high=1)
    max_violations: int = setting(1, "from so many requests on that came too early, by the archive's own dates", low=0)


@dataclass(frozen=True, slots=True)
class PdfSettings:
    """Links out of PDFs (X4)."""

    links: bool = setting(False, "fetch PDFs and follow the links in them", flag="pdf-links")
    keep: bool = setting(False, "store their bodies too; off stores headers and links", flag="keep-pdf")
    text: bool = setting(True, "take URLs out of their text as well as out of link annotations")
    max_pages: int = setting(2_000, "pages of one PDF that are looked at", low=1)
    time_s: float = setting(3.0, "seconds for one PDF: then what was found by then counts", low=0.01)
    deadline_s: float = setting(10.0, "seconds after which a process that is stuck in one is ended", low=0.1)
    memory_bytes: int = setting(1 << 30, "address space of that process; 0 for no limit", low=0)


@dataclass(frozen=True, slots=True)
class OfficeSettings:
    """Links out of office documents: docx, xlsx, pptx, odt, ods, odp and their like (X4)."""

    links: bool = setting(False, "fetch office documents and follow the links in them", flag="office-links")
    keep: bool = setting(False, "store their bodies too; off stores headers and links", flag="keep-office")
    max_unpacked_bytes: int = setting(64_000_000, "bytes of one document that are unpacked, whatever it claims", low=1)
    time_s: float = setting(3.0, "seconds for one document: then what was found by then counts", low=0.01)
    deadline_s: float = setting(10.0, "seconds after which a process that is stuck in one is ended", low=0.1)
    memory_bytes: int = setting(1 << 30, "address space of that process; 0 for no limit", low=0)


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """Pages that are made by their scripts (J1-J4); `docs/rendering.md` tells what a browser needs."""

    enabled: str = setting(
        "auto", "show pages to a browser that look as if their scripts made them", flag="render", choices=RENDER_CHOICES
    )
    executable: str = setting("", "the Chromium to use; empty looks for one")
    browsers: int = setting(0, "browsers of a process; 0 is as many as memory and cores allow", low=0, high=50)
    pages_at_once: int = setting(4, "pages that one browser shows at once", low=1, high=32)
    share: float = setting(
        0.1, "share of the exchanges at once that may be pages on their way to a browser", low=0, high=1
    )
    time_s: float = setting(10.0, "seconds for one page: then what there is of it counts", low=0.1, high=300)
    rest_s: float = setting(0.5, "seconds without a request after which a page has come to rest", low=0.01, high=60)
    recycle_pages: int = setting(100, "pages after which a browser is replaced", low=1)
    memory_bytes: int = setting(
        1 << 30, "memory of one browser with all its processes; over it, it is killed", low=1 << 26
    )
    max_requests: int = setting(30, "requests of one page to its own host, itself included (J3)", low=1, high=1000)
    requests_at_once: int = setting(2, "of those, at once", low=1, high=16)
    max_part_bytes: int = setting(5_000_000, "bytes of one answer to a page in a browser", low=1)
    max_dom_bytes: int = setting(
        10_000_000, "bytes of a document as its scripts left it; a larger one is not kept", low=1
    )
    cache_bytes: int = setting(64 << 20, "bytes of scripts that are kept at hand for the next page", low=0)
    resources: str = setting(
        "any",
        "scripts and data that pages need of other hosts: of any, of hosts of their own site, or none",
        choices=RESOURCE_CHOICES,
    )
    max_resources: int = setting(20, "of those, for one page", low=0, high=1000)
    max_resource_hosts: int = setting(6, "hosts that these may lie on, for one page", low=0, high=100)
    rounds: int = setting(3, "times that a page waits for them, and is shown again", low=0, high=10)
    wait_s: float = setting(
        120.0, "seconds that it waits in all; then it is shown with what there is", low=1, high=3600
    )
    shelf_bytes: int = setting(
        256 << 20, "bytes of such resources, and of pages that wait for them, kept beside the crawl", low=1 << 20
    )
    attempts: int = setting(3, "browsers that a page is shown to, where one crashes or hangs under it", low=1, high=10)


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """Plugins (E1); `docs/plugins.md` tells how to write one."""

    enabled: tuple[str, ...] = setting((), "installed plugins to switch on, by name", flag="plugin")
    options: tuple[str, ...] = setting(
        (), "their options, each as NAME.OPTION=VALUE; in a file also as a table [plugins.NAME]", flag="plugin-option"
    )
    deadline_s: float = setting(5.0, "seconds for one call of a plugin", low=0.01)
    quick_s: float = setting(0.05, "and of one that is called on the crawl's own loop", low=0.0001)
    failures: int = setting(5, "failures in a row after which a plugin is switched off; 0 for never", low=0)
    overruns: int = setting(20, "overrun deadlines in all after which it is; 0 for never", low=0)
    memory_bytes: int = setting(4 << 30, "address space of a plugin's process; 0 for no limit", low=0)
    max_document_bytes: int = setting(10_000_000, "bytes of a body that a plugin is given", low=1)
    allow_credentials: bool = setting(False, "let fetch hooks add cookies and credentials; they are archived, too")


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole, built by `config` and taken apart by `node`; nobody else sees it."""

    scope: ScopeSettings = ScopeSettings()
    limits: LimitSettings = LimitSettings()
    urls: UrlSettings = UrlSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    robots: RobotsSettings = RobotsSettings()
    fetch: FetchSettings = FetchSettings()
    dns: DnsSettings = DnsSettings()
    frontier: FrontierSettings = FrontierSettings()
    priority: PrioritySettings = PrioritySettings()
    budget: BudgetSettings = BudgetSettings()
    traps: TrapSettings = TrapSettings()
    dedup: DedupSettings = DedupSettings()
    aliases: AliasSettings = AliasSettings()
    recrawl: RecrawlSettings = RecrawlSettings()
    sitemaps: SitemapSettings = SitemapSettings()
    archive: ArchiveSettings = ArchiveSettings()
    s3: S3Settings = S3Settings()
    spool: SpoolSettings = SpoolSettings()
    catalogue: CatalogueSettings = CatalogueSettings()
    stream: StreamSettings = StreamSettings()
    fleet: FleetSettings = FleetSettings()
    observe: ObserveSettings = ObserveSettings()
    alerts: AlertSettings = AlertSettings()
    pdf: PdfSettings = PdfSettings()
    office: OfficeSettings = OfficeSettings()
    render: RenderSettings = RenderSettings()
    plugins: PluginSettings = PluginSettings()
    random_seed: int = setting(0, "seed of every draw; the same seed gives the same order", flag="random-seed", low=0)
    processes: int = setting(
        1, "processes that share the crawl; auto (or 0) is one for each core", flag="processes", low=0, high=64
    )
