-- The far ends of long queues of the frontier (F8): chunks of some hundred URLs each, compressed. What is in here is still
-- queued: the engine of the frontier knows every chunk by its number, and asks for it again. Not a part of the catalogue
-- that could be rebuilt: back it up with the engine, or rebuild the frontier when it is lost.

CREATE TABLE spilled (
  number  bigint PRIMARY KEY,
  shard   integer NOT NULL,
  urls    integer NOT NULL,                      -- when it was written; some may have been moved since
  at      timestamptz NOT NULL DEFAULT now(),
  body    bytea NOT NULL
);

ALTER TABLE spilled ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE INDEX spilled_by_shard ON spilled (shard, number);
