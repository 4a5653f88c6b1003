"""Which blocks of a page are what it says, and which are the furniture around it (X5).

As boilerplate removers do: a block of some length with few links in it is content, short ones and lists of links are
not, nor is what stands in navigation, footers and asides. Each block is judged by itself and not by its neighbours, so
that an advertisement put between two paragraphs changes nothing for them.

Not every page has long blocks for its content. A table of a product's properties, a list of threads or of offers is
made of short ones, and the only long blocks beside it are the notices that every page of its site has: two such pages
would be taken for the same by what they do not say themselves. So a page whose short texts outweigh its long ones is
taken with them, but without its lists of links; and a page that has little else than such lists, with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LEAST_BLOCK = 10
"""Words of a block that counts; with 6 to 15 the recall of near duplicates in the test material differs by 2 %."""
LINK_SHARE = 3
"""At most one in so many words may be a link's."""
LOOSE_LINK_SHARE = 2
LEAST_TEXT = 30
"""Words of a main text; with fewer the page is one of short texts."""
LITTLE_TEXT = 100
"""Words outside lists of links that are few beside long lists; our own choice: the notices at the foot of a page."""
LINKS_OVER_TEXT = 2
"""So many times more words in lists of links than outside them make a page that says little one of links. Eleven of the
286 real pages in the test material are: home pages, lists, forms between menus."""


class Block(NamedTuple):
    """A run of text between two block-level tags."""

    first: int
    """Where its words begin among the words of the page."""
    last: int
    """Where they end, exclusive."""
    linked: int
    """How many of them are the text of links."""
    framing: bool
    """Whether it stands in navigation, a footer or the like."""


def _size(blocks: Sequence[Block]) -> int:
    return sum(block.last - block.first for block in blocks)


def main_blocks(blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks that hold what the page says, in its order."""
    return _chosen(blocks, LITTLE_TEXT)


def said_blocks(blocks: Sequence[Block]) -> Sequence[Block]:
    """The same for whoever wants to know whether a page says something new (R2).

    Where lists of links outweigh all else, they count, however much that is: a front page says what its headlines say.
    """
    return _chosen(blocks, None)


def _chosen(blocks: Sequence[Block], little: int | None) -> Sequence[Block]:
    shown = [block for block in blocks if not block.framing]
    said = [block for block in shown if block.linked * LOOSE_LINK_SHARE <= block.last - block.first]
    long = [
        block
        for block in said
        if block.last - block.first >= LEAST_BLOCK and block.linked * LINK_SHARE <= block.last - block.first
    ]
    shown_words, said_words, long_words = _size(shown), _size(said), _size(long)
    if (little is None or said_words < little) and shown_words - said_words > LINKS_OVER_TEXT * said_words:
        return shown if shown_words >= LEAST_TEXT else blocks
    if long_words >= LEAST_TEXT and said_words - long_words <= long_words:
        return long
    return said if said_words >= LEAST_TEXT else blocks
