"""Which captures need not be kept any longer, found in the catalogue in PostgreSQL (W5); and the marks that spare some.

What is chosen is kept in a table of the schema, so that a connection that breaks loses nothing; one process at a time
chooses, which is its callers' affair. What would go is found in a table of one transaction, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from nephila.engines.postgres import Act, Row, Session
from nephila.interfaces.retention import Choice, Outdated, RetentionRule
from nephila.model.record import SegmentId

from .removal import REMOVE

T = TypeVar("T")

MARK_ROWS = 20_000
"""Marks that are brought at once."""

_CHOOSE = """
INSERT INTO going
SELECT segment, "offset", at, url_hash, payload_digest, kind, record_bytes, 0 FROM (
  SELECT c.segment, c."offset", c.at, c.url_hash, c.payload_digest, c.kind, c."end" - c."offset" AS record_bytes,
         p.url_hash IS NOT NULL AS stands, greatest(c.at, coalesce(p.crawled_at, 0)) AS newest,
         {indexed} AS indexed,
         row_number() OVER (
           PARTITION BY CASE WHEN c.url_hash = '' THEN convert_to(c.url, 'UTF8') ELSE c.url_hash END,
                        c.status = 304 OR c.status / 100 = 2
           ORDER BY c.at DESC, c.segment DESC, c."offset" DESC
         ) AS place
  FROM captures c
  LEFT JOIN page_states p ON p.url_hash = c.url_hash AND p.segment = c.segment AND p."offset" = c."offset"
  WHERE NOT c.robots AND c.kind IN ('response', 'revisit')
) AS ranked
WHERE ($1::bigint > 0 AND place > $1::bigint AND NOT stands) OR (newest < $2::bigint AND NOT indexed)
"""
_INDEXED = """CASE
  WHEN c.url_hash = '' THEN false
  WHEN p.url_hash IS NULL THEN (c.segment, c."offset") IN (SELECT segment, "offset" FROM marked)
  ELSE c.url_hash IN (SELECT url_hash FROM marked)
END"""
"""Of what a page stands on, whether any capture of it is marked; of others, whether they are."""
_MARKED = """
CREATE TEMP TABLE marked ON COMMIT DROP AS
SELECT c.segment, c."offset", c.url_hash
FROM indexed m JOIN segments s ON s.name = m.segment JOIN captures c ON c.segment = s.id AND c."offset" = m."offset"
WHERE c.url_hash <> '';
ANALYZE marked
"""
_KEEP_ORIGINALS = """
DELETE FROM going WHERE kind = 'response' AND payload_digest IN (
  SELECT c.payload_digest FROM captures c WHERE c.kind = 'revisit'
  AND NOT EXISTS (SELECT 1 FROM going g WHERE g.segment = c.segment AND g."offset" = c."offset")
)
"""
_TAKE_TURNS = """
UPDATE going SET turn = 1 WHERE kind = 'response' AND payload_digest IN (
  SELECT payload_digest FROM going WHERE kind = 'revisit'
)
"""
_FIGURES = """
SELECT count(*), count(DISTINCT url_hash), count(DISTINCT segment), coalesce(sum(record_bytes), 0)::bigint FROM going
"""
_PAGES_GONE = """
SELECT count(*) FROM (SELECT DISTINCT url_hash FROM going WHERE url_hash <> '') g WHERE NOT EXISTS (
  SELECT 1 FROM captures c LEFT JOIN going o ON o.segment = c.segment AND o."offset" = c."offset"
  WHERE c.url_hash = g.url_hash AND o.segment IS NULL
)
"""
_FILES = """
SELECT id, name FROM segments WHERE id IN (SELECT segment FROM going WHERE turn = $1) ORDER BY id
"""
_OF_A_FILE = """
SELECT c.segment, c."offset", c.url_hash, c.url, c.host, c.at, c.status, c.content_hash, c.simhash
FROM going g JOIN captures c ON c.at = g.at AND c.segment = g.segment AND c."offset" = g."offset"
WHERE g.segment = $1 AND g.turn = $2 ORDER BY c."offset"
"""
_STAND = """
WITH fallen AS (
  SELECT p.url_hash FROM page_states p
  JOIN unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS gone (url_hash, segment, "offset")
    ON p.url_hash = gone.url_hash AND p.segment = gone.segment AND p."offset" = gone."offset"
  ORDER BY p.url_hash FOR UPDATE OF p
), newest AS (
  SELECT DISTINCT ON (c.url_hash) c.url_hash, c.segment, c."offset", c.at
  FROM captures c JOIN fallen f ON f.url_hash = c.url_hash
  WHERE c.status <> 304 ORDER BY c.url_hash, c.at DESC, c.segment DESC, c."offset" DESC
), standing AS (
  UPDATE page_states p SET segment = n.segment, "offset" = n."offset", captured_at = n.at, has_content = true
  FROM newest n WHERE p.url_hash = n.url_hash
)
DELETE FROM page_states p USING fallen f
WHERE p.url_hash = f.url_hash AND NOT EXISTS (SELECT 1 FROM newest n WHERE n.url_hash = f.url_hash)
"""


class Atomically(Protocol):
    """Does something in one transaction, and again where the server was away."""

    def __call__(self, act: Act[T]) -> T:
        """What came of it."""


class PostgresRetention:
    """Implements `interfaces.retention.CatalogueRetention`."""

    def __init__(
        self, at_length: Atomically, atomically: Callable[[Act[None]], None], read: Callable[..., list[Row]]
    ) -> None:
        """`at_length` has hours: finding out goes over all captures."""
        self._at_length = at_length
        self._atomically = atomically
        self._read = read

    def foresee(self, rule: RetentionRule) -> Choice:
        """As the interface."""

        async def act(session: Session) -> Choice:
            await session.run("CREATE TEMP TABLE going (LIKE going INCLUDING INDEXES) ON COMMIT DROP")
            return await _chosen(session, rule)

        return self._at_length(act)

    def choose(self, rule: RetentionRule) -> Choice:
        """As the interface."""

        async def act(session: Session) -> Choice:
            await session.run("TRUNCATE going")
            return await _chosen(session, rule)

        return self._at_length(act)

    def files(self, turn: int) -> list[tuple[int, SegmentId]]:
        """As the interface."""
        return [(int(number), SegmentId(name)) for number, name in self._read(_FILES, turn)]

    def of_file(self, number: int, turn: int) -> list[Outdated]:
        """As the interface."""
        return [Outdated(*row) for row in self._read(_OF_A_FILE, number, turn)]

    def remove(self, captures: Sequence[Outdated]) -> None:
        """As the interface. A batch is one transaction."""
        places = [row.number for row in captures], [row.offset for row in captures]

        async def act(session: Session) -> None:
            await session.rows(REMOVE, *places)
            await session.rows(_STAND, [row.fingerprint for row in captures], *places)

        self._atomically(act)


async def _chosen(session: Session, rule: RetentionRule) -> Choice:
    """Find out what goes, into the table `going` that this session sees."""
    indexed = "false"
    if rule.before:
        await session.run(_MARKED)
        indexed = _INDEXED
    await session.rows(_CHOOSE.format(indexed=indexed), rule.captures, rule.before)
    await session.run("ANALYZE going")
    await session.run(_KEEP_ORIGINALS)
    await session.run(_TAKE_TURNS)
    (figures,) = await session.rows(_FIGURES)
    captures, urls, files, size = figures
    return Choice(captures, urls, files, size, await session.value(_PAGES_GONE))


class PostgresMarks:
    """Implements `interfaces.retention.Marks`."""

    def __init__(self, atomically: Atomically) -> None:
        self._atomically = atomically

    def add(self, captures: Iterable[tuple[SegmentId, int]]) -> tuple[int, int]:
        """As the interface; all of them are read before the first is brought."""
        marks = sorted(set(captures))

        async def act(session: Session) -> tuple[int, int]:
            new = 0
            for first in range(0, len(marks), MARK_ROWS):
                names, offsets = zip(*marks[first : first + MARK_ROWS], strict=True)
                new += len(
                    await session.rows(
                        "INSERT INTO indexed SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING"
                        " RETURNING 1",
                        list(names),
                        list(offsets),
                    )
                )
            return new, int(await session.value("SELECT count(*) FROM indexed"))

        return self._atomically(act)
