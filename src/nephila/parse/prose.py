"""The visible text of a page as words in blocks, while its tags go by: what signature and main text are made of.

A block is the text between two block-level tags. Of each is known where its words are, how many of them are links, and
what it stands in: that is what main text is told from boilerplate by (`main.py`). Only words are kept, as numbers, and
the pieces of text themselves where somebody wants to read them. Text is held until the next tag: where that is `<wbr>`,
which only says that a line may break, a word goes on behind it.

The signature is made on the way: two hashes over the words outside links, one of all and one without words that hold a
digit or name a month or a day. Pages with the same text have the same first one, and the pages of a calendar the same
second one, which is what the trap rules ask for (T2). The title counts: it is all that tells the pages of an
application apart that is drawn by scripts.

A third hash stands for what the page says, and is the same for a page that has not changed but for the time, a counter
or what stands beside its text (R2). It is over the words of the main text, those of links too, without numbers and
without what is counted by them: "3 minutes ago" and "2 hours ago" are both "ago".

What must stay true: equal words give equal signatures, whatever white space, case, punctuation and tags are between
them; the words of a page are bounded.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import NamedTuple

from nephila.model.likeness import Likeness
from nephila.model.noun import quick

from .features import LEAST_WORDS, likeness_of
from .language import LOOK_WORDS, language_of_words
from .main import Block, main_blocks, said_blocks
from .tags import BREAK, BREAKOUT, FRAME
from .words import FACTOR, MASK, SEED, word_hash, words_of

MAX_WORDS = 50_000
"""Words of a page that are looked at; our own choice: longer than any real page but whole books."""

_MONTHS = "january february march april may june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_SHORT = "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun am pm"
CALENDAR_WORDS = frozenset(f"{_MONTHS} {_DAYS} {_SHORT}".split())

_CALENDAR = frozenset(word_hash(word.encode()) for word in CALENDAR_WORDS)
_HIDDEN = frozenset({"noscript", "svg", "option"})
_LISTS = frozenset({"select", "optgroup", "datalist"})


@quick
class Signature(NamedTuple):
    """Eight bytes each; empty where there is no text at all."""

    text: bytes = b""
    shape: bytes = b""
    said: bytes = b""
    """Of the main text; empty where there is too little of it."""


class _Word(NamedTuple):
    number: int
    numeric: bool
    """Whether it holds a digit."""
    steady: bool
    """Whether it holds none, and is not the name of a month or a day either."""


@lru_cache(65_536)
def _known(word: str) -> _Word:
    numeric = not word.isalpha() and any(character.isdecimal() for character in word)
    return _Word(word_hash(word.encode()), numeric, not numeric and word not in CALENDAR_WORDS)


def _step(number: int, word: int) -> int:
    number = ((number ^ word) * FACTOR) & MASK
    return number ^ number >> 32


class Prose:
    """Words and blocks of a page."""

    def __init__(self, *, keep_text: bool = False) -> None:
        self.words = array("Q")
        """All that are shown, the title's apart."""
        self.numeric = bytearray()
        """For each of them whether it holds a digit."""
        self.blocks: list[Block] = []
        self.texts: list[str] = []
        """The text of each block, where it was asked for."""
        self._pieces: list[str] | None = [] if keep_text else None
        self._first = 0
        self._linked = 0
        self._framing = 0
        self._in_link = False
        self._hidden = ""
        """The tag whose end tag ends what is not shown; empty where text is shown."""
        self._templates = 0
        self._held: list[str] = []
        """Pieces of one text that was not read yet."""
        self._goes_on = False
        """Whether the next text belongs to what is held."""
        self._seen = 0
        self._text = self._shape = SEED
        self._signed = False

    def start(self, name: str, flags: int, *, link: bool, self_closing: bool) -> None:
        """A start tag; `link` for an anchor that leads somewhere."""
        if name == "wbr":
            self._goes_on = True
            return
        self._read_held()
        if self._templates and name != "template":
            return  # nothing of it is shown, and what is open in it ends with it
        if flags & BREAK:
            self._break()
            self._framing += bool(flags & FRAME)
        if name == "a":
            self._in_link = link
        elif name == "template":
            self._templates += self._hidden != "svg"  # in a drawing it is an element like others
        elif self._hidden == "svg" and flags & BREAKOUT:
            self._hidden = ""  # HTML ends a picture that has no end
        elif self._hidden == "option" and name == "optgroup":
            self._hidden = ""
        elif self._hidden in {"", "option"} and name in _HIDDEN and not (self_closing and name == "svg"):
            self._hidden = name

    def end(self, name: str, flags: int) -> None:
        """An end tag."""
        if name == "wbr":
            return
        self._read_held()
        if self._templates and name != "template":
            return
        if flags & BREAK:
            self._break()
            if flags & FRAME and self._framing:
                self._framing -= 1
        if name == "a":
            self._in_link = False
        elif name == "template":
            self._templates -= bool(self._templates)
        elif name == self._hidden or (self._hidden == "option" and name in _LISTS):
            self._hidden = ""

    def title(self, text: str) -> None:
        """The text of a title: it counts for the signature and is in no block."""
        self._read_held()
        if not self._hidden and not self._templates:
            for word in words_of(text):
                if self._seen < MAX_WORDS:
                    self._seen += 1
                    self._sign(_known(word))

    def text(self, text: str) -> None:
        """Text that people see, references decoded."""
        if not self._goes_on:
            self._read_held()
        if text:
            self._goes_on = False
            self._held.append(text)

    def _read_held(self) -> None:
        self._goes_on = False
        if not self._held:
            return
        text = "".join(self._held)
        self._held.clear()
        if self._hidden or self._templates or self._seen >= MAX_WORDS or text.isspace():
            return
        for word in words_of(text):
            if self._seen >= MAX_WORDS:
                return
            self._seen += 1
            known = _known(word)
            self.words.append(known.number)
            self.numeric.append(known.numeric)
            if self._in_link:
                self._linked += 1
            else:
                self._sign(known)
        if self._pieces is not None:
            self._pieces.append(text)

    def close(self) -> None:
        """The page ends here."""
        self._read_held()
        self._break()

    @property
    def signature(self) -> Signature:
        """The signature of what was read so far."""
        said = self._said()
        if not self._signed:
            return Signature(said=said)
        return Signature(self._text.to_bytes(8, "little"), self._shape.to_bytes(8, "little"), said)

    def _said(self) -> bytes:
        steady = sum(self.numeric[block.first : block.last].count(0) for block in main_blocks(self.blocks))
        if steady < LEAST_WORDS:
            return b""
        number, counted = SEED, 0
        for block in said_blocks(self.blocks):
            for place in range(block.first, block.last):
                if not counted and not self.numeric[place] and self.words[place] not in _CALENDAR:
                    number = _step(number, self.words[place])
                counted = self.numeric[place]
        return number.to_bytes(8, "little")

    @property
    def language(self) -> str:
        """The language of what is shown, guessed."""
        first = self.words[:LOOK_WORDS]
        return language_of_words(first, len(first))

    def likeness(self) -> Likeness:
        """What the main text is compared by."""
        count, words = 0, array("Q")
        for block in main_blocks(self.blocks):
            count += block.last - block.first
            words.extend(
                word
                for word, numeric in zip(
                    self.words[block.first : block.last], self.numeric[block.first : block.last], strict=True
                )
                if not numeric
            )
        return likeness_of(words, count)

    def main_text(self) -> str:
        """The main text, a line a block, where texts were kept."""
        chosen = {block.first for block in main_blocks(self.blocks)}
        return "\n".join(text for text, block in zip(self.texts, self.blocks, strict=True) if block.first in chosen)

    def _sign(self, word: _Word) -> None:
        self._signed = True
        self._text = _step(self._text, word.number)
        if word.steady:
            self._shape = _step(self._shape, word.number)

    def _break(self) -> None:
        if len(self.words) > self._first:
            self.blocks.append(Block(self._first, len(self.words), self._linked, bool(self._framing)))
            if self._pieces is not None:
                self.texts.append(" ".join(" ".join(self._pieces).split()))
        if self._pieces:
            self._pieces.clear()
        self._first, self._linked = len(self.words), 0
