-- What was brought into `staged` and `staged_errors` becomes part of the catalogue, in one transaction that holds the
-- rows of its segments. What is staged was never recorded before. Every table is written in the order of its key, and
-- the tables in the same order by everybody, so that workers wait for each other and never in a circle.

INSERT INTO captures ({columns}) SELECT {columns} FROM staged;

-- Every capture counts; the newest one with content decides what the page is, in whatever order they come. A 304 says
-- that the page is still what it was: only the visit is new. What is planned follows from the newest visit; a rate is kept
-- where that knows none.
INSERT INTO page_states AS known
  (url_hash, host, segment, "offset", captured_at, has_content, crawled_at, crawl_count, next_crawl_at, change_rate)
SELECT DISTINCT ON (url_hash) url_hash, host, segment, "offset", at, status <> 304,
       max(at) OVER of_page, count(*) OVER of_page, first_value(next_crawl_at) OVER newest,
       first_value(change_rate) OVER newest_rate
FROM staged
WHERE NOT robots AND url_hash <> '' -- nor part of a visit
WINDOW of_page AS (PARTITION BY url_hash),
       newest AS (PARTITION BY url_hash ORDER BY at DESC, segment DESC, "offset" DESC),
       newest_rate AS (PARTITION BY url_hash ORDER BY change_rate IS NULL, at DESC, segment DESC, "offset" DESC)
ORDER BY url_hash, status <> 304 DESC, at DESC, segment DESC, "offset" DESC
ON CONFLICT (url_hash) DO UPDATE SET
  crawl_count = known.crawl_count + excluded.crawl_count,
  crawled_at = greatest(known.crawled_at, excluded.crawled_at),
  next_crawl_at = CASE WHEN excluded.crawled_at >= known.crawled_at THEN excluded.next_crawl_at
                       ELSE known.next_crawl_at END,
  change_rate = CASE WHEN excluded.crawled_at >= known.crawled_at THEN coalesce(excluded.change_rate, known.change_rate)
                     ELSE coalesce(known.change_rate, excluded.change_rate) END,
  segment = CASE WHEN (excluded.has_content, excluded.captured_at, excluded.segment, excluded."offset")
           > (known.has_content, known.captured_at, known.segment, known."offset")
           THEN excluded.segment ELSE known.segment END,
  "offset" = CASE WHEN (excluded.has_content, excluded.captured_at, excluded.segment, excluded."offset")
           > (known.has_content, known.captured_at, known.segment, known."offset")
           THEN excluded."offset" ELSE known."offset" END,
  captured_at = CASE WHEN (excluded.has_content, excluded.captured_at, excluded.segment, excluded."offset")
           > (known.has_content, known.captured_at, known.segment, known."offset")
           THEN excluded.captured_at ELSE known.captured_at END,
  has_content = CASE WHEN (excluded.has_content, excluded.captured_at, excluded.segment, excluded."offset")
           > (known.has_content, known.captured_at, known.segment, known."offset")
           THEN excluded.has_content ELSE known.has_content END;

INSERT INTO domains AS known
  (domain, last_crawled_at, total_pages, total_requests, total_response_ms, robots_txt, robots_fetched_at, crawl_delay_ms)
SELECT domain, max(at),
       count(*) FILTER (WHERE NOT robots AND (status = 304 OR (status BETWEEN 200 AND 299 AND content_hash <> ''))),
       count(*), sum(elapsed_ms),
       (array_agg(robots_txt ORDER BY at DESC) FILTER (WHERE robots AND robots_txt <> ''))[1],
       max(at) FILTER (WHERE robots),
       (array_agg(crawl_delay_ms ORDER BY at DESC) FILTER (WHERE robots))[1]
FROM staged
GROUP BY domain
ORDER BY domain
ON CONFLICT (domain) DO UPDATE SET
  last_crawled_at = greatest(known.last_crawled_at, excluded.last_crawled_at),
  total_pages = known.total_pages + excluded.total_pages,
  total_requests = known.total_requests + excluded.total_requests,
  total_response_ms = known.total_response_ms + excluded.total_response_ms,
  robots_txt = CASE WHEN excluded.robots_fetched_at >= coalesce(known.robots_fetched_at, 0)
                    THEN coalesce(excluded.robots_txt, known.robots_txt) ELSE known.robots_txt END,
  crawl_delay_ms = CASE WHEN excluded.robots_fetched_at >= coalesce(known.robots_fetched_at, 0)
                        THEN excluded.crawl_delay_ms ELSE known.crawl_delay_ms END,
  robots_fetched_at = greatest(known.robots_fetched_at, excluded.robots_fetched_at);

-- A page that came is no dead letter any more.
WITH come AS (
  SELECT d.url_hash
  FROM dead_letters d
  JOIN (SELECT url_hash, max(at) AS at FROM staged WHERE NOT robots AND url_hash <> '' GROUP BY url_hash) s USING (url_hash)
  WHERE d.at <= s.at
  ORDER BY d.url_hash
  FOR UPDATE OF d
)
DELETE FROM dead_letters d USING come WHERE d.url_hash = come.url_hash;

INSERT INTO errors (url_hash, at, kind, url, host, detail, retries)
SELECT DISTINCT ON (at, url_hash, kind) url_hash, at, kind, url, host, detail, retries
FROM staged_errors
ORDER BY at, url_hash, kind
ON CONFLICT DO NOTHING;

-- Errors that are recorded again after a crash must not bring back what has come since.
INSERT INTO dead_letters AS known (url_hash, url, host, kind, detail, at, retries)
SELECT DISTINCT ON (e.url_hash) e.url_hash, e.url, e.host, e.kind, e.detail, e.at, e.retries
FROM staged_errors e
WHERE e.dead AND NOT EXISTS (SELECT 1 FROM page_states p WHERE p.url_hash = e.url_hash AND p.crawled_at > e.at)
ORDER BY e.url_hash, e.at DESC
ON CONFLICT (url_hash) DO UPDATE SET
  url = excluded.url, kind = excluded.kind, detail = excluded.detail, at = excluded.at, retries = excluded.retries
WHERE excluded.at > known.at;

UPDATE segments g
SET upto = greatest(g.upto, s.upto), first_at = least(g.first_at, s.first_at), last_at = greatest(g.last_at, s.last_at)
FROM (SELECT segment, max("end") AS upto, min(at) AS first_at, max(at) AS last_at FROM staged GROUP BY segment) s
WHERE g.id = s.segment;

UPDATE totals
SET captures = totals.captures + s.captures, wire_bytes = totals.wire_bytes + s.wire_bytes
FROM (SELECT count(*) AS captures, coalesce(sum(wire_bytes), 0) AS wire_bytes FROM staged) s
WHERE slot = pg_backend_pid() % 16 AND s.captures > 0;
