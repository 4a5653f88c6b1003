-- The catalogue of a crawl. `captures` is what was stored, one row an exchange; pages and domains follow from it and are
-- written with it (not by triggers, which cost four times the inserts themselves). Instants are UTC milliseconds.

CREATE TABLE segments (
  id    INTEGER PRIMARY KEY,
  name  TEXT NOT NULL UNIQUE,
  upto  INTEGER NOT NULL DEFAULT 0          -- everything of the segment before this offset is recorded
) STRICT;

CREATE TABLE captures (
  segment         INTEGER NOT NULL,         -- segments.id: names are long, rows are many
  "offset"        INTEGER NOT NULL,
  record_length   INTEGER NOT NULL,
  "end"           INTEGER NOT NULL,
  url_hash        BLOB NOT NULL,
  url             TEXT NOT NULL,
  host            TEXT NOT NULL,
  domain          TEXT NOT NULL,
  depth           INTEGER NOT NULL,
  via             TEXT NOT NULL,
  priority        INTEGER NOT NULL,         -- the front class: 0 immediate .. 3 low
  retries         INTEGER NOT NULL,
  at              INTEGER NOT NULL,
  status          INTEGER NOT NULL,
  content_type    TEXT NOT NULL,
  content_hash    BLOB NOT NULL,            -- SHA-256 of the decoded body
  length          INTEGER NOT NULL,
  wire_bytes      INTEGER NOT NULL,
  elapsed_ms      INTEGER NOT NULL,
  kind            TEXT NOT NULL,            -- response, revisit, resource
  payload_digest  TEXT NOT NULL,
  title           TEXT NOT NULL,
  language        TEXT NOT NULL,
  canonical       TEXT NOT NULL,
  duplicate_of    TEXT NOT NULL,
  simhash         INTEGER,                  -- of the main text, signed; null where there is too little of it
  near_duplicate_of TEXT NOT NULL,          -- an earlier page that says nearly the same
  truncated       TEXT NOT NULL,
  robots          INTEGER NOT NULL,         -- 1: the robots.txt of an origin, not a page
  noindex         INTEGER NOT NULL,
  noarchive       INTEGER NOT NULL,
  changed         INTEGER NOT NULL,
  signals         TEXT NOT NULL,
  crawl_delay_ms  INTEGER NOT NULL,
  worker          TEXT NOT NULL,
  assigned_at     INTEGER NOT NULL,         -- 0: settled from the archive after a crash
  timeout_at      INTEGER NOT NULL,
  PRIMARY KEY (segment, "offset")
) STRICT, WITHOUT ROWID;

-- One row of figures that would otherwise be counted over all captures: `status` asks for them, at any size.
CREATE TABLE totals (
  captures    INTEGER NOT NULL,
  wire_bytes  INTEGER NOT NULL
) STRICT;

INSERT INTO totals VALUES (0, 0);

-- The history of one URL.
CREATE INDEX captures_by_url ON captures (url_hash, at);

-- Where each page stands: the newest capture that has content, and what holds from one capture to the next. With row
-- ids, because hashes come in no order and are better kept in an index of their own.
CREATE TABLE page_states (
  url_hash        BLOB NOT NULL UNIQUE,
  host            TEXT NOT NULL,
  segment         INTEGER NOT NULL,
  "offset"        INTEGER NOT NULL,
  crawled_at      INTEGER NOT NULL,         -- the newest visit, which may have been answered by a 304
  crawl_count     INTEGER NOT NULL DEFAULT 1,
  next_crawl_at   INTEGER,                  -- as planned at the newest visit; null where none is planned
  change_rate     REAL                      -- changes a day, estimated; null before two visits were compared
) STRICT;

-- Newest first, of one host or of all.
CREATE INDEX page_states_by_time ON page_states (crawled_at);
CREATE INDEX page_states_by_host ON page_states (host, crawled_at);

-- What people query. A view, because a table of its own would write every column of a capture a second time.
CREATE VIEW pages AS
SELECT p.url_hash, c.url, p.host, c.domain, c.status, c.content_type, c.content_hash, c.simhash, c.length,
       s.name || '#' || p."offset" AS storage_key, p.crawled_at, p.next_crawl_at, p.crawl_count, p.change_rate,
       c.priority, c.depth, c.retries, c.via, c.title, c.language, c.canonical, c.duplicate_of, c.near_duplicate_of, c.truncated,
       c.noindex, c.noarchive, c.signals
FROM page_states p
CROSS JOIN captures c ON c.segment = p.segment AND c."offset" = p."offset"
CROSS JOIN segments s ON s.id = p.segment;

CREATE TABLE domains (
  domain             TEXT NOT NULL PRIMARY KEY,
  robots_txt         TEXT,                  -- the newest text that came into force
  robots_fetched_at  INTEGER,
  crawl_delay_ms     INTEGER,
  last_crawled_at    INTEGER,
  total_pages        INTEGER NOT NULL DEFAULT 0,
  total_requests     INTEGER NOT NULL DEFAULT 0,
  total_response_ms  INTEGER NOT NULL DEFAULT 0,
  avg_response_ms    REAL GENERATED ALWAYS AS (CAST(total_response_ms AS REAL) / max(total_requests, 1)) VIRTUAL,
  blocked            INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Domains that a person has blocked: few among many. (The same is made for catalogues of before it: `catalogue.py`.)
CREATE INDEX domains_blocked ON domains (domain) WHERE blocked = 1;

CREATE TABLE errors (
  url_hash  BLOB NOT NULL,
  at        INTEGER NOT NULL,
  kind      TEXT NOT NULL,
  url       TEXT NOT NULL,
  host      TEXT NOT NULL,
  detail    TEXT NOT NULL,
  retries   INTEGER NOT NULL,
  PRIMARY KEY (at, url_hash, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
  url_hash  BLOB NOT NULL PRIMARY KEY,
  url       TEXT NOT NULL,
  host      TEXT NOT NULL,
  kind      TEXT NOT NULL,
  detail    TEXT NOT NULL,
  at        INTEGER NOT NULL,
  retries   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What workers were given and brought back; what brought no answer stands in `errors`. Leases that are out now are the
-- frontier's.
CREATE VIEW tasks AS
SELECT url_hash, url, worker, assigned_at, timeout_at, at + elapsed_ms AS completed_at,
       iif(status BETWEEN 200 AND 399, 'completed', 'failed') AS status
FROM captures
WHERE robots = 0;
