"""Signing requests as S3 wants it (AWS Signature Version 4), pure: a request and credentials to headers.

Every header that is sent is signed, and so is the SHA-256 of the body: the store refuses a body that arrived with
other bytes than were hashed here, over plain HTTP too. No separate checksum is needed for what the signature covers.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import quote

from nephila.model.noun import noun

from .credentials import Credentials

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_DIGEST = sha256(b"").hexdigest()
_UNRESERVED = "-_.~"


@noun
class S3Request:
    """One request, before it is signed."""

    method: str
    host: str
    """As in the Host header, with the port where it is not the scheme's."""
    path: str
    """As it is, not encoded."""
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    digest: str = EMPTY_DIGEST
    """SHA-256 of the body in hexadecimal."""

    @property
    def target(self) -> str:
        """Path and query as they are sent, which is how they are signed."""
        spelled = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in sorted(self.query))
        path = quote(self.path, safe="/" + _UNRESERVED)
        return f"{path}?{spelled}" if spelled else path


def signed_headers(request: S3Request, credentials: Credentials, region: str, now_ms: int) -> dict[str, str]:
    """All headers of the request, the signature included."""
    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    stamp, day = moment.strftime("%Y%m%dT%H%M%SZ"), moment.strftime("%Y%m%d")
    headers = {**request.headers, "host": request.host, "x-amz-content-sha256": request.digest, "x-amz-date": stamp}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(headers))
    path, _, query = request.target.partition("?")
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers))
    canonical = f"{request.method}\n{path}\n{query}\n{lines}\n{names}\n{request.digest}"
    scope = f"{day}/{region}/s3/aws4_request"
    to_sign = "\n".join((ALGORITHM, stamp, scope, sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    headers["authorization"] = (
        f"{ALGORITHM} Credential={credentials.key}/{scope},SignedHeaders={names},Signature={signature}"
    )
    return headers


def _encoded(text: str) -> str:
    return quote(text, safe=_UNRESERVED)
