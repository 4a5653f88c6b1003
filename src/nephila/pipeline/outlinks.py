"""The links of a page as its metadata record tells them: all of them, for the link graph and for recovery."""

from __future__ import annotations

from nephila.model.page import Link
from nephila.native import AVAILABLE, native


def plain_outlinks(links: tuple[Link, ...]) -> tuple[str, ...]:
    """``URL tag rel`` of each."""
    return tuple([f"{link.url} {link.tag} {link.rel}".rstrip() for link in links])


outlinks = native.outlinks if AVAILABLE else plain_outlinks
