"""What is asked of the catalogue in PostgreSQL. Column names are those of the catalogue in SQLite."""

from __future__ import annotations

from nephila.store.statements import CAPTURE_COLUMNS

QUOTED_COLUMNS = ", ".join(f'"{column}"' for column in CAPTURE_COLUMNS)

HOLD_SEGMENTS = "SELECT name, id, upto FROM segments WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE"
MAKE_SEGMENTS = """
INSERT INTO segments (name) SELECT name FROM unnest($1::text[]) AS name
WHERE NOT EXISTS (SELECT 1 FROM segments WHERE segments.name = name.name) ORDER BY name ON CONFLICT DO NOTHING
"""
FORGET_RECORDED = """
DELETE FROM staged s USING segments g
WHERE g.id = s.segment AND s."offset" <= g.upto AND EXISTS (
  SELECT 1 FROM captures c
  WHERE c.segment = s.segment AND c."offset" = s."offset" AND c.at BETWEEN g.first_at AND g.last_at)
"""

SELECT_PAGES = """
SELECT c.url, c.status, c.content_type, c.length, c.title, c.depth, p.crawled_at, p.crawl_count, c.duplicate_of,
       (SELECT s.name FROM segments s WHERE s.id = p.segment) || '#' || p."offset", c.near_duplicate_of,
       p.next_crawl_at, p.change_rate
FROM page_states p
CROSS JOIN LATERAL (
  SELECT * FROM captures WHERE at = p.captured_at AND segment = p.segment AND "offset" = p."offset" OFFSET 0
) c
"""
"""As the view `pages`, but in the order of an index, page by page: the planner, who takes the three columns of the key
for independent of each other, would join everything and sort it. `OFFSET 0` keeps him from it."""
SELECT_CAPTURES = "SELECT {} FROM captures c JOIN segments s ON s.id = c.segment".format(  # noqa: S608 - our own names
    ", ".join("s.name" if column == "segment" else f'c."{column}"' for column in CAPTURE_COLUMNS)
)
OF_SEGMENT = f"""{SELECT_CAPTURES}
WHERE c.segment = $1 AND c."offset" > $2 AND c.at BETWEEN $3 AND $4 ORDER BY c."offset" LIMIT $5"""
OF_URL = f'{SELECT_CAPTURES} WHERE c.url_hash = $1 ORDER BY c.at DESC, c.segment DESC, c."offset" DESC'
OF_URLS = f"{SELECT_CAPTURES} WHERE c.url_hash = ANY($1::bytea[])"
SELECT_SEGMENT = "SELECT id, first_at, last_at FROM segments WHERE name = $1 AND first_at IS NOT NULL"

SELECT_FIGURES = """
SELECT segment, "offset", at, status, robots, content_type, length, wire_bytes, elapsed_ms, depth, duplicate_of <> '',
       near_duplicate_of <> '', truncated <> '', changed, content_hash <> ''
FROM captures WHERE (segment, "offset") > ($1, $2) ORDER BY segment, "offset" LIMIT $3
"""
SELECT_ERRORS = """
SELECT at, url_hash, kind, host FROM errors WHERE (at, url_hash, kind) > ($1, $2, $3)
ORDER BY at, url_hash, kind LIMIT $4
"""
SELECT_LEADING = """
SELECT domain, total_pages, total_requests, avg_response_ms, coalesce(last_crawled_at, 0), blocked
FROM domains ORDER BY total_pages DESC, domain LIMIT $1
"""
COUNT_DOMAINS = """
SELECT CASE WHEN total_pages > 0 THEN length(total_pages::text) ELSE 0 END AS digits, count(*)
FROM domains GROUP BY digits
"""
SELECT_EXCHANGES = """
SELECT "offset", host, at, elapsed_ms, url_hash = '' AND NOT robots FROM captures
WHERE segment = $1 AND "offset" >= $2 ORDER BY "offset" LIMIT $3
"""
COUNT_PAGES_SINCE = "SELECT count(*) FROM (SELECT 1 FROM page_states WHERE crawled_at >= $1 LIMIT $2) AS found"
COUNT_ERRORS_SINCE = """
SELECT kind, count(*) FROM (SELECT kind FROM errors WHERE at >= $1 LIMIT $2) AS found GROUP BY kind
"""
SELECT_DOMAIN = """
SELECT coalesce(last_crawled_at, 0), total_pages, total_requests, avg_response_ms, coalesce(robots_txt, '')
FROM domains WHERE domain = $1
"""
_TURNED = """
WITH turned AS (
  SELECT domain FROM domains WHERE domain IN (
    SELECT domain FROM domains WHERE NOT blocked AND domain = ANY($1::text[])
    UNION
    SELECT domain FROM domains WHERE blocked AND domain <> ALL($1::text[]){above}){below}
  ORDER BY domain FOR UPDATE
)
UPDATE domains d SET blocked = NOT d.blocked FROM turned WHERE d.domain = turned.domain
"""
_BELOW = "EXISTS (SELECT 1 FROM unnest($2::text[]) AS suffix WHERE right(domain, length(suffix) + 1) = '.' || suffix)"
SHOW_BLOCKED = _TURNED.format(above="", below="")
SHOW_BLOCKED_BELOW = _TURNED.format(above=f" AND NOT {_BELOW}", below=f" OR (NOT blocked AND {_BELOW})")
"""Where whole suffixes are blocked, for which every domain is looked at. Rows are held in the order of their key, as by
everybody who writes them."""
SELECT_TOTALS = "SELECT coalesce(sum(captures), 0)::bigint, coalesce(sum(wire_bytes), 0)::bigint FROM totals"
