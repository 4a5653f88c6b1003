"""placeholder"""
from __future__ import annotations
from collections.abc import Sequence
from .prose import Block

def main_blocks(blocks: Sequence[Block]) -> list[Block]:
    return [b for b in blocks if not b.framing and b.last-b.first >= 10 and b.linked*3 <= b.last-b.first]
