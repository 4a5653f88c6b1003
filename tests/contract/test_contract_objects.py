"""The object store's promises, on the simulated one and on a real S3 server."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from pathlib import Path
from uuid import uuid4

import pytest
import seaweed

from nephila.model.errors import StoreAwayError, StoreRefusedError
from nephila.model.settings import S3Settings
from nephila.store.s3 import CredentialChain, S3ObjectStore
from nephila.testing.contracts.objects import CHECKS, Check, body_of, sample
from nephila.testing.loop import run_virtual
from nephila.testing.objects import SimulatedObjectStore

SMALL_PARTS = 5 * 1024 * 1024


@pytest.fixture
def server(object_server: seaweed.Seaweed) -> seaweed.Seaweed:
    return object_server


def _now_ms() -> int:
    return int(time.time() * 1000)


def _store(
    server: seaweed.Seaweed, environ: dict[str, str] | None = None, skew_ms: int = 0, **more: str
) -> S3ObjectStore:
    settings = S3Settings(endpoint=more.get("endpoint", server.endpoint), part_bytes=SMALL_PARTS)
    chain = CredentialChain(server.environ | (environ or {}), _now_ms)
    return S3ObjectStore(more.get("bucket", seaweed.BUCKET), settings, chain, lambda: _now_ms() + skew_ms)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_simulated_store_keeps_the_contract(check: Check) -> None:
    """W2: every check of the suite, under virtual time."""
    run_virtual(lambda: check(SimulatedObjectStore(), "somewhere"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_real_server_keeps_the_contract(check: Check, server: seaweed.Seaweed) -> None:
    """W2: every check of the suite, over the wire; the prefix has characters that must be encoded."""

    async def run() -> None:
        store = _store(server)
        try:
            await check(store, f"a crawl/{uuid4()}+\u00fc")
        finally:
            await store.close()

    asyncio.run(run())


def test_bytes_that_were_hurt_on_their_way_are_refused(server: seaweed.Seaweed) -> None:
    """W2: the store compares what arrived with the digest that was signed, and keeps nothing else."""

    async def run() -> None:
        store = _store(server)
        body = body_of(sample(100_000))
        hurt = type(body)(body.size, body.digest, lambda offset, size: b"x" * size)
        try:
            with pytest.raises((StoreAwayError, StoreRefusedError)):
                await store.create("hurt", hurt)
            assert await store.look("hurt") is None
        finally:
            await store.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("environ", "more", "skew_ms", "words"),
    [
        ({"AWS_ACCESS_KEY_ID": "nobody"}, {}, 0, "does not know the access key"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, {}, 0, "does not accept the secret key"),
        ({}, {"bucket": "no-such-bucket"}, 0, "there is no bucket 'no-such-bucket'"),
        (
            {"AWS_ACCESS_KEY_ID": seaweed.READER, "AWS_SECRET_ACCESS_KEY": seaweed.READER_SECRET},
            {},
            0,
            "does not allow that the bucket 'crawls' is written",
        ),
        ({}, {}, 3_600_000, "this machine's clock differs"),
        ({}, {}, -3_600_000, "this machine's clock differs"),
    ],
)
def test_every_refusal_is_told_in_a_sentence_with_what_to_do(
    server: seaweed.Seaweed, environ: dict[str, str], more: dict[str, str], skew_ms: int, words: str
) -> None:
    """W2: wrong credentials, no bucket, no permission, a wrong clock; and no secret in it."""

    async def run() -> None:
        store = _store(server, environ, skew_ms, **more)

        async def probe() -> None:
            await store.keys("probe-")  # as a crawl's first look does: some servers tell of a missing bucket only here
            await store.create(f"probe-{uuid4()}", body_of(b"probe"))

        try:
            with pytest.raises(StoreRefusedError) as told:
                await probe()
        finally:
            await store.close()
        assert words in str(told.value)
        assert told.value.hint
        assert seaweed.SECRET not in f"{told.value} {told.value.hint}"

    asyncio.run(run())


def test_a_server_that_is_not_there_is_away(server: seaweed.Seaweed) -> None:
    """W2: no answer is no refusal: it may come back."""
    [closed] = seaweed.free_ports(1)

    async def run() -> None:
        store = _store(server, endpoint=f"http://127.0.0.1:{closed}")
        try:
            with pytest.raises(StoreAwayError, match="does not answer: connection refused"):
                await store.look("anything")
        finally:
            await store.close()

    asyncio.run(run())


def test_half_made_uploads_are_given_up(server: seaweed.Seaweed) -> None:
    """W2: parts that a killed process left are not paid for for ever."""

    async def run() -> None:
        store = _store(server)
        prefix = f"half-{uuid4()}"
        try:
            begun = store._ask("POST", f"{prefix}/one", [("uploads", "")])
            part = body_of(sample(SMALL_PARTS))
            store._ask("PUT", f"{prefix}/one", [("partNumber", "1"), ("uploadId", begun.field("UploadId"))], body=part)
            store._ask("POST", f"{prefix}/two", [("uploads", "")])
            assert await store.abort_unfinished(f"{prefix}/") == 2
            assert await store.abort_unfinished(f"{prefix}/") == 0
            assert await store.keys(f"{prefix}/") == []
        finally:
            await store.close()

    asyncio.run(run())


def test_an_upload_that_breaks_leaves_no_parts(server: seaweed.Seaweed) -> None:
    """W2: whoever notices the break gives its parts up at once."""

    async def run() -> None:
        store = _store(server)
        whole = body_of(sample(12_000_000))

        def breaking(offset: int, size: int) -> bytes:
            if offset > 9_000_000:
                raise StoreAwayError("the disk is away")
            return whole.read_at(offset, size)

        try:
            with pytest.raises(StoreAwayError):
                await store.create("broken/large", type(whole)(whole.size, whole.digest, breaking))
            assert await store.abort_unfinished("broken/") == 0
            assert await store.look("broken/large") is None
        finally:
            await store.close()

    asyncio.run(run())


def test_closing_breaks_off_what_is_under_way(server: seaweed.Seaweed) -> None:
    """W2, F10: nobody waits for an upload at the end."""

    async def run() -> float:
        settings = S3Settings(endpoint=server.endpoint, max_bytes_per_s=100_000, uploads=1)
        store = S3ObjectStore(seaweed.BUCKET, settings, CredentialChain(server.environ, _now_ms), _now_ms)
        upload = asyncio.create_task(store.create("endless", body_of(sample(5_000_000))))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await store.close()
        with pytest.raises(StoreAwayError):
            await upload
        return time.monotonic() - began

    assert asyncio.run(run()) < 5


def test_a_profile_in_a_file_is_found(server: seaweed.Seaweed, tmp_path: Path) -> None:
    """W2: credentials come from where S3 tools look for them."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[crawler]\naws_access_key_id = {seaweed.KEY}\naws_secret_access_key = {seaweed.SECRET}\n", encoding="utf-8"
    )

    async def run() -> None:
        environ = {"HOME": str(tmp_path), "AWS_PROFILE": "crawler", "AWS_EC2_METADATA_DISABLED": "true"}
        chain = CredentialChain(environ, _now_ms)
        store = S3ObjectStore(seaweed.BUCKET, S3Settings(endpoint=server.endpoint), chain, _now_ms)
        try:
            assert await store.look("whatever") is None
        finally:
            await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("before", [("gone", "gone"), (seaweed.KEY, "gone")], ids=["another key", "another secret"])
@pytest.mark.parametrize("asked", ["create", "look"])
def test_credentials_that_are_replaced_in_their_file_are_taken_up(
    asked: str, before: tuple[str, str], server: seaweed.Seaweed, tmp_path: Path
) -> None:
    """W2, N4: by whatever is asked next; a store says nothing of why it refuses to look."""
    file = tmp_path / "credentials"

    def write(key: str, secret: str) -> None:
        file.write_text(f"[default]\naws_access_key_id={key}\naws_secret_access_key={secret}\n", encoding="utf-8")

    async def run() -> None:
        chain = CredentialChain({"AWS_SHARED_CREDENTIALS_FILE": str(file)}, _now_ms)
        store = S3ObjectStore(seaweed.BUCKET, S3Settings(endpoint=server.endpoint), chain, _now_ms)
        try:
            for key, secret in (before, (seaweed.KEY, seaweed.SECRET)):
                write(key, secret)
                with pytest.raises(StoreRefusedError) if secret == before[1] else nullcontext():
                    await (store.create(f"{uuid4()}", body_of(b"x")) if asked == "create" else store.look("x"))
        finally:
            await store.close()

    asyncio.run(run())
