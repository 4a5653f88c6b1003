"""Which blocks of a page are what it says, and which are the furniture around it (X5).

As boilerplate removers do: a block of some length with few links in it is content, short ones and lists of links are
not, nor is what stands in navigation, footers and asides. Each block is judged by itself and not by its neighbours, so
that an advertisement put between two paragraphs changes nothing for them. A page of short texts only is taken whole,
but for its links; a page of links only, with them.
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
    shown = [block for block in blocks if not block.framing]
    chosen = [
        block
        for block in shown
        if block.last - block.first >= LEAST_BLOCK and block.linked * LINK_SHARE <= block.last - block.first
    ]
    if _size(chosen) >= LEAST_TEXT:
        return chosen
    chosen = [block for block in shown if block.linked * LOOSE_LINK_SHARE <= block.last - block.first]
    return chosen if _size(chosen) >= LEAST_TEXT else blocks
