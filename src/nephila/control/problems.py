"""What is wrong with a request (RFC 9457): a type for programs, sentences for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from starlette.responses import Response

from .given import Problem

MEDIA_TYPE = "application/problem+json"

TITLES: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        400: ("malformed", "The request cannot be read"),
        401: ("unauthenticated", "A token is missing or wrong"),
        403: ("forbidden", "This may not be done"),
        404: ("not-found", "There is no such thing"),
        405: ("method", "This method is not offered here"),
        409: ("conflict", "It is not, or no longer, yours"),
        411: ("length", "The length of the body is missing"),
        413: ("too-large", "The body is too large"),
        415: ("media-type", "The body is no JSON"),
        421: ("misdirected", "This name is not ours"),
        422: ("invalid", "The request makes no sense"),
        429: ("too-many", "Too many requests"),
        500: ("bug", "Something of ours broke"),
        503: ("unavailable", "This cannot be done now"),
    }
)


class ProblemError(Exception):
    """A request that is answered with a problem."""

    def __init__(self, status: int, detail: str, hint: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})


def problem(error: ProblemError) -> Response:
    """The answer."""
    name, title = TITLES[error.status]
    body = Problem(
        type=f"urn:nephila:problem:{name}", title=title, status=error.status, detail=error.detail, hint=error.hint
    )
    return Response(msgspec.json.encode(body), error.status, error.headers, MEDIA_TYPE)
