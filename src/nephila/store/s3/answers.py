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
STALE_CODES = _KEY_CODES | {"ExpiredToken"}
"""Whoever holds credentials may have been given others meanwhile."""
_SKEW_CODES = frozenset({"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"})
_EXISTS = 412
LONGEST_WORD = 500
"""Of a store's own words in a sentence of ours."""


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
    code, status = _shown(answer.field("Code")), answer.status
    if status == _EXISTS or code == "PreconditionFailed":
        return ObjectExistsError("there is an object under this key already")
    if status in _BUSY or code in _BUSY_CODES or (status == 409 and code != "BucketAlreadyExists"):
        return StoreAwayError(f"the archive's store is busy ({status} {code})".replace(" )", ")"))
    return StoreRefusedError(*_sentence(answer, code, bucket, doing))


def _sentence(answer: Answer, code: str, bucket: str, doing: str) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    status, told = answer.status, f"{answer.status} {code}".strip()
    region = _shown(answer.headers.get("x-amz-bucket-region") or answer.field("Region"))
    keys = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE"
    match code:
        case "ExpiredToken":
            said = "the credentials for the archive's store have expired", "get new ones"
        case "InvalidAccessKeyId":
            said = f"the archive's store does not know the access key ({code})", keys
        case _ if code in _KEY_CODES:
            said = f"the archive's store does not accept the secret key ({code})", keys
        case _ if code in _SKEW_CODES:
            theirs = _shown(answer.headers.get("date") or answer.field("ServerTime"))
            clock = f"this machine's clock differs too much from that of the archive's store, where it is {theirs}"
            said = clock, "set the clock (NTP)"
        case _ if code == "NoSuchBucket" or (status == 404 and not code):
            said = f"there is no bucket {bucket!r} in the archive's store", "make it, or name another"
        case _ if region and (status in {301, 307} or code == "AuthorizationHeaderMalformed"):
            said = f"the bucket {bucket!r} is in the region {region}", f"set s3.region={region}"
        case _ if status in {401, 403}:
            said = (
                f"the archive's store does not allow that the bucket {bucket!r} is {doing} ({told})",
                "let these credentials read, write and list it (s3:GetObject, s3:PutObject, s3:ListBucket)",
            )
        case _:
            detail = _shown(answer.field("Message"))
            refused = f"the archive's store refuses ({told}{': ' + detail if detail else ''})"
            said = refused, "check archive.url and s3.endpoint"
    return said


def _shown(text: str) -> str:
    """What a store says, fit for a sentence on a terminal."""
    text = "".join(character if character.isprintable() else " " for character in text[:LONGEST_WORD])
    return " ".join(text.split())
