"""The dashboard's files: shipped with the program, read once, the same for everybody (C3).

They hold no figure and no secret, so that they need no token: the page asks the API, and that wants one. A name that is
not listed here is nothing, so that no path of a request ever reaches the file system.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

_TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
"""Nothing but what we ship runs, and it talks to nobody but us."""
FIRST = "index.html"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    media_type: str
    tag: str

    def answer(self, request: Request) -> Response:
        """The file, or that it has not changed."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.media_type)


def read_assets() -> dict[str, Asset]:
    """All files by their path: the page itself stands at the root too."""
    found: dict[str, Asset] = {}
    for entry in sorted(resources.files(__package__).joinpath("dashboard").iterdir(), key=lambda entry: entry.name):
        media_type = _TYPES.get(entry.name.rpartition(".")[2])
        if media_type is not None:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[f"/{entry.name}"] = Asset(content, media_type, tag)
    found["/"] = found[f"/{FIRST}"]
    return found
