"""`nephila check` on real engines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import postgres
import pytest
from postgres import Postgres
from seaweed import BUCKET, READER, READER_SECRET, Seaweed
from valkey_servers import ValkeySingle

from nephila.engines.valkey_servers import servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.model.errors import UsageError
from nephila.model.settings import ArchiveSettings, FleetSettings, S3Settings, Settings
from nephila.node.fleet.agreeing import agree
from nephila.node.fleet.checking import check_engines
from nephila.node.fleet.findings import Finding, Verdict


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres.running(18, "-cfsync=on") as server:
        yield server


@pytest.fixture
def settings(valkey: ValkeySingle, database: Postgres, object_server: Seaweed, tmp_path: Path) -> Settings:
    return Settings(
        fleet=FleetSettings(crawl="checked", servers=tuple(valkey.names), directory=str(tmp_path / "worker")),
        catalogue=database.settings,
        archive=ArchiveSettings(url=f"s3://{BUCKET}/checked"),
        s3=S3Settings(endpoint=object_server.endpoint),
    )


def environ(database: Postgres, store: Seaweed) -> dict[str, str]:
    return {**database.environ, **store.environ}


def failed(findings: list[Finding]) -> list[str]:
    return [f"{one.engine} {one.subject}: {one.text}" for one in findings if one.verdict is Verdict.FAILED]


def test_engines_that_are_well_pass_and_nothing_is_left_there(
    settings: Settings, database: Postgres, object_server: Seaweed, valkey: ValkeySingle
) -> None:
    """N2, N4, W2, W3: every line is good; the keys, tables and objects that were tried are gone again."""
    findings = check_engines(settings, environ(database, object_server), read_only=False)
    assert failed(findings) == []
    told = " ".join(one.text for one in findings)
    for word in ("Valkey", "appendonly is on", "noeviction", "PostgreSQL", "If-None-Match", "taken away again"):
        assert word in told
    assert valkey.server.ask("KEYS", "nephila:{checked}*") == []
    assert database.query("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'crawl_checked%'") == []


def test_what_is_wrong_with_an_engine_is_told_with_what_to_change(
    settings: Settings, database: Postgres, object_server: Seaweed
) -> None:
    """N2, N4: an engine that would forget, one that is not there, one that lets us look and not write."""
    with ValkeySingle("--maxmemory-policy", "allkeys-lru") as careless:
        fleet = replace(settings.fleet, servers=tuple(careless.names), wait_replicas=1)
        credentials = {"AWS_ACCESS_KEY_ID": READER, "AWS_SECRET_ACCESS_KEY": READER_SECRET}
        wrong = replace(
            settings,
            fleet=fleet,
            catalogue=replace(settings.catalogue, url="postgresql://spider@127.0.0.1:1/crawls"),
        )
        findings = check_engines(wrong, environ(database, object_server) | credentials, read_only=False)
    told = failed(findings)
    assert len(told) == 5
    for word in ("appendonly is off", "allkeys-lru", "wait_replicas", "cannot be reached", f"archive s3://{BUCKET}"):
        assert any(word in line for line in told), word
    assert all(one.advice for one in findings if one.verdict is Verdict.FAILED)


def test_a_check_may_be_told_to_write_nothing(settings: Settings, database: Postgres, object_server: Seaweed) -> None:
    """N2: with rights to look only, everything that can be looked at is."""
    reader = {"AWS_ACCESS_KEY_ID": READER, "AWS_SECRET_ACCESS_KEY": READER_SECRET}
    findings = check_engines(settings, environ(database, object_server) | reader, read_only=True)
    assert failed(findings) == []
    assert not any("stored" in one.text for one in findings)


def test_a_server_that_takes_no_writes_is_not_written_to(
    settings: Settings, database: Postgres, object_server: Seaweed, valkey: ValkeySingle
) -> None:
    """N2, N4: a replica, and a node of a cluster that is not whole, are told at once: nobody waits for them."""
    primary = valkey.names[0].replace(":", " ")
    for options, word in ((("--replicaof", primary), "is a replica"), (("--cluster-enabled", "yes"), "the cluster as")):
        with ValkeySingle("--appendonly", "yes", *options) as other:
            wrong = replace(settings, fleet=replace(settings.fleet, servers=tuple(other.names)))
            findings = check_engines(wrong, environ(database, object_server), read_only=False)
        assert [word in line for line in failed(findings)] == [True]


def test_a_database_that_is_another_s_or_has_no_tls_is_told_with_what_to_type(
    settings: Settings, database: Postgres, object_server: Seaweed
) -> None:
    """N2, W3: the grant that is missing, whose the crawl's tables are, and how TLS is left away."""
    database.query("CREATE USER poor PASSWORD 'poor'")
    database.query("CREATE SCHEMA crawl_checked")
    given = {**environ(database, object_server), "PGPASSWORD": "poor"}
    poor = replace(settings.catalogue, url=database.url.replace("spider@", "poor@"))
    try:
        found = check_engines(replace(settings, catalogue=poor), given, read_only=False)
    finally:
        database.query("DROP SCHEMA crawl_checked")
        database.query("DROP USER poor")
    told = {one.text: one.advice for one in found if one.verdict is Verdict.FAILED}
    assert told["CREATE not granted"] == "GRANT CREATE ON DATABASE crawls TO poor"
    assert "let all workers come as its owner" in told["is there and belongs to spider, not to poor"]
    secured = replace(settings, catalogue=replace(settings.catalogue, tls="verified"))
    (one,) = (
        one
        for one in check_engines(secured, environ(database, object_server), read_only=False)
        if one.verdict is Verdict.FAILED
    )
    assert ("does not speak TLS" in one.text, 'catalogue.tls = "off"' in one.advice) == (True, True)


def test_a_password_that_nobody_asked_for_and_regions_that_cannot_be_read_are_told(
    settings: Settings, database: Postgres, object_server: Seaweed
) -> None:
    """N2, N6: what to take away, and how a region is written, before a worker fails of it."""
    given = {**environ(database, object_server), "REDISCLI_AUTH": "sesame"}
    (one,) = (one for one in check_engines(settings, given, read_only=True) if one.verdict is Verdict.FAILED)
    assert one.advice.startswith("take REDISCLI_AUTH or fleet.password_file away")
    wrong = replace(settings, fleet=replace(settings.fleet, regions=("eu",)))
    with pytest.raises(UsageError, match="is not GROUP=NAME"):
        check_engines(wrong, given, read_only=True)


def test_a_crawl_that_was_made_otherwise_is_told_also_of_a_region(
    settings: Settings, database: Postgres, object_server: Seaweed, valkey: ValkeySingle
) -> None:
    """N1, N6: shards and compactness are for good at its beginning; with those that it has all is well."""
    begun = replace(settings.fleet, crawl="made", shards=3, regions=("eu=de",))
    made = replace(settings, fleet=begun)
    for name, shards in (("made", "3"), ("made-eu", "5")):
        valkey.server.ask("HSET", f"nephila:{{{name}}}:crawl", "format", "3", "shards", shards, "compact", "0")
    given = environ(database, object_server)

    def found(settings: Settings) -> list[str]:
        return failed(check_engines(settings, given, read_only=True))

    (region,) = found(made)
    assert region == "frontier crawl made-eu: the crawl made-eu was made with fleet.shards = 5, and the settings say 3"
    here = replace(made, fleet=replace(begun, regions=()))
    assert found(here) == []
    (told,) = found(replace(here, fleet=replace(here.fleet, compact=True)))
    assert told.endswith("was made with fleet.compact = false, and the settings say true")
    valkey.server.ask("HSET", "nephila:{made}:fleet:places", "archive", "http://elsewhere:8333")
    valkey.server.ask("HSET", "nephila:{made:0}:meta", "tokens", "1")
    (told,) = found(here)
    assert "the archive of the crawl made is kept at http://elsewhere:8333, and these settings say http://" in told


def test_settings_that_every_worker_would_be_refused_for_are_told_by_name(
    settings: Settings, database: Postgres, object_server: Seaweed, valkey: ValkeySingle
) -> None:
    """N2, N8, U3: what the crawl was begun with, and the file has otherwise; that may change until it has asked."""
    begun = replace(settings, fleet=replace(settings.fleet, crawl="fixed", shards=2))
    valkey.server.ask("HSET", "nephila:{fixed}:crawl", "format", "3", "shards", "2", "compact", "0")

    async def begin() -> None:
        state = await ValkeyState.open(servers_of(valkey.names, {}))
        await agree(state, begun, "seeds")
        await state.close()

    asyncio.run(begin())
    given = environ(database, object_server)
    store = replace(begun, archive=replace(begun.archive, url=f"s3://{BUCKET}/slip"))
    form = replace(begun, urls=replace(begun.urls, max_length=99))

    def found(settings: Settings) -> Finding:
        (one,) = (one for one in check_engines(settings, given, read_only=True) if one.subject == "crawl fixed")
        return one

    assert found(begun).verdict is Verdict.OK
    assert (found(store).verdict, found(form).verdict) == (Verdict.WARNING, Verdict.WARNING)
    assert "asked for nothing yet" in found(store).advice
    valkey.server.ask("HSET", "nephila:{fixed:1}:meta", "tokens", "1")
    for other, words in (
        (store, f"archive.url = s3://{BUCKET}/checked, and these settings say s3://{BUCKET}/slip"),
        (form, "urls.max_length = 2048, and these settings say 99"),
    ):
        told = found(other)
        assert (told.verdict, told.text) == (Verdict.FAILED, f"the crawl fixed was begun with {words}")
        assert "fleet.crawl" in told.advice
    assert found(begun).verdict is Verdict.OK, "whoever looks changes nothing"
