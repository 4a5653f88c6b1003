"""`ObjectStore` on S3: conditional writes, checked bytes, ranged reads; threads of its own for what blocks.

An object is written with `If-None-Match: *`, so that the store refuses to overwrite. Its SHA-256 is part of the
signature, which the store checks against what arrived, and is kept with the object as metadata: an upload whose answer
was lost is recognised by it. Objects over `part_bytes` go in parts, several at once, the last step under the same
condition. A takedown alone replaces objects, with `If-Match`: one that somebody else has changed meanwhile is left
alone.

Threads do single requests, and none waits for another: an object in parts is put together on the loop.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from types import MappingProxyType
from typing import TypeVar

from nephila.engines.threads import started_pool
from nephila.interfaces.objects import ObjectBody, ObjectInfo
from nephila.model.errors import ObjectChangedError, ObjectExistsError, ObjectStoreError, StoreRefusedError
from nephila.model.settings import S3Settings

from .answers import STALE_CODES, Answer, refusal_of
from .credentials import CredentialChain
from .signing import EMPTY_DIGEST, S3Request, signed_headers
from .wire import Wire

T = TypeVar("T")

DIGEST_FIELD = "x-amz-meta-sha256"
HOLES_FIELD = "x-amz-meta-holes"
AMAZON = "https://s3.{region}.amazonaws.com"
DEFAULT_REGION = "us-east-1"
NEW = MappingProxyType({"if-none-match": "*"})
"""The condition under which an object is made and none is overwritten."""
MAX_PARTS = 10_000
"""Of one object, by the documentation of S3."""


class S3ObjectStore:
    """Implements `interfaces.objects.ObjectStore` for one bucket."""

    def __init__(
        self, bucket: str, settings: S3Settings, credentials: CredentialChain, now_ms: Callable[[], int]
    ) -> None:
        self._bucket = bucket
        self._settings = settings
        self._region = settings.region or DEFAULT_REGION
        self._credentials = credentials
        self._now_ms = now_ms
        self._wire = Wire(settings, settings.endpoint or AMAZON.format(region=self._region))
        below = settings.path_style == "no" or (settings.path_style == "auto" and not settings.endpoint)
        self._host = self._wire.host(bucket if below and "." not in bucket else "")
        self._root = "/" if below and "." not in bucket else f"/{bucket}/"
        self._threads = started_pool(settings.uploads, "s3")

    async def create(self, key: str, body: ObjectBody) -> None:
        """As the interface."""
        await self._create(key, body)

    async def replace(self, key: str, was: str, body: ObjectBody) -> None:
        """As `interfaces.objects.RewritingStore`: under the condition that it is still the one that was looked at."""
        if (etag := await self._in_thread(lambda: self._tag_of(key, was, body))) is None:
            return
        try:
            await self._create(key, body, {"if-match": etag})
        except ObjectExistsError as error:
            raise ObjectChangedError(f"s3://{self._bucket}/{key} was changed while it was to be replaced") from error

    async def look(self, key: str) -> ObjectInfo | None:
        """As the interface."""
        return await self._in_thread(lambda: self._look(key))

    def read(self, key: str, start: int, size: int) -> bytes:
        """As the interface."""
        if size <= 0:
            return b""
        answer = self._ask("GET", key, headers={"range": f"bytes={start}-{start + size - 1}"})
        if answer.status == 416:
            return b""
        if answer.status == 404 and answer.field("Code") != "NoSuchBucket":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
        if answer.status not in {200, 206}:
            raise refusal_of(answer, self._bucket, "read")
        return answer.body if answer.status == 206 else answer.body[start : start + size]

    async def keys(self, prefix: str) -> list[str]:
        """As the interface."""
        return await self._in_thread(lambda: self._keys(prefix))

    async def abort_unfinished(self, prefix: str) -> int:
        """As the interface."""
        return await self._in_thread(lambda: self._abort_unfinished(prefix))

    async def remove(self, key: str) -> bool:
        """Remove an object; False where that is not allowed. Crawls never do: only a check takes back what it made."""
        return await self._in_thread(lambda: self._ask("DELETE", key).status in {200, 204})

    async def close(self) -> None:
        """As the interface."""
        self._wire.abort()
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    # On the loop

    async def _create(self, key: str, body: ObjectBody, condition: Mapping[str, str] = NEW) -> None:
        if body.size > self._settings.part_bytes:
            await self._create_in_parts(key, body, condition)
        else:
            await self._in_thread(lambda: self._put(key, body, condition))

    async def _create_in_parts(self, key: str, body: ObjectBody, condition: Mapping[str, str]) -> None:
        # The condition is asked for at the end only: much would be sent for nothing.
        if condition is NEW and await self.look(key) is not None:
            raise ObjectExistsError("there is an object under this key already")
        upload = await self._in_thread(lambda: self._begin_parts(key, body))
        try:
            tags = await self._send_parts(key, upload, body)
            await self._in_thread(lambda: self._complete(key, upload, tags, condition))
        except Exception:  # what is broken off from outside is given up by the next start
            with suppress(ObjectStoreError):  # as is this
                await self._in_thread(lambda: self._ask("DELETE", key, [("uploadId", upload)]))
            raise

    async def _send_parts(self, key: str, upload: str, body: ObjectBody) -> list[str]:
        """As many at once as there are threads. After one that fails no other is begun, and those under way end."""
        size = max(self._settings.part_bytes, -(-body.size // MAX_PARTS))
        left = deque(range(0, body.size, size))
        tags = [""] * len(left)

        async def send() -> None:
            try:
                while left:
                    start = left.popleft()
                    number = start // size + 1
                    length = min(size, body.size - start)
                    tags[number - 1] = await self._in_thread(
                        partial(self._put_part, key, upload, number, body, start, length)
                    )
            except BaseException:
                left.clear()
                raise

        ended = await asyncio.gather(*(send() for _ in range(self._settings.uploads)), return_exceptions=True)
        for failure in filter(None, ended):
            raise failure
        return tags

    # In a thread

    def _put(self, key: str, body: ObjectBody, condition: Mapping[str, str]) -> None:
        headers = {**condition, **_kept_with(body)}
        answer = self._ask("PUT", key, headers=headers | _checksum(body), body=body)
        if answer.status != 200:
            raise refusal_of(answer, self._bucket, "written")

    def _tag_of(self, key: str, was: str, body: ObjectBody) -> str | None:
        """What the store calls the object that is to be replaced; None where that was done."""
        answer = self._ask("HEAD", key)
        if answer.status not in {200, 404}:
            raise refusal_of(answer, self._bucket, "read")
        digest = answer.headers.get(DIGEST_FIELD, "") if answer.status == 200 else ""
        if digest == body.digest:
            return None
        if digest != was:
            raise ObjectChangedError(f"s3://{self._bucket}/{key} is not the object any more that was to be replaced")
        return answer.headers.get("etag", "*")

    def _begin_parts(self, key: str, body: ObjectBody) -> str:
        begun = self._ask("POST", key, [("uploads", "")], _kept_with(body))
        upload = begun.field("UploadId")
        if begun.status != 200 or not upload:
            raise refusal_of(begun, self._bucket, "written")
        return upload

    def _put_part(self, key: str, upload: str, number: int, body: ObjectBody, start: int, size: int) -> str:
        part = _part(body, start, size)
        query = [("partNumber", str(number)), ("uploadId", upload)]
        answer = self._ask("PUT", key, query, _checksum(part), part)
        if answer.status != 200 or not (tag := answer.headers.get("etag", "")):
            raise refusal_of(answer, self._bucket, "written")
        return tag

    def _complete(self, key: str, upload: str, tags: Sequence[str], condition: Mapping[str, str]) -> None:
        parts = (
            f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in enumerate(tags, 1)
        )
        document = f"<CompleteMultipartUpload>{''.join(parts)}</CompleteMultipartUpload>".encode()
        answer = self._ask("POST", key, [("uploadId", upload)], dict(condition), _whole(document))
        if answer.status != 200 or answer.field("Code"):  # an error may come after 200, when it took long
            raise refusal_of(answer, self._bucket, "written")

    def _look(self, key: str) -> ObjectInfo | None:
        answer = self._ask("HEAD", key)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise refusal_of(answer, self._bucket, "read")
        size, holes = answer.headers.get("content-length", "-1"), answer.headers.get(HOLES_FIELD, "")
        return ObjectInfo(int(size), answer.headers.get(DIGEST_FIELD, ""), int(holes) if holes.isdecimal() else 0)

    def _keys(self, prefix: str) -> list[str]:
        found: list[str] = []
        more: list[tuple[str, str]] = []
        while True:
            answer = self._ask("GET", "", [("list-type", "2"), ("prefix", prefix), *more])
            if answer.status != 200:
                raise refusal_of(answer, self._bucket, "listed")
            found += [one.field("Key") for one in answer.parts("Contents")]
            token = answer.field("NextContinuationToken")
            if answer.field("IsTruncated") != "true" or not token:
                return sorted(found)
            more = [("continuation-token", token)]

    def _abort_unfinished(self, prefix: str) -> int:
        """One listing a time: what is given up leaves it."""
        count = 0
        while True:
            answer = self._ask("GET", "", [("uploads", ""), ("prefix", prefix)])
            if answer.status != 200:
                raise refusal_of(answer, self._bucket, "listed")
            uploads = answer.parts("Upload")
            for upload in uploads:
                gone = self._ask("DELETE", upload.field("Key"), [("uploadId", upload.field("UploadId"))])
                if gone.status not in {204, 200, 404}:
                    raise refusal_of(gone, self._bucket, "written")
            count += len(uploads)
            if answer.field("IsTruncated") != "true" or not uploads:
                return count

    def _ask(
        self,
        method: str,
        key: str,
        query: Sequence[tuple[str, str]] = (),
        headers: dict[str, str] | None = None,
        body: ObjectBody | None = None,
    ) -> Answer:
        digest = body.digest if body is not None else EMPTY_DIGEST
        request = S3Request(method, self._host, self._root + key, query, headers or {}, digest)
        signed = signed_headers(request, self._credentials.current(), self._region, self._now_ms())
        answer = self._wire.ask(method, request.target, signed, body)
        # Whoever asks for a head alone is not told why.
        if answer.status in {400, 401, 403} and (method == "HEAD" or answer.field("Code") in STALE_CODES):
            self._credentials.forget()
        return answer


def _kept_with(body: ObjectBody) -> dict[str, str]:
    """What the store keeps beside the bytes."""
    told = {DIGEST_FIELD: body.digest, "content-type": "application/octet-stream"}
    return {**told, HOLES_FIELD: str(body.holes)} if body.holes else told


def _checksum(body: ObjectBody) -> dict[str, str]:
    """The digest as stores want it that do not look at the signed one, and as Amazon keeps it with the object."""
    return {"x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(body.digest)).decode()}


def _part(body: ObjectBody, start: int, size: int) -> ObjectBody:
    """A stretch of a body as a body of its own."""
    digest = sha256()
    done = 0
    while done < size:
        piece = body.read_at(start + done, min(1 << 20, size - done))
        if not piece:
            raise StoreRefusedError("a file of the spool is shorter than it was", hint="check the disk")
        digest.update(piece)
        done += len(piece)
    return ObjectBody(
        size, digest.hexdigest(), lambda offset, count: body.read_at(start + offset, min(count, size - offset))
    )


def _whole(data: bytes) -> ObjectBody:
    return ObjectBody(len(data), sha256(data).hexdigest(), lambda offset, size: data[offset : offset + size])
