"""Asking the engines of a fleet how they are: every connection, version, permission and setting that a worker needs.

Nothing of the crawl is touched. What is written to see whether it can be (a key, a temporary table, an object) is taken
back; with `read_only` nothing is written at all.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from nephila.engines.postgres import Patience, PostgresDatabase, Session
from nephila.engines.postgres_address import PostgresAddress
from nephila.engines.valkey import PROMPT_S
from nephila.engines.valkey_facts import read_facts
from nephila.engines.valkey_servers import ValkeyServers
from nephila.engines.valkey_state import ValkeyState
from nephila.frontier.redis.opening import Opening, other_making
from nephila.frontier.redis.shards import crawl_key
from nephila.interfaces.objects import ObjectBody
from nephila.model.errors import NephilaError, ObjectExistsError
from nephila.model.settings import Settings
from nephila.node.clock import SystemClock
from nephila.node.telling import open_stream
from nephila.store import MARKER, ArchivePlace, check_layout
from nephila.store.postgres.migrating import known_migrations, schema_of
from nephila.store.s3 import CredentialChain, S3ObjectStore

from .access import check_fleet, valkey_servers
from .agreeing import agreed_by, disagreement
from .agreement import Agreement
from .findings import DatabaseFacts, Finding, bad, doubtful, good, judge_database, judge_nodes
from .regions import Regions, regional

PATIENCE_S = 5.0
LEAST_FREE_BYTES = 1_000_000_000
NOT_YET = "it has asked for nothing yet: the next worker, if no other is at work, has it as the settings say"
PROBE = b"written by nephila check, and not needed any more\n"
ASKED_OF_POSTGRES = (
    "SELECT current_setting('server_version'), has_database_privilege(current_database(), 'CREATE'),"
    " has_database_privilege(current_database(), 'TEMPORARY'), pg_is_in_recovery(),"
    " current_setting('fsync'), current_setting('server_encoding'),"
    " extract(epoch FROM clock_timestamp())::float8, to_regclass('migrations') IS NOT NULL,"
    " quote_ident(current_database()), quote_ident(current_user),"
    " (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = $1 AND NOT pg_has_role(nspowner, 'USAGE'))"
)


def check_engines(settings: Settings, environ: Mapping[str, str], *, read_only: bool) -> list[Finding]:
    """Every engine that the settings name; raises `UsageError` where they make no sense."""
    crawl = check_fleet(settings)
    Regions(settings.fleet.regions)
    return asyncio.run(_checked(settings, crawl, environ, read_only=read_only))


async def _checked(settings: Settings, crawl: str, environ: Mapping[str, str], *, read_only: bool) -> list[Finding]:
    findings = [one async for one in _frontier(settings, crawl, environ, read_only=read_only)]
    findings += await asyncio.to_thread(lambda: list(_catalogue(settings, crawl, environ, read_only=read_only)))
    findings += [one async for one in _archive(settings, environ, read_only=read_only)]
    if settings.stream.url and not read_only:  # a subject of NATS that nobody keeps would be kept from then on
        findings.append(await asyncio.to_thread(_stream, settings, environ))
    return [*findings, *_worker(settings)]


async def _frontier(
    settings: Settings, crawl: str, environ: Mapping[str, str], *, read_only: bool
) -> AsyncIterator[Finding]:
    access = valkey_servers(settings, environ)
    nodes = await read_facts(access)
    for finding in judge_nodes(nodes, settings.fleet.wait_replicas):
        yield finding
    if not all(node.takes_writes for node in nodes):
        return
    async for finding in _made(settings, access):
        yield finding
    if read_only:
        return
    key = f"nephila:{{{crawl}}}:check:{secrets.token_hex(4)}"
    try:
        state = await ValkeyState.open(access, refused_s=PROMPT_S)
        try:
            await state.call("SET", key, PROBE, "EX", 60)
            kept = await state.run("return redis.call('GET', KEYS[1])", [key])
            await state.call("DEL", key)
        finally:
            await state.close()
    except NephilaError as error:
        yield bad("frontier", "rights", str(error), error.hint)
    else:
        if kept == PROBE:
            yield good("frontier", "rights", "keys and scripts under nephila:* may be written and run")
        else:
            yield bad("frontier", "rights", "what was written is not read back", "see that one server answers there")


async def _made(settings: Settings, access: ValkeyServers) -> AsyncIterator[Finding]:
    """Whether the crawl, and those of its regions, are what the settings say, where they were begun."""
    wanted = Opening(shards=settings.fleet.shards, compact=settings.fleet.compact)
    try:
        state = await ValkeyState.open(access, refused_s=PROMPT_S)
        try:
            for group in ("", *sorted(Regions(settings.fleet.regions).groups)):
                crawl = regional(settings, group).fleet.crawl
                shards, compact = await state.call("HMGET", crawl_key(crawl, "crawl"), "shards", "compact")
                if shards is None:
                    continue
                own, agreement = agreed_by(regional(settings, group)), Agreement(state, crawl)
                known = await agreement.read()
                made = other_making(crawl, shards, compact or b"0", wanted)
                other = made or disagreement(crawl, own, known)
                if other is not None and made is None and await agreement.may_change(own, known):
                    yield doubtful("frontier", f"crawl {crawl}", str(other), NOT_YET)
                elif other is not None:
                    yield bad("frontier", f"crawl {crawl}", str(other), other.hint)
                else:
                    yield good("frontier", f"crawl {crawl}", f"is there, with {int(shards)} shards")
        finally:
            await state.close()
    except NephilaError as error:
        yield bad("frontier", "crawl", str(error), error.hint)


def _catalogue(settings: Settings, crawl: str, environ: Mapping[str, str], *, read_only: bool) -> Iterator[Finding]:
    schema = schema_of(settings.catalogue.name or crawl)
    database: PostgresDatabase | None = None

    async def try_writing(session: Session) -> None:
        await session.run("CREATE TEMPORARY TABLE nephila_check (n integer); DROP TABLE nephila_check")

    try:
        address = PostgresAddress.of(settings.catalogue, environ)
        database = PostgresDatabase(address, schema, settings.catalogue)
        facts = database.do(partial(_ask_database, schema=schema), Patience(PATIENCE_S))
        yield from judge_database(str(address), schema, facts, known_migrations()[-1].number)
        if not read_only and facts.creates and facts.temporary:
            database.do(try_writing, Patience(PATIENCE_S))
            yield good("catalogue", "rights", "schemas and temporary tables may be made")
    except NephilaError as error:
        yield bad("catalogue", "server", str(error), error.hint or "see catalogue.* in the configuration")
    finally:
        if database is not None:
            database.close()


def _stream(settings: Settings, environ: Mapping[str, str]) -> Finding:
    """Whether messages for others would arrive."""
    place = f"{settings.stream.name} at {settings.stream.url}"
    try:
        stream = open_stream(replace(settings.stream, timeout_s=min(PATIENCE_S, settings.stream.timeout_s)), environ)
        try:
            stream.publish(())
        finally:
            stream.close()
    except NephilaError as error:
        return bad("stream", "server", str(error), error.hint or "see stream.* in the configuration")
    return good("stream", place, "connected and let in")


async def _ask_database(session: Session, schema: str) -> DatabaseFacts:
    before = time.time()
    answer = (await session.rows(ASKED_OF_POSTGRES, schema))[0]
    version, creates, temporary, standby, fsync, encoding, now, begun, database, user, owner = answer
    skew_ms = int((float(now) - (before + time.time()) / 2) * 1000)
    newest = await session.value("SELECT max(number) FROM migrations") if begun and owner is None else None
    who = (database, user, owner or "")
    return DatabaseFacts(version, creates, temporary, standby, fsync == "on", encoding, skew_ms, newest, *who)


async def _archive(settings: Settings, environ: Mapping[str, str], *, read_only: bool) -> AsyncIterator[Finding]:
    clock = SystemClock()
    try:
        place = ArchivePlace.parse(settings.archive.url)
        check_layout(settings.archive)
        store = S3ObjectStore(place.bucket, settings.s3, CredentialChain(environ, clock.wall_ms), clock.wall_ms)
    except NephilaError as error:
        yield bad("archive", settings.archive.url, str(error), error.hint)
        return
    try:
        there = await store.keys(place.key(MARKER))
        yield good("archive", str(place), "is listed" + (", and holds a crawl" if there else ", and empty"))
        if not read_only:
            async for finding in _stored(store, place):
                yield finding
    except NephilaError as error:
        yield bad("archive", str(place), str(error), error.hint or "see archive.url, s3.* and the credentials")
    finally:
        await store.close()


async def _stored(store: S3ObjectStore, place: ArchivePlace) -> AsyncIterator[Finding]:
    """Put an object, read it, put it a second time, take it away."""
    key = place.key(f"nephila-check-{secrets.token_hex(6)}")
    body = ObjectBody(len(PROBE), sha256(PROBE).hexdigest(), lambda offset, size: PROBE[offset : offset + size])
    await store.create(key, body)
    read = await asyncio.to_thread(store.read, key, 0, len(PROBE) + 1)
    if read == PROBE:
        yield good("archive", str(place), "an object may be stored, and is read back")
    else:
        yield bad("archive", str(place), "an object that was stored is not read back as it was", "mend the store")
    try:
        await store.create(key, body)
    except ObjectExistsError:
        yield good("archive", str(place), "nothing is overwritten (If-None-Match)")
    else:
        yield doubtful(
            "archive",
            str(place),
            "If-None-Match is not known: keys are asked for before every upload",
            "it works, slower",
        )
    if await store.remove(key):
        yield good("archive", str(place), "the object was taken away again")
    else:
        yield doubtful(
            "archive", str(place), f"may not delete, which workers need not: {key} stays", "remove it by hand"
        )


def _worker(settings: Settings) -> Iterator[Finding]:
    folder = Path(settings.fleet.directory)
    above = next((one for one in (folder, *folder.absolute().parents) if one.exists()), Path("/"))
    if not os.access(above, os.W_OK):
        yield bad("worker", str(folder), f"{above} may not be written", "choose another fleet.directory")
        return
    free = shutil.disk_usage(above).free
    if free < LEAST_FREE_BYTES:
        yield doubtful("worker", str(folder), f"{free / 1e6:,.0f} MB are free for the spool", "give it more room")
    else:
        yield good("worker", str(folder), f"may be written, {free / 1e9:,.0f} GB are free for the spool")
