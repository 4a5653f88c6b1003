"""placeholder"""
from __future__ import annotations
from array import array
from collections.abc import Sequence
from typing import NamedTuple
from .prose import Block
from .words import MASK

class Features(NamedTuple):
    simhash: int = 0
    sketch: bytes = b""
    words: int = 0

FACTORS = (0x9FB21C651E98DF25, 0xA24BAED4963EE407, 0x8EBC6AF09C88C6E3)
MIX = 0xD6E8FEB86659FD93

def shingles_of(words):
    a, b, c = FACTORS
    out = []
    for x, y, z in zip(words, words[1:], words[2:]):
        h = (x*a + y*b + z*c) & MASK
        h ^= h >> 32
        h = h*MIX & MASK
        h ^= h >> 29
        out.append(h)
    return out

_BIT = [bytes(byte >> bit & 1 for byte in range(256)) for bit in range(8)]

def simhash(hashes):
    if not hashes: return 0
    data = array("Q", hashes).tobytes()
    value = 0
    for byte in range(8):
        lane = data[byte::8]
        for bit in range(8):
            if 2*lane.translate(_BIT[bit]).count(1) > len(hashes):
                value |= 1 << (8*byte+bit)
    return value

def sketch(hashes):
    least = {h >> 58: h for h in sorted(set(hashes), reverse=True)}
    return bytes([(least[b] % 255 + 1) if b in least else 0 for b in range(64)])

def features_of(words: array[int], blocks: Sequence[Block]) -> Features:
    chosen = array("Q")
    for b in blocks: chosen.extend(words[b.first:b.last])
    hashes = shingles_of(chosen)
    return Features(simhash(hashes), sketch(hashes), len(chosen))
