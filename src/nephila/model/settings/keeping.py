"""Where what was fetched is kept and told: the archive and its store, the spool, the catalogue, streams."""

from __future__ import annotations

from dataclasses import dataclass

from .declaration import setting


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """WARC files (W1)."""

    url: str = setting(
        "", "store for the archive, as s3://bucket/prefix; empty keeps it in the crawl directory (W2)", flag="archive"
    )
    layout: str = setting(
        "rolling", "how files are named", flag="warc-layout", choices=("rolling", "domain-hour", "key")
    )
    key: str = setting(
        "{date}/{domain_hash}/{url_hash}.warc.gz",
        "with layout key, how file names begin: made of date, hour, domain, domain_hash, host, url_hash; with url_hash "
        "every answer has a file of its own",
        flag="warc-key",
    )
    compression: str = setting(
        "gzip",
        "of each record on its own; zstd makes .warc.zst files, which are smaller but read by fewer tools",
        flag="warc-compression",
        choices=("gzip", "zstd"),
    )
    max_bytes: int = setting(1_000_000_000, "a file is rolled at this size", low=1024)
    max_age_s: float = setting(3600.0 * 24, "or at this age", low=1)
    prefix: str = setting("nephila", "first word of every file name")
    sync_ms: float = setting(100.0, "synced at least so often", low=1, high=10_000)
    operator: str = setting("", "operator field of warcinfo")


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """What `nephila retain` keeps (W5)."""

    captures: int = setting(3, "captures of every page that stay; 0 is all of them", low=0)
    max_age_s: float = setting(
        0.0, "what is older goes, unless it is marked as indexed; 0 is no limit, 90d is usual", low=0
    )


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
    uploads: int = setting(4, "requests at once that upload something, in each process", low=1, high=64)
    max_bytes_per_s: int = setting(0, "bytes a second that are uploaded, in each process; 0 is no limit", low=0)
    part_bytes: int = setting(
        8 * 1024 * 1024,
        "larger objects are uploaded in parts of this size, several at once",
        low=5 * 1024 * 1024,
        high=5 * 1024**3,
    )


@dataclass(frozen=True, slots=True)
class SpoolSettings:
    """Where files wait for their upload (W2)."""

    segment_bytes: int = setting(64_000_000, "a file is closed and uploaded at this size", low=1024)
    segment_age_s: float = setting(60.0, "or at this age; where names have an hour or a date, with that", low=0.1)
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
        "where to send a message for each page: redis://USER@HOST:PORT/DB, nats://USER@HOST:PORT, "
        "kafka://USER@HOST:PORT,HOST:PORT or file:///PATH; empty for nowhere",
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
