-- The catalogue of one crawl, in a schema of its own. What it says is what the catalogue of a crawl directory says
-- (../../schema.sql). Captures and errors are partitioned by month (their partitions are made when they are needed), so
-- that old ones can be dropped or moved at once. Instants are UTC milliseconds.

CREATE TABLE crawl (
  only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  identity  text NOT NULL,                   -- of the crawl that this is the catalogue of
  begun_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE segments (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name      text NOT NULL UNIQUE,
  upto      bigint NOT NULL DEFAULT 0,       -- everything of the segment before this offset is recorded
  first_at  bigint,                          -- its oldest and its newest capture: which partitions it is in
  last_at   bigint
);

CREATE TABLE captures (
  segment         bigint NOT NULL,           -- segments.id: names are long, rows are many
  "offset"        bigint NOT NULL,
  record_length   bigint NOT NULL,
  "end"           bigint NOT NULL,
  url_hash        bytea NOT NULL,
  url             text NOT NULL,
  host            text NOT NULL,
  domain          text NOT NULL,
  depth           integer NOT NULL,
  via             text NOT NULL,
  priority        smallint NOT NULL,         -- the front class: 0 immediate .. 3 low
  retries         integer NOT NULL,
  at              bigint NOT NULL,
  status          integer NOT NULL,
  content_type    text NOT NULL,
  content_hash    bytea NOT NULL,            -- SHA-256 of the decoded body
  length          bigint NOT NULL,
  wire_bytes      bigint NOT NULL,
  elapsed_ms      bigint NOT NULL,
  kind            text NOT NULL,             -- response, revisit, resource, external
  payload_digest  text NOT NULL,
  title           text NOT NULL,
  language        text NOT NULL,
  canonical       text NOT NULL,
  duplicate_of    text NOT NULL,
  simhash         bigint,                    -- of the main text, signed; null where there is too little of it
  near_duplicate_of text NOT NULL,           -- an earlier page that says nearly the same
  truncated       text NOT NULL,
  robots          boolean NOT NULL,          -- the robots.txt of an origin, not a page
  noindex         boolean NOT NULL,
  noarchive       boolean NOT NULL,
  changed         boolean NOT NULL,
  signals         text NOT NULL,
  crawl_delay_ms  bigint NOT NULL,
  worker          text NOT NULL,
  assigned_at     bigint NOT NULL,           -- 0: settled from the archive after a crash
  timeout_at      bigint NOT NULL,
  PRIMARY KEY (segment, "offset", at)        -- a key of a partitioned table has what it is partitioned by
) PARTITION BY RANGE (at);

-- The history of one URL.
CREATE INDEX captures_by_url ON captures (url_hash, at);

-- Figures that would otherwise be counted over all captures, in several rows, so that workers do not wait for each other.
CREATE TABLE totals (
  slot        smallint PRIMARY KEY,
  captures    bigint NOT NULL DEFAULT 0,
  wire_bytes  bigint NOT NULL DEFAULT 0
);

INSERT INTO totals (slot) SELECT generate_series(0, 15);

-- Where each page stands: the newest capture that has content, and what holds from one capture to the next.
CREATE TABLE page_states (
  url_hash        bytea PRIMARY KEY,
  host            text NOT NULL,
  segment         bigint NOT NULL,
  "offset"        bigint NOT NULL,
  captured_at     bigint NOT NULL,           -- of that capture: which partition it is in
  has_content     boolean NOT NULL,          -- false while there is nothing but an answer of 304
  crawled_at      bigint NOT NULL,           -- the newest visit, which may have been answered by a 304
  crawl_count     integer NOT NULL,
  next_crawl_at   bigint,                    -- filled where pages are crawled again
  change_rate     double precision           -- changes a day, likewise
) WITH (fillfactor = 90);

-- Newest first, of one host or of all.
CREATE INDEX page_states_by_time ON page_states (crawled_at);
CREATE INDEX page_states_by_host ON page_states (host, crawled_at);

CREATE TABLE domains (
  domain             text PRIMARY KEY,
  robots_txt         text,                   -- the newest text that came into force
  robots_fetched_at  bigint,
  crawl_delay_ms     bigint,
  last_crawled_at    bigint,
  total_pages        bigint NOT NULL DEFAULT 0,
  total_requests     bigint NOT NULL DEFAULT 0,
  total_response_ms  bigint NOT NULL DEFAULT 0,
  avg_response_ms    double precision
                     GENERATED ALWAYS AS (total_response_ms::double precision / greatest(total_requests, 1)) STORED,
  blocked            boolean NOT NULL DEFAULT false
) WITH (fillfactor = 80);

CREATE INDEX domains_by_pages ON domains (total_pages DESC, domain);

CREATE TABLE errors (
  url_hash  bytea NOT NULL,
  at        bigint NOT NULL,
  kind      text NOT NULL,
  url       text NOT NULL,
  host      text NOT NULL,
  detail    text NOT NULL,
  retries   integer NOT NULL,
  PRIMARY KEY (at, url_hash, kind)
) PARTITION BY RANGE (at);

CREATE TABLE dead_letters (
  url_hash  bytea PRIMARY KEY,
  url       text NOT NULL,
  host      text NOT NULL,
  kind      text NOT NULL,
  detail    text NOT NULL,
  at        bigint NOT NULL,
  retries   integer NOT NULL
);
