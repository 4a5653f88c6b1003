"""Which links of a page go on to the frontier when there are more than it takes (X1).

All links of a page go to the link graph; the frontier takes at most 500 of them. Most pages have fewer, and for them
this only leaves out what no reader could follow: style sheets, icons, connection hints.

What must stay true: nothing is reordered unless something must be left out; of two links of equal worth the one that
stands first in the page goes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from nephila.model.page import Link

MAX_LINKS = 500
"""Links of a page for the frontier (SPEC X1): 2 % of real pages have more."""

_RESOURCE_RELATIONS = frozenset(
    {
        "stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "apple-touch-startup-image",
        "mask-icon", "fluid-icon", "image_src", "preconnect", "dns-prefetch", "preload", "modulepreload", "manifest",
        "pingback", "edituri", "wlwmanifest", "search", "webmention", "profile", "micropub",
    }
)  # fmt: skip
"""Relations of link elements to what is not a document (HTML standard 4.6.7 and common practice)."""

_WORTH = {"a": 0, "area": 2, "iframe": 3, "frame": 3, "meta": 3, "link": 4, "form": 5, "img": 6, "srcset": 7}
"""Lower goes first. An anchor without text counts 1: it is most often an image or a button. What a plugin found
counts 4."""


def _worth(link: Link) -> int:
    return 1 if link.tag == "a" and not link.text else _WORTH.get(link.tag, 4)


def links_that_matter(links: Sequence[Link], limit: int = MAX_LINKS) -> list[Link]:
    """At most `limit` of the links, in document order, or those of most worth first when there are too many."""
    documents = [link for link in links if link.tag != "link" or _RESOURCE_RELATIONS.isdisjoint(link.rel.split())]
    if len(documents) <= limit:
        return documents
    return sorted(documents, key=_worth)[:limit]
