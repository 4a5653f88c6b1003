-- What people query. Views, because tables of their own would write every column of a capture a second time.

CREATE VIEW pages AS
SELECT p.url_hash, c.url, p.host, c.domain, c.status, c.content_type, c.content_hash, c.simhash, c.length,
       s.name || '#' || p."offset" AS storage_key, p.crawled_at, p.next_crawl_at, p.crawl_count, p.change_rate,
       c.priority, c.depth, c.retries, c.via, c.title, c.language, c.canonical, c.duplicate_of, c.near_duplicate_of,
       c.truncated, c.noindex, c.noarchive, c.signals
FROM page_states p
JOIN captures c ON c.at = p.captured_at AND c.segment = p.segment AND c."offset" = p."offset"
JOIN segments s ON s.id = p.segment;

-- What workers were given and brought back; what brought no answer stands in `errors`. Leases that are out now are the
-- frontier's.
CREATE VIEW tasks AS
SELECT url_hash, url, worker, assigned_at, timeout_at, at + elapsed_ms AS completed_at,
       CASE WHEN status BETWEEN 200 AND 399 THEN 'completed' ELSE 'failed' END AS status
FROM captures
WHERE NOT robots;
