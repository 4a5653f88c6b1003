"""Nephila: fast over the whole web, slow towards each single site.

`crawl` is the library's front door; see `nephila.api`. It is imported when it is first asked for, so that
`import nephila` (and `nephila --help`) stay quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import FetchedPage, PageStream, crawl

VERSION = "0.1.0"

__all__ = ["VERSION", "FetchedPage", "PageStream", "crawl"]


def __getattr__(name: str) -> object:
    if name in {"FetchedPage", "PageStream", "crawl"}:
        from . import api  # noqa: PLC0415 - the crawler is imported when it is wanted

        return getattr(api, name)
    raise AttributeError(f"module 'nephila' has no attribute {name!r}")
