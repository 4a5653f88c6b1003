"""The SQL of the catalogue, built once from the fields of the rows.

Kept apart from `catalogue`, which says when each is run. Column names follow SPEC W3; where a row's field has another
name it stands in `RENAMED`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from nephila.interfaces.catalogue import CaptureRow

RENAMED = {"fingerprint": "url_hash", "level": "priority"}

KEPT_ELSEWHERE = ("robots_txt", "next_crawl_at", "change_rate")
"""Fields that are kept with the domain or the page, the last ones of a row."""
CAPTURE_FIELDS = tuple(field.name for field in fields(CaptureRow) if field.name not in KEPT_ELSEWHERE)
CAPTURE_COLUMNS = tuple(RENAMED.get(name, name) for name in CAPTURE_FIELDS)
STATE_COLUMNS = ("url_hash", "host", "segment", "offset", "crawled_at", "next_crawl_at", "change_rate")


def _insert(table: str, columns: Sequence[str]) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - our own names


def _upsert_state(renewed: Sequence[str]) -> str:
    """Every capture counts; the newest decides, in whatever order they come.

    A rate is kept where the newest knows none: an answer that says nothing of the page leaves what is known of it.
    """
    newer = "excluded.crawled_at >= page_states.crawled_at"
    renewed = (*renewed, "crawled_at", "next_crawl_at")
    changes = "".join(f', "{one}" = iif({newer}, excluded."{one}", page_states."{one}")' for one in renewed)
    first, second = ("excluded", "page_states"), ("page_states", "excluded")
    rates = (", ".join(f"{table}.change_rate" for table in order) for order in (first, second))
    changes += ", change_rate = iif({}, coalesce({}), coalesce({}))".format(newer, *rates)
    insert = _insert("page_states", STATE_COLUMNS)
    return f"{insert} ON CONFLICT (url_hash) DO UPDATE SET crawl_count = crawl_count + 1{changes}"


INSERT_CAPTURE = _insert("captures", CAPTURE_COLUMNS)
COUNT_CAPTURES = "UPDATE totals SET captures = captures + ?, wire_bytes = wire_bytes + ?"
UPSERT_STATE = _upsert_state(("segment", "offset"))
UPSERT_UNCHANGED_STATE = _upsert_state(())
"""A 304 says that the page is still what it was: only the visit is new."""
FORGET_DEAD = "DELETE FROM dead_letters WHERE url_hash = ? AND at <= ?"

UPSERT_DOMAIN = (
    _insert("domains", ("domain", "last_crawled_at", "total_pages", "total_requests", "total_response_ms"))
    + " ON CONFLICT (domain) DO UPDATE SET"
    " last_crawled_at = max(coalesce(last_crawled_at, 0), excluded.last_crawled_at),"
    " total_pages = total_pages + excluded.total_pages, total_requests = total_requests + excluded.total_requests,"
    " total_response_ms = total_response_ms + excluded.total_response_ms"
)
UPSERT_ROBOTS = (
    _insert("domains", ("domain", "robots_txt", "robots_fetched_at", "crawl_delay_ms"))
    + " ON CONFLICT (domain) DO UPDATE SET robots_txt = coalesce(excluded.robots_txt, domains.robots_txt),"
    " robots_fetched_at = excluded.robots_fetched_at, crawl_delay_ms = excluded.crawl_delay_ms"
    " WHERE excluded.robots_fetched_at >= coalesce(domains.robots_fetched_at, 0)"
)
INDEX_BLOCKED = "CREATE INDEX IF NOT EXISTS domains_blocked ON domains (domain) WHERE blocked = 1"
SELECT_BLOCKED = "SELECT domain FROM domains WHERE blocked = 1"
BLOCK = "UPDATE domains SET blocked = 1 WHERE domain = ? AND blocked = 0"
BLOCK_BELOW = "UPDATE domains SET blocked = 1 WHERE substr(domain, -length(?)) = ? AND blocked = 0"
UNBLOCK = "UPDATE domains SET blocked = 0 WHERE domain = ?"
INSERT_ERROR = (
    _insert("errors", ("url_hash", "at", "kind", "url", "host", "detail", "retries")) + " ON CONFLICT DO NOTHING"
)
UPSERT_DEAD = (
    _insert("dead_letters", ("url_hash", "url", "host", "kind", "detail", "at", "retries"))
    + " ON CONFLICT (url_hash) DO UPDATE SET url = excluded.url, kind = excluded.kind, detail = excluded.detail,"
    " at = excluded.at, retries = excluded.retries WHERE excluded.at > dead_letters.at"
)

SELECT_PAGES = (
    "SELECT url, status, content_type, length, title, depth, crawled_at, crawl_count, duplicate_of, storage_key,"
    " near_duplicate_of, next_crawl_at, change_rate FROM pages"
)
SELECT_CAPTURES = "SELECT {} FROM captures c JOIN segments s ON s.id = c.segment".format(  # noqa: S608 - our own names
    ", ".join("s.name" if column == "segment" else f'c."{column}"' for column in CAPTURE_COLUMNS)
)

SELECT_WHOLE_CAPTURES = SELECT_CAPTURES.replace(" FROM ", ", d.robots_txt, p.next_crawl_at, p.change_rate FROM ", 1) + (
    " LEFT JOIN domains d ON c.robots = 1 AND d.domain = c.domain AND d.robots_fetched_at = c.at"
    " LEFT JOIN page_states p ON c.url_hash != x'' AND p.url_hash = c.url_hash AND p.crawled_at = c.at"
)
"""With what is kept with the page and the domain: the newest visit of a page, and the newest robots.txt, have it."""

SELECT_FIGURES = """
SELECT segment, "offset", at, status, robots, content_type, length, wire_bytes, elapsed_ms, depth, duplicate_of != '',
       near_duplicate_of != '', truncated != '', changed, content_hash != x''
FROM captures WHERE (segment, "offset") > (?, ?) ORDER BY segment, "offset" LIMIT ?
"""
SELECT_EXCHANGES = """
SELECT "offset", host, at, elapsed_ms, url_hash = x'' AND robots = 0 FROM captures
WHERE segment = ? AND "offset" >= ? ORDER BY "offset" LIMIT ?
"""
SELECT_ERRORS = """
SELECT at, url_hash, kind, host FROM errors WHERE (at, url_hash, kind) > (?, ?, ?) ORDER BY at, url_hash, kind LIMIT ?
"""
SELECT_LEADING = """
SELECT domain, total_pages, total_requests, avg_response_ms, coalesce(last_crawled_at, 0), blocked
FROM domains ORDER BY total_pages DESC, domain LIMIT ?
"""
COUNT_DOMAINS = """
SELECT iif(total_pages > 0, length(CAST(total_pages AS TEXT)), 0) AS digits, count(*) FROM domains GROUP BY digits
"""
