-- Where a batch is copied to before it is merged. Of the connection, empty at the end of every transaction.

CREATE TEMPORARY TABLE staged (LIKE captures) ON COMMIT DELETE ROWS;
ALTER TABLE staged ADD COLUMN robots_txt text NOT NULL, ADD COLUMN next_crawl_at bigint,
  ADD COLUMN change_rate double precision;
CREATE TEMPORARY TABLE staged_errors (LIKE errors) ON COMMIT DELETE ROWS;
ALTER TABLE staged_errors ADD COLUMN dead boolean NOT NULL;
