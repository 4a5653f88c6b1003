"""Making the tables of a crawl, and bringing those of an older version up to date.

Migrations are files with a number, run in their order, each once; a table says which were. All of it is one
transaction under a lock of the server's, so that of a hundred workers that start at once one migrates, and the others
find it done. A schema that a newer program has migrated is refused: what it means is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from zlib import crc32

from nephila.engines.postgres import Session
from nephila.model.errors import DatabaseRefusedError, UsageError

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,54}")
LOCK_SPACE = 0x4E455048
"""`NEPH`: the first half of the keys of our advisory locks, the second is the schema's."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step."""

    number: int
    script: str


def known_migrations() -> tuple[Migration, ...]:
    """Those of this program, in order."""
    folder = resources.files(__package__).joinpath("migrations")
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".sql")), key=lambda one: one.name)
    return tuple(Migration(int(one.name.partition("-")[0]), one.read_text(encoding="utf-8")) for one in found)


def schema_of(crawl: str) -> str:
    """What the schema of a crawl is called; raises `UsageError` for a name that could not stand in one."""
    if not _NAME.fullmatch(crawl):
        raise UsageError(
            f"{crawl!r} cannot be the name of a crawl in a database",
            hint="catalogue.name: a small letter, then small letters, digits, - and _, 55 characters at most",
        )
    return f"crawl_{crawl}"


def lock_of(schema: str) -> str:
    """The statement that holds a schema against other migrations, and other makers of partitions, in a transaction."""
    key = crc32(schema.encode()) - (1 << 31)
    return f"SELECT pg_advisory_xact_lock({LOCK_SPACE}, {key})"


async def migrate(session: Session, schema: str, identity: str, migrations: Sequence[Migration]) -> None:
    """Bring a schema to the newest version. To be run in a transaction.

    A catalogue of another crawl (by `identity`) is refused, unless it is empty.
    """
    await session.run(lock_of(schema))
    if await session.value("SELECT to_regnamespace($1) IS NULL", f'"{schema}"'):
        await session.run(f'CREATE SCHEMA "{schema}"')
    if await session.value("SELECT to_regclass('migrations') IS NULL"):
        await _refuse_strangers(session, schema)
        await session.run(
            "CREATE TABLE migrations (number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        )
    done = await _done(session)
    _refuse_newer(done, schema, migrations)
    for migration in migrations:
        if migration.number not in done:
            await session.run(migration.script)
            await session.rows("INSERT INTO migrations (number) VALUES ($1)", migration.number)
    await _claim(session, schema, identity)


async def check(session: Session, schema: str, migrations: Sequence[Migration]) -> None:
    """Whether a schema can be read as it is; raises `DatabaseRefusedError` with a sentence."""
    if await session.value("SELECT to_regclass('migrations') IS NULL"):
        raise DatabaseRefusedError(
            f"there is no catalogue in the schema {schema} yet", hint="the first worker of the crawl makes it"
        )
    done = await _done(session)
    _refuse_newer(done, schema, migrations)
    if missing := [one.number for one in migrations if one.number not in done]:
        raise DatabaseRefusedError(
            f"the catalogue in the schema {schema} is of an older version (migration {missing[0]} is missing)",
            hint="start a worker of this version: it brings the catalogue up to date",
        )


async def _done(session: Session) -> set[int]:
    return {int(number) for (number,) in await session.rows("SELECT number FROM migrations")}


def _refuse_newer(done: set[int], schema: str, migrations: Sequence[Migration]) -> None:
    newest = max(one.number for one in migrations)
    if max(done, default=0) > newest:
        raise DatabaseRefusedError(
            f"the catalogue in the schema {schema} has schema version {max(done)}; this Nephila knows {newest}",
            hint="use the version that made it, or a newer one",
        )


async def _refuse_strangers(session: Session, schema: str) -> None:
    if await session.value("SELECT count(*) FROM pg_tables WHERE schemaname = $1", schema):
        raise DatabaseRefusedError(
            f"the schema {schema} holds something else than a catalogue", hint="choose another catalogue.name"
        )


async def _claim(session: Session, schema: str, identity: str) -> None:
    """Write down whose catalogue this is, or find that it is somebody else's."""
    known = await session.value("SELECT identity FROM crawl")
    if known is None:
        await session.rows("INSERT INTO crawl (identity) VALUES ($1)", identity)
    elif known != identity:
        if await session.value("SELECT EXISTS (SELECT 1 FROM segments) OR EXISTS (SELECT 1 FROM errors)"):
            raise DatabaseRefusedError(
                f"the schema {schema} holds the catalogue of another crawl",
                hint="choose another catalogue.name; a crawl whose frontier was lost is built anew by"
                " `nephila frontier rebuild`",
            )
        await session.rows("UPDATE crawl SET identity = $1", identity)
