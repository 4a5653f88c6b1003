"""Texts that look like texts: words, sentences, titles, and a phrase for each charset that pages are written in.

A bank of sentences is made once for a web; a page takes a few strided slices of it. That costs microseconds, and two
pages rarely share more than one slice, so that near-duplicate detection has no reason to take them for one.
"""

from __future__ import annotations

from .draw import Salt, draw

WORDS = tuple(
    """
    amber anchor apple april arrow atlas autumn bakery balcony barley beacon bicycle birch blanket bottle bramble
    breeze bridge bright button cabin candle canvas canyon carpet castle cedar cellar cherry chimney circle clay cliff
    clover coast cobalt copper coral corner cotton cradle cricket crystal curtain dancer dawn delta desert diamond
    distant dolphin drift eager early earth easel echo elder ember engine evening falcon feather fern ferry field fig
    finch flame flint forest fountain fox frost gallery garden garnet gentle ginger glacier glass golden granite grove
    gull hammer harbour harvest hazel heather hill hollow honey horizon island ivory jacket jasmine journey juniper
    kettle kite ladder lagoon lantern larch laurel lavender lemon lichen linen little lofty lumber maple marble market
    meadow mellow mineral mirror mist morning mosaic mountain mulberry narrow nettle night north nutmeg oak oasis ocean
    olive opal orchard otter paper parcel pasture pebble pepper pewter pigeon pillow pine pocket poplar prairie quarry
    quartz quiet quill rabbit rain raven reed ribbon ridge ripple river robin rope rowan rustic saddle saffron sail
    sandal scarlet shell shore silent silver slate sparrow spring spruce station stone storm summer sundial swallow
    tawny temple thistle thunder timber tower trail tulip tunnel twilight valley velvet vessel village violet walnut
    water weaver whistle willow window winter wooden yarrow yellow
    """.split()  # noqa: SIM905 - two hundred quoted words would be two hundred lines
)
"""Plain nouns and adjectives. None is one that crawlers have rules about, or that has a meaning in `atlas`."""

_JOINTS = ("and", "near", "under", "beyond", "with", "without", "beside", "after", "before", "above", "between")

SENTENCES = 4096
_STRIDES = (1, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
"""Odd, so that a strided walk meets every sentence of the bank before it repeats itself."""

PHRASES = {
    "utf-8": "Füße über den Fluß — naïve café, żółw, дом у реки, 静かな川",  # noqa: RUF001 - Cyrillic is meant
    "iso-8859-1": "Die Füße gehen über den Fluß, le café reste ouvert",
    "windows-1252": "“Quoted” – the café’s terrace costs 5 €",  # noqa: RUF001 - these quotes are not in Latin-1
    "windows-1251": "Дом стоит у реки, и лодка плывёт к берегу",  # noqa: RUF001 - Cyrillic is meant
    "shift_jis": "静かな川のそばに小さな家があります",
    "koi8-r": "Вечером над рекой поднимается туман",
}
"""One telling phrase for each charset: it comes out wrong when the page is read in another one."""


def slug(bits: int) -> str:
    """Two words for a path, e.g. ``quiet-river``."""
    count = len(WORDS)
    return f"{WORDS[bits % count]}-{WORDS[(bits >> 16) % count]}"


def title(bits: int) -> str:
    """A heading of three words."""
    count = len(WORDS)
    first, second, third = WORDS[bits % count], WORDS[(bits >> 16) % count], WORDS[(bits >> 32) % count]
    return f"{first.capitalize()} {second} {_JOINTS[(bits >> 48) % len(_JOINTS)]} {third}"


class SentenceBank:
    """The sentences of one web, made at the first use."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._sentences: list[str] = []

    def passages(self, bits: int, size_bytes: int) -> list[str]:
        """Some passages of a few sentences each, about `size_bytes` long together."""
        bank = self._sentences or self._fill()
        wanted = max(1, size_bytes // _MEAN_SENTENCE_BYTES)
        piece = max(_LEAST_PIECE, wanted // _PIECES)
        taken: list[str] = []
        while len(taken) < wanted:
            stride = _STRIDES[bits & 15]
            start = (bits >> 4) % SENTENCES
            taken += bank[start : start + stride * min(wanted - len(taken), piece) : stride]
            bits = draw(self._seed, Salt.TEXT, bits)
        return [" ".join(taken[at : at + 5]) for at in range(0, len(taken), 5)]

    def _fill(self) -> list[str]:
        sentences = [_sentence(self._seed, number) for number in range(SENTENCES)]
        # Twice: a strided walk may run over the end.
        self._sentences = sentences * 2
        return self._sentences


_PIECES, _LEAST_PIECE = 4, 3
"""A text is made of so many walks through the bank, each of at least three sentences. Of one alone there are 65,536:
among a few thousand pages some would be near-copies of each other by chance."""

_MEAN_SENTENCE_BYTES = 79
"""Measured over a bank: six words, joints between them, seven and a half letters each."""


def _sentence(seed: int, number: int) -> str:
    count, words = len(WORDS), []
    bits = draw(seed, Salt.WORDS, number)
    for position in range(5 + bits % 5):
        bits = draw(seed, Salt.WORDS, number, position + 1)
        words.append(WORDS[bits % count])
        if position % 2:
            words.append(_JOINTS[(bits >> 20) % len(_JOINTS)])
    return " ".join(words).capitalize() + "."
