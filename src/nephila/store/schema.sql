-- The catalogue of a crawl. `captures` is what was stored, one row an exchange; pages and domains follow from it by the
-- triggers below, so that a capture counts once however often it is recorded. Instants are UTC milliseconds.

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
  truncated       TEXT NOT NULL,
  robots          INTEGER NOT NULL,         -- 1: the robots.txt of an origin, not a page
  noindex         INTEGER NOT NULL,
  noarchive       INTEGER NOT NULL,
  changed         INTEGER NOT NULL,
  signals         TEXT NOT NULL,
  crawl_delay_ms  INTEGER NOT NULL,
  PRIMARY KEY (segment, "offset")
) STRICT, WITHOUT ROWID;

-- The history of one URL.
CREATE INDEX captures_by_url ON captures (url_hash, at);

-- With row ids: rows are wide and hashes come in no order, so the hash is better kept in an index of its own.
CREATE TABLE pages (
  url_hash        BLOB NOT NULL UNIQUE,
  url             TEXT NOT NULL,
  host            TEXT NOT NULL,
  domain          TEXT NOT NULL,
  status          INTEGER NOT NULL,
  content_type    TEXT NOT NULL,
  content_hash    BLOB NOT NULL,
  simhash         INTEGER,                  -- filled where near duplicates are looked for
  length          INTEGER NOT NULL,
  storage_key     TEXT NOT NULL,            -- file#offset of the newest capture that has content
  crawled_at      INTEGER NOT NULL,
  next_crawl_at   INTEGER,                  -- filled where pages are crawled again
  crawl_count     INTEGER NOT NULL DEFAULT 1,
  change_rate     REAL,                     -- changes a day, filled where pages are crawled again
  priority        INTEGER NOT NULL,
  depth           INTEGER NOT NULL,
  retries         INTEGER NOT NULL,
  via             TEXT NOT NULL,
  title           TEXT NOT NULL,
  language        TEXT NOT NULL,
  canonical       TEXT NOT NULL,
  duplicate_of    TEXT NOT NULL,
  truncated       TEXT NOT NULL,
  noindex         INTEGER NOT NULL,
  noarchive       INTEGER NOT NULL,
  signals         TEXT NOT NULL
) STRICT;

-- Newest first, of one host or of all.
CREATE INDEX pages_by_time ON pages (crawled_at);
CREATE INDEX pages_by_host ON pages (host, crawled_at);

CREATE TABLE domains (
  domain             TEXT NOT NULL PRIMARY KEY,
  robots_txt         TEXT,                  -- file#offset of the newest robots.txt answer
  robots_fetched_at  INTEGER,
  crawl_delay_ms     INTEGER,
  last_crawled_at    INTEGER,
  total_pages        INTEGER NOT NULL DEFAULT 0,
  total_requests     INTEGER NOT NULL DEFAULT 0,
  total_response_ms  INTEGER NOT NULL DEFAULT 0,
  avg_response_ms    REAL GENERATED ALWAYS AS (CAST(total_response_ms AS REAL) / max(total_requests, 1)) VIRTUAL,
  blocked            INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

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

-- Leases given out over the control API; a crawl of one machine keeps its own in the frontier.
CREATE TABLE tasks (
  id            TEXT NOT NULL PRIMARY KEY,
  url_hash      BLOB NOT NULL,
  url           TEXT NOT NULL,
  worker        TEXT NOT NULL,
  assigned_at   INTEGER NOT NULL,
  timeout_at    INTEGER NOT NULL,
  completed_at  INTEGER,
  status        TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A new answer makes the page what it now is. An older one, found when rebuilding, only counts.
CREATE TRIGGER page_captured AFTER INSERT ON captures WHEN NEW.robots = 0 AND NEW.status <> 304 BEGIN
  INSERT INTO pages (url_hash, url, host, domain, status, content_type, content_hash, length, storage_key, crawled_at,
                     priority, depth, retries, via, title, language, canonical, duplicate_of, truncated, noindex,
                     noarchive, signals)
  VALUES (NEW.url_hash, NEW.url, NEW.host, NEW.domain, NEW.status, NEW.content_type, NEW.content_hash, NEW.length,
          (SELECT name FROM segments WHERE id = NEW.segment) || '#' || NEW."offset", NEW.at, NEW.priority, NEW.depth,
          NEW.retries, NEW.via, NEW.title, NEW.language, NEW.canonical, NEW.duplicate_of, NEW.truncated, NEW.noindex,
          NEW.noarchive, NEW.signals)
  ON CONFLICT (url_hash) DO UPDATE SET
    url = excluded.url, status = excluded.status, content_type = excluded.content_type,
    content_hash = excluded.content_hash, length = excluded.length, storage_key = excluded.storage_key,
    crawled_at = excluded.crawled_at, priority = excluded.priority, depth = excluded.depth, retries = excluded.retries,
    via = excluded.via, title = excluded.title, language = excluded.language, canonical = excluded.canonical,
    duplicate_of = excluded.duplicate_of, truncated = excluded.truncated, noindex = excluded.noindex,
    noarchive = excluded.noarchive, signals = excluded.signals, crawl_count = crawl_count + 1
  WHERE excluded.crawled_at >= pages.crawled_at;
  UPDATE pages SET crawl_count = crawl_count + 1 WHERE url_hash = NEW.url_hash AND crawled_at > NEW.at;
  DELETE FROM dead_letters WHERE url_hash = NEW.url_hash AND at <= NEW.at;
END;

-- "Not modified" says that the page is still what it was: only the time of the visit is new.
CREATE TRIGGER page_unchanged AFTER INSERT ON captures WHEN NEW.robots = 0 AND NEW.status = 304 BEGIN
  INSERT INTO pages (url_hash, url, host, domain, status, content_type, content_hash, length, storage_key, crawled_at,
                     priority, depth, retries, via, title, language, canonical, duplicate_of, truncated, noindex,
                     noarchive, signals)
  VALUES (NEW.url_hash, NEW.url, NEW.host, NEW.domain, NEW.status, NEW.content_type, NEW.content_hash, NEW.length,
          (SELECT name FROM segments WHERE id = NEW.segment) || '#' || NEW."offset", NEW.at, NEW.priority, NEW.depth,
          NEW.retries, NEW.via, NEW.title, NEW.language, NEW.canonical, NEW.duplicate_of, NEW.truncated, NEW.noindex,
          NEW.noarchive, NEW.signals)
  ON CONFLICT (url_hash) DO UPDATE SET
    crawled_at = excluded.crawled_at, priority = excluded.priority, retries = excluded.retries,
    crawl_count = crawl_count + 1
  WHERE excluded.crawled_at >= pages.crawled_at;
  UPDATE pages SET crawl_count = crawl_count + 1 WHERE url_hash = NEW.url_hash AND crawled_at > NEW.at;
  DELETE FROM dead_letters WHERE url_hash = NEW.url_hash AND at <= NEW.at;
END;

CREATE TRIGGER domain_answered AFTER INSERT ON captures BEGIN
  INSERT INTO domains (domain, last_crawled_at, total_pages, total_requests, total_response_ms)
  VALUES (NEW.domain, NEW.at, NEW.robots = 0 AND (NEW.status BETWEEN 200 AND 299 OR NEW.status = 304), 1,
          NEW.elapsed_ms)
  ON CONFLICT (domain) DO UPDATE SET
    last_crawled_at = max(coalesce(last_crawled_at, 0), excluded.last_crawled_at),
    total_pages = total_pages + excluded.total_pages,
    total_requests = total_requests + 1,
    total_response_ms = total_response_ms + excluded.total_response_ms;
END;

CREATE TRIGGER robots_captured AFTER INSERT ON captures WHEN NEW.robots = 1 BEGIN
  INSERT INTO domains (domain, robots_txt, robots_fetched_at, crawl_delay_ms)
  VALUES (NEW.domain, (SELECT name FROM segments WHERE id = NEW.segment) || '#' || NEW."offset", NEW.at,
          NEW.crawl_delay_ms)
  ON CONFLICT (domain) DO UPDATE SET
    robots_txt = excluded.robots_txt, robots_fetched_at = excluded.robots_fetched_at,
    crawl_delay_ms = excluded.crawl_delay_ms
  WHERE excluded.robots_fetched_at >= coalesce(domains.robots_fetched_at, 0);
END;
