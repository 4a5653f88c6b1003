"""The links of a page as its metadata record tells them: all of them, for the link graph and for recovery."""

from __future__ import annotations

from collections.abc import Sequence

from nephila.model.page import Link
from nephila.native import AVAILABLE, native


def plain_outlinks(links: Sequence[Link]) -> Sequence[str]:
    """``URL tag rel`` of each."""
    return tuple([f"{link.url} {link.tag} {link.rel}".rstrip() for link in links])


outlinks = native.outlinks if AVAILABLE else plain_outlinks
