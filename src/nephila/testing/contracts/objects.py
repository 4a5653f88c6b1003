"""What every `interfaces.objects.ObjectStore` keeps. A check takes a store and a prefix that nobody else uses."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from hashlib import sha256

from nephila.interfaces.objects import ObjectBody, ObjectInfo, ObjectStore, RewritingStore
from nephila.model.errors import ObjectChangedError, ObjectExistsError

Check = Callable[[RewritingStore, str], Awaitable[None]]


def body_of(data: bytes) -> ObjectBody:
    """Bytes as a body."""
    return ObjectBody(len(data), sha256(data).hexdigest(), lambda offset, size: data[offset : offset + size])


def sample(size: int, seed: int = 1) -> bytes:
    """Bytes that do not repeat."""
    return random.Random(seed).randbytes(size)  # noqa: S311 - no secret


async def check_what_is_created_is_there_whole(store: ObjectStore, prefix: str) -> None:
    """W2: size and digest as sent, bytes as sent, in whatever stretches they are read."""
    data = sample(300_001)
    await store.create(f"{prefix}/one", body_of(data))
    assert await store.look(f"{prefix}/one") == ObjectInfo(len(data), sha256(data).hexdigest())
    assert store.read(f"{prefix}/one", 0, len(data)) == data
    assert store.read(f"{prefix}/one", 299_999, 10) == data[-2:]
    assert store.read(f"{prefix}/one", 1000, 17) == data[1000:1017]
    assert store.read(f"{prefix}/one", len(data), 10) == b""


async def check_nothing_is_overwritten(store: ObjectStore, prefix: str) -> None:
    """W2: a second object under a key is refused, and the first one stays."""
    await store.create(f"{prefix}/once", body_of(b"first"))
    try:
        await store.create(f"{prefix}/once", body_of(b"second, and longer"))
    except ObjectExistsError:
        pass
    else:
        raise AssertionError("an object was overwritten")
    assert store.read(f"{prefix}/once", 0, 100) == b"first"


async def check_what_is_not_there_is_not_there(store: ObjectStore, prefix: str) -> None:
    """W2: looking says None, reading raises."""
    assert await store.look(f"{prefix}/nothing") is None
    try:
        store.read(f"{prefix}/nothing", 0, 1)
    except FileNotFoundError:
        return
    raise AssertionError("something was read from nothing")


async def check_keys_are_listed_in_order(store: ObjectStore, prefix: str) -> None:
    """W2: those that begin so, and no others; odd characters come back as they went."""
    names = ["b", "a/1", "a/2", "a b+c&d<e>\u00e9", "c"]
    for name in names:
        await store.create(f"{prefix}/list/{name}", body_of(name.encode()))
    assert await store.keys(f"{prefix}/list/") == sorted(f"{prefix}/list/{name}" for name in names)
    assert await store.keys(f"{prefix}/list/a/") == [f"{prefix}/list/a/1", f"{prefix}/list/a/2"]
    assert await store.keys(f"{prefix}/nowhere/") == []


async def check_an_empty_object_is_an_object(store: ObjectStore, prefix: str) -> None:
    """W2: the index of a segment in which nothing counts is empty."""
    await store.create(f"{prefix}/empty", body_of(b""))
    found = await store.look(f"{prefix}/empty")
    assert found == ObjectInfo(0, sha256(b"").hexdigest())
    assert store.read(f"{prefix}/empty", 0, 10) == b""


async def check_a_large_object_arrives_whole(store: ObjectStore, prefix: str) -> None:
    """W2: also where it goes in parts, and also then it is never overwritten."""
    data = sample(11_000_003)
    await store.create(f"{prefix}/large", body_of(data))
    assert await store.look(f"{prefix}/large") == ObjectInfo(len(data), sha256(data).hexdigest())
    assert store.read(f"{prefix}/large", 5_000_000, 1_000_000) == data[5_000_000:6_000_000]
    try:
        await store.create(f"{prefix}/large", body_of(data[::-1]))
    except ObjectExistsError:
        pass
    else:
        raise AssertionError("an object was overwritten")
    assert store.read(f"{prefix}/large", 0, 100) == data[:100]


async def check_nothing_unfinished_is_nothing_to_abort(store: ObjectStore, prefix: str) -> None:
    """W2: objects that are whole are left alone."""
    await store.create(f"{prefix}/kept", body_of(b"kept"))
    assert await store.abort_unfinished(f"{prefix}/") == 0
    assert store.read(f"{prefix}/kept", 0, 10) == b"kept"


async def check_an_object_is_replaced_by_whoever_knows_it(store: RewritingStore, prefix: str) -> None:
    """K2, W2: small or in parts; twice does no harm; what is not there, or is another by now, is left alone."""
    for name, size in (("small", 1_000), ("large", 11_000_003)):
        key, old, new = f"{prefix}/{name}", body_of(sample(size)), body_of(sample(size, 2))
        await store.create(key, old)
        for _ in range(2):
            await store.replace(key, old.digest, new)
            assert await store.look(key) == ObjectInfo(new.size, new.digest)
        assert store.read(key, 0, 100) == new.read_at(0, 100)
        await _refuse_to_replace(store, key, old.digest, body_of(b"too late"))
        assert await store.look(key) == ObjectInfo(new.size, new.digest)
    await _refuse_to_replace(store, f"{prefix}/nothing", body_of(b"").digest, body_of(b"new"))
    assert await store.look(f"{prefix}/nothing") is None


async def check_what_is_told_of_holes_is_kept_with_an_object(store: RewritingStore, prefix: str) -> None:
    """W5, W2: with the bytes that it is about, small or in parts, and gone with them."""
    for name, size in (("few", 1_000), ("many", 11_000_003)):
        key, old, new = f"{prefix}/{name}", body_of(sample(size)), body_of(sample(size, 2))
        await store.create(key, old)
        await store.replace(key, old.digest, ObjectBody(new.size, new.digest, new.read_at, 777))
        assert await store.look(key) == ObjectInfo(new.size, new.digest, 777)
        await store.replace(key, new.digest, old)
        assert await store.look(key) == ObjectInfo(old.size, old.digest)


async def _refuse_to_replace(store: RewritingStore, key: str, was: str, body: ObjectBody) -> None:
    try:
        await store.replace(key, was, body)
    except ObjectChangedError:
        return
    raise AssertionError("something else was replaced")


CHECKS: tuple[Check, ...] = (
    check_what_is_created_is_there_whole,
    check_nothing_is_overwritten,
    check_what_is_not_there_is_not_there,
    check_keys_are_listed_in_order,
    check_an_empty_object_is_an_object,
    check_a_large_object_arrives_whole,
    check_nothing_unfinished_is_nothing_to_abort,
    check_an_object_is_replaced_by_whoever_knows_it,
    check_what_is_told_of_holes_is_kept_with_an_object,
)
