"""How servers are asked: the pauses between requests, robots.txt, the request itself, names."""

from __future__ import annotations

from dataclasses import dataclass

from .declaration import setting


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
    http2: str = setting(
        "fallback",
        "HTTP/2 over TLS: fallback speaks it to servers that refuse HTTP/1.1, prefer to all that can, off to none",
        flag="http2",
        choices=("fallback", "prefer", "off"),
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
