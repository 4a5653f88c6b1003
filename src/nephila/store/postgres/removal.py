"""Taking captures out of the catalogue in PostgreSQL (K2): the rows, and what was counted of them.

A batch is one transaction, and what was counted follows from rows that were really there: it may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nephila.engines.postgres import Act, Row, Session
from nephila.interfaces.removal import ListedCapture

BATCH = 5_000

_SELECT = """
SELECT c.segment, c."offset", s.name, c.url_hash, c.url, c.host, c.domain, c.kind, c.robots, c.content_hash, c.simhash,
       c.duplicate_of, c.near_duplicate_of, c.status,
       CASE WHEN c.url_hash = '' AND NOT c.robots THEN c.via ELSE '' END
FROM captures c JOIN segments s ON s.id = c.segment
WHERE (c.segment, c."offset") > ($1, $2) ORDER BY c.segment, c."offset" LIMIT $3
"""
REMOVE = """
WITH gone AS (
  DELETE FROM captures c USING unnest($1::bigint[], $2::bigint[]) AS place (segment, "offset")
  WHERE c.segment = place.segment AND c."offset" = place."offset"
  RETURNING c.domain, c.robots, c.status, c.content_hash, c.elapsed_ms, c.wire_bytes
), figures AS (
  SELECT domain, count(*) AS requests, sum(elapsed_ms) AS response_ms,
         count(*) FILTER (WHERE NOT robots AND (status = 304 OR (status BETWEEN 200 AND 299 AND content_hash <> '')))
           AS pages
  FROM gone GROUP BY domain
), subtracted AS (
  UPDATE domains d
  SET total_requests = greatest(0, d.total_requests - f.requests), total_pages = greatest(0, d.total_pages - f.pages),
      total_response_ms = greatest(0, d.total_response_ms - f.response_ms)
  FROM figures f WHERE d.domain = f.domain
)
UPDATE totals
SET captures = totals.captures - s.captures, wire_bytes = totals.wire_bytes - s.wire_bytes
FROM (SELECT count(*) AS captures, coalesce(sum(wire_bytes), 0) AS wire_bytes FROM gone) s
WHERE slot = pg_backend_pid() % 16
"""
_UNNAME = """
UPDATE captures c
SET duplicate_of = CASE WHEN place.same THEN '' ELSE c.duplicate_of END,
    near_duplicate_of = CASE WHEN place.near THEN '' ELSE c.near_duplicate_of END
FROM unnest($1::bigint[], $2::bigint[], $3::boolean[], $4::boolean[]) AS place (segment, "offset", same, near)
WHERE c.segment = place.segment AND c."offset" = place."offset"
"""
_OF_HOST = "DELETE FROM {} WHERE {} = $1 OR right({}, length($1) + 1) = '.' || $1"


class PostgresRemoval:
    """Implements `interfaces.removal.CatalogueRemoval`."""

    def __init__(self, atomically: Callable[[Act[None]], None], read: Callable[..., list[Row]]) -> None:
        self._atomically = atomically
        self._read = read

    def rows(self) -> Iterator[ListedCapture]:
        """As the interface."""
        after: tuple[int, int] = (-1, -1)
        while batch := self._read(_SELECT, *after, BATCH):
            for row in batch:
                yield ListedCapture(*row)
            after = batch[-1][:2]

    def remove(self, captures: Sequence[ListedCapture]) -> None:
        """As the interface."""
        pages = [row.fingerprint for row in captures if not row.robots]

        async def act(session: Session) -> None:
            await session.rows(REMOVE, [row.number for row in captures], [row.offset for row in captures])
            await session.rows("DELETE FROM page_states WHERE url_hash = ANY($1::bytea[])", pages)

        self._atomically(act)

    def unname(self, captures: Sequence[tuple[ListedCapture, bool, bool]]) -> None:
        """As the interface."""
        rows, same, near = zip(*captures, strict=True) if captures else ((), (), ())

        async def act(session: Session) -> None:
            places = [row.number for row in rows], [row.offset for row in rows]
            await session.rows(_UNNAME, *places, list(same), list(near))

        self._atomically(act)

    def forget_failures(self, fingerprints: Sequence[bytes], name: str = "") -> None:
        """As the interface."""
        known = [one for one in fingerprints if one]

        async def act(session: Session) -> None:
            for table in ("errors", "dead_letters"):
                await session.rows(f"DELETE FROM {table} WHERE url_hash = ANY($1::bytea[])", known)  # noqa: S608 - our own names
                if name:
                    await session.rows(_OF_HOST.format(table, "host", "host"), name)
            if name:
                await session.rows(_OF_HOST.format("domains", "domain", "domain"), name)

        self._atomically(act)

    def make_durable(self) -> None:
        """As the interface: where the server is set to acknowledge before it has synced, this one waits for it."""

        async def act(session: Session) -> None:
            await session.run("SET LOCAL synchronous_commit = on; UPDATE totals SET captures = captures WHERE slot = 0")

        self._atomically(act)
