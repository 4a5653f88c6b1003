"""Rows of text for people, within the width of a terminal: a label and what belongs to it, figures and their reasons.

Used by the closing summary and by `status`, which tell the same things before and after the end.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from .figures import count
from .output import printable

LABEL = 14
"""Columns of the labels, with the gap behind them; one that is longer moves its text."""
GAP = 2
REASON = 20
SHOWN_REASONS = 8
"""Kinds of errors and refusals listed before the rest is summed up."""
LEAST_TEXT = 22
NARROW_INDENT = 8


def reasons(counts: Mapping[str, int], meanings: Mapping[str, str], width: int) -> Iterator[str]:
    """Counts by reason with their meanings, the largest first, a long tail summed up."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    room = max((len(count(number)) for _, number in ordered), default=0)
    for reason, number in ordered[:SHOWN_REASONS]:
        meaning = meanings.get(reason, "")
        yield from wrapped(f"    {count(number):>{room}}  {printable(reason):<{REASON}}", meaning, width)
    rest = ordered[SHOWN_REASONS:]
    if rest:
        yield f"    {count(sum(number for _, number in rest)):>{room}}  of {many(len(rest), 'other kind')}"


def row(label: str, text: str, width: int) -> Iterator[str]:
    """A text behind its label."""
    yield from wrapped(f"  {label:<{LABEL - GAP}}" + " " * GAP, printable(text), width)


def wrapped(head: str, text: str, width: int) -> Iterator[str]:
    """Text behind its label, or below it where that is too narrow; a word that is too long (a path) is left whole."""
    indent = len(head)
    if width - indent < LEAST_TEXT and text:
        yield head.rstrip()
        indent = NARROW_INDENT
        head = " " * indent
    lines = textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False) or [""]
    yield (head + lines[0]).rstrip()
    yield from (" " * indent + line for line in lines[1:])


def many(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 URL``, ``2 URLs``."""
    return f"{count(number)} " + (noun if number == 1 else plural or f"{noun}s")
