-- Retention (W5). What downstream has indexed is marked by the name of the archive file, which is for ever: numbers of
-- segments are not, where the catalogue is built anew. Marks cannot be built anew, and go with it from one to the next.

CREATE TABLE indexed (
  segment   text NOT NULL,
  "offset"  bigint NOT NULL,
  PRIMARY KEY (segment, "offset")
);

-- What the last retention has found to go; it is taken from here a file at a time.
CREATE TABLE going (
  segment         bigint NOT NULL,
  "offset"        bigint NOT NULL,
  at              bigint NOT NULL,
  url_hash        bytea NOT NULL,
  payload_digest  text NOT NULL,
  kind            text NOT NULL,
  record_bytes    bigint NOT NULL,
  turn            smallint NOT NULL,
  PRIMARY KEY (segment, "offset")
);

-- How many retentions were begun: a worker that finds another number than last time forgets what contents it knew.
ALTER TABLE crawl ADD COLUMN retentions bigint NOT NULL DEFAULT 0;
