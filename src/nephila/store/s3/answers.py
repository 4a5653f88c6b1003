"""What an S3 store says when it does not do what it was asked for, in one sentence, with what to do about it."""

from __future__ import annotations

import re
from html import unescape

from nephila.model.errors import ObjectExistsError, ObjectStoreError, StoreAwayError, StoreRefusedError
from nephila.model.noun import noun

_BUSY = frozenset({429, 500, 502, 503, 504, 507, 509})
_BUSY_CODES = frozenset(
    {"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable", "ThrottlingException", "TooManyRequests"}
    | {"BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "OperationAborted", "ConditionalRequestConflict"}
)
"""The same request may work later: the store is busy, or the bytes were hurt on their way."""

_KEY_CODES = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AuthFailure", "InvalidSignature"}
)
_SKEW_CODES = frozenset({"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"})
_EXISTS = 412


@noun
class Answer:
    """A whole answer."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    def field(self, name: str) -> str:
        """The text of the first XML element of this name; empty where there is none."""
        found = re.search(rf"<{name}>(.*?)</{name}>".encode(), self.body, re.DOTALL)
        return unescape(found[1].decode("utf-8", "replace")) if found else ""

    def parts(self, name: str) -> list[Answer]:
        """Every XML element of this name, to be looked into likewise."""
        found = re.findall(rf"<{name}>(.*?)</{name}>".encode(), self.body, re.DOTALL)
        return [Answer(self.status, {}, one) for one in found]


def refusal_of(answer: Answer, bucket: str, doing: str) -> ObjectStoreError:
    """The error for an answer that is none of those that were hoped for. `doing` is a verb: written, read, listed."""
    code, status = answer.field("Code"), answer.status
    told = f"{status} {code}".strip()
    if status == _EXISTS or code == "PreconditionFailed":
        return ObjectExistsError("there is an object under this key already")
    if status in _BUSY or code in _BUSY_CODES or (status == 409 and code != "BucketAlreadyExists"):
        return StoreAwayError(f"the archive's store is busy ({told})")
    if code == "ExpiredToken":
        return StoreRefusedError("the credentials for the archive's store have expired", hint="get new ones")
    if code in _KEY_CODES:
        wrong = "does not know the access key" if code == "InvalidAccessKeyId" else "does not accept the secret key"
        return StoreRefusedError(
            f"the archive's store {wrong} ({code})", hint="check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE"
        )
    if code in _SKEW_CODES:
        theirs = answer.headers.get("date") or answer.field("ServerTime")
        return StoreRefusedError(
            f"this machine's clock differs too much from that of the archive's store, where it is {theirs}",
            hint="set the clock (NTP)",
        )
    if code == "NoSuchBucket" or (status == 404 and not code):
        return StoreRefusedError(
            f"there is no bucket {bucket!r} in the archive's store", hint="make it, or name another"
        )
    region = answer.headers.get("x-amz-bucket-region") or answer.field("Region")
    if region and (status in {301, 307} or code == "AuthorizationHeaderMalformed"):
        return StoreRefusedError(f"the bucket {bucket!r} is in the region {region}", hint=f"set s3.region={region}")
    if status in {401, 403}:
        return StoreRefusedError(
            f"the archive's store does not allow that the bucket {bucket!r} is {doing} ({told})",
            hint="give these credentials the permission to read, write and list it (GetObject, PutObject, ListBucket)",
        )
    detail = answer.field("Message")
    return StoreRefusedError(
        f"the archive's store refuses ({told}{': ' + detail if detail else ''})",
        hint="check archive.url and s3.endpoint",
    )
