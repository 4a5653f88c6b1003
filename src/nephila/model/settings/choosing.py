"""What is fetched next, and when again: the frontier, priorities, ranks and budgets, traps, visits, lists of URLs."""

from __future__ import annotations

from dataclasses import dataclass

from .declaration import setting


@dataclass(frozen=True, slots=True)
class FrontierSettings:
    """The queue (F1-F3, S5)."""

    lease_s: float = setting(300.0, "seconds of a lease; renewed while its holder lives", low=1)
    urls_per_lease: int = setting(8, "URLs of one host in a lease where its delay is short", low=1, high=1000)
    look_ahead_ms: int = setting(
        500,
        "hosts are claimed so long before they may be asked; where the delay is short, half of it or 100 ms",
        low=0,
        high=10_000,
    )
    cooldown_s: float = setting(0.0, "seconds before a URL may be queued again", flag="cooldown", low=0)
    max_retries: int = setting(3, "tries after the first, then the URL is a dead letter", low=0, high=100)
    retry_waits_s: tuple[float, ...] = setting((5.0, 30.0, 180.0), "seconds before each retry, +-20 % (H5)")
    map_bytes: int = setting(1 << 40, "address space of the store (sparse: no disk is taken)", low=1 << 20)
    sync: bool = setting(True, "sync every group commit to disk")
    commit_ms: int = setting(
        250,
        "how long what is durable in the journal may wait for a commit of the store; "
        "0: no journal, every group is a commit",
        low=0,
        high=60_000,
    )
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
class RankSettings:
    """PageRank over the links of stored pages, and how often it is computed anew while a crawl runs (R3)."""

    every_s: float = setting(
        3600.0, "seconds between two computations beside a crawl directory; 0: none. Of a fleet: `rank --every`", low=0
    )
    least_pages: int = setting(
        1_000, "pages that must have been stored since the last one, and before the first", low=1
    )
    damping: float = setting(0.85, "probability that a link is followed, rather than a jump made", low=0, high=0.99)
    directory: str = setting(
        "nephila-rank", "where `nephila rank --config` keeps what it read of a fleet's links: a folder for each crawl"
    )


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
class RecrawlSettings:
    """When a page is fetched again (R2, R5)."""

    enabled: bool = setting(True, "plan the next visit of every page", flag="recrawl")
    policy: str = setting(
        "estimated",
        "how often pages are visited: as often as their estimated rate of change makes it pay, or simply twice as "
        "often when they have changed and half as often when not",
        choices=("estimated", "simple"),
    )
    changed: str = setting(
        "text",
        "a page has changed when its main text has, numbers and dates left out, or when a byte of it has; what has no "
        "text is compared by its bytes",
        choices=("text", "bytes"),
    )
    price_s: float = setting(
        86_400.0,
        "seconds of freshness that a visit has to buy: a page that changes all the time is visited so often, others "
        "less; lower it for more visits (policy estimated)",
        low=1,
    )
    first_s: float = setting(7 * 86_400.0, "seconds until the second visit of an ordinary page", low=1)
    news_home_s: float = setting(900.0, "and of the home page of a news domain", low=1)
    min_s: float = setting(900.0, "the shortest interval", low=1)
    max_s: float = setting(30 * 86_400.0, "the longest interval", low=1)
    factor: float = setting(
        2.0,
        "the interval is divided by this when the content changed, else multiplied (policy simple; lists)",
        low=1,
    )
    target_pages: int = setting(
        1000,
        "pages of highest rank that are kept fresh, whatever is planned for them: `nephila rank` tells how many are; 0 "
        "is none",
        low=0,
    )
    target_age_s: float = setting(86_400.0, "and how old their last visit may be, in seconds", low=1)
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
