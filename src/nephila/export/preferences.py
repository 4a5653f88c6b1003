"""What sites say in robots.txt of the use of their pages, held against what somebody is going to do with them (K3).

There are three ways to say it, and none is settled: ``Content-Signal: ai-train=no`` (Cloudflare), ``Content-Usage:
train-ai=n`` (the IETF's aipref drafts), and ``DisallowAITraining: /`` (draft-canel-robots-ai-control). The lines were
kept with every capture. What is unclear counts as a no: a line that speaks of a part of the site only, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SAID = re.compile(r"\s*([a-z]+)")
_NO = frozenset({"n", "no"})


class Use(StrEnum):
    """What pages are exported for."""

    SEARCH = "search"
    AI_INPUT = "ai-input"
    AI_TRAIN = "ai-train"


_NAMES = {
    Use.SEARCH: frozenset({"search"}),
    Use.AI_INPUT: frozenset({"ai-input", "ai", "bots", "ai-use"}),
    Use.AI_TRAIN: frozenset({"ai-train", "train-ai", "train-genai", "ai", "bots", "ai-use"}),
}
"""What each is called; the wider categories of the drafts hold for the narrower ones."""


def refuses(signals: str, use: Use) -> bool:
    """Whether these lines of a robots.txt, one below the other, do not want that use."""
    for line in signals.lower().splitlines():
        key, _, value = line.partition(":")
        if key == "disallowaitraining" and value.strip() and use is Use.AI_TRAIN:
            return True
        if any(name in _NAMES[use] and said in _NO for name, said in _terms(value or key)):
            return True
    return False


def _terms(text: str) -> Iterator[tuple[str, str]]:
    """What stands around each equals sign; in time linear in the text, which may be as long as a robots.txt."""
    left, *rest = text.split("=")
    for right in rest:
        left = left.rstrip()
        name = left[len(left.rstrip(f"{_LETTERS}-")) :].lstrip("-")
        said = _SAID.match(right) if name else None
        if said:
            yield name, said[1]
        left = right[said.end() :] if said else right
