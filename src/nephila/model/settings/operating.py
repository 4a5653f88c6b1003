"""How a crawl is run and watched: the workers of a fleet, events and figures, alerts."""

from __future__ import annotations

from dataclasses import dataclass

from .declaration import setting


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
    compact: bool = setting(
        False,
        "known URLs take less memory, for good at the frontier's beginning: one new URL in some hundred thousand is "
        "taken for known, and what waits keeps its place whoever links to it",
    )
    wait_replicas: int = setting(
        0,
        "replicas that must have what a worker says (claims, links, how pages ended) before it counts; where the "
        "engine may lose its last second",
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
    lease_span_s: float = setting(
        5.0,
        "seconds that a lease lasts through the delays of its host: so many URLs of a polite host are leased at once, "
        "frontier.urls_per_lease at most; 0: one",
        low=0,
        high=60,
    )
    together_s: float = setting(
        8.0,
        "seconds that pages of a lease wait to be settled in one call: its span, and what its answers take; "
        "0: each is settled at once",
        low=0,
        high=60,
    )
    join_ms: float = setting(
        50.0, "how long links of several pages to one shard wait to be told in one call", low=0, high=1000
    )


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
