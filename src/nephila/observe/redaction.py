"""Lines of the event log of which nothing may be told any more (K2): masked, in as many bytes as they had.

A line stays, because it is evidence that a request was made, to which host, when, and how long it took. What goes is
the path of the URL with all that follows it, the fingerprint that would name it, and every mention in `via` and
`detail`. Offsets in the file stay as they were: what is shorter is filled with spaces at its end, which JSON allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from nephila.urls import TAKEN_DOWN

_URL = re.compile(r"""(?i)\bhttps?://[^\s"'<>]+""")
_ORIGIN = re.compile(r"(?i)^https?://[^/?#]*")

Names = Callable[[str], bool]


def masked_url(url: str) -> str:
    """A URL of which only the origin is told; never longer than it was."""
    found = _ORIGIN.match(url)
    if found is None:
        return ""
    return found[0] + TAKEN_DOWN[: len(url) - found.end()]


def masked_line(line: bytes, names: Names, is_page: Callable[[str, bytes], bool]) -> bytes:
    """The line without what `names` and `is_page` (host and fingerprint) say must go; the same where nothing must.

    A line that is none of ours is left alone: it is torn, and tells nothing that a reader would find.
    """
    try:
        fields: Any = msgspec.json.decode(line)
        if not isinstance(fields, dict):
            return line
        changed = _masked(fields, names, is_page)
    except (msgspec.MsgspecError, ValueError):
        return line
    if not changed:
        return line
    return msgspec.json.encode(fields).ljust(len(line) - 1) + b"\n"


def _masked(fields: dict[str, Any], names: Names, is_page: Callable[[str, bytes], bool]) -> bool:
    changed = False
    fingerprint = bytes.fromhex(str(fields.get("fingerprint", "")))
    url = str(fields.get("url", ""))
    if url and (is_page(str(fields.get("host", "")), fingerprint) or names(url)):
        fields["url"], changed = masked_url(url), True
        if fingerprint:
            fields["fingerprint"] = "0" * (2 * len(fingerprint))
    if names(str(fields.get("via", ""))):
        fields["via"], changed = masked_url(fields["via"]), True
    detail = str(fields.get("detail", ""))
    if "://" in detail:
        told = _URL.sub(lambda found: masked_url(found[0]) if names(found[0]) else found[0], detail)
        changed, fields["detail"] = changed or told != detail, told
    return changed
