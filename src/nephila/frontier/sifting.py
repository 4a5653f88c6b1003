"""The loop of the sieve, run for every link of a page: in C where it was built (`native/sieve.c`), with its twin.

A URL that was judged is remembered as `Judged`. With the extension that is for the odd ones only: a plain URL (see
`native/sieve.c`) is identified and judged anew each time it is met, by what `Rules` say, which takes less time than to
find it in a large memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nephila.model.page import Link
from nephila.model.task import Candidate
from nephila.native import AVAILABLE, native
from nephila.urls import Address

Verdict = tuple[str, str]
"""Reason and detail of a refusal."""
Judged = tuple[Address | None, Verdict | str | None, int]
"""An address, the verdict on it (None: it may be queued) and its bonus; where there is no address, the reason why."""
Refused = tuple[Address | None, Verdict | str | None]
"""An address with the verdict (None: its link says nofollow), or no address with the reason why."""


class Rels(NamedTuple):
    """What spellings of rel mean: as far as it is known, and whom to ask."""

    leads: dict[str, bool]
    """Whether a <link> leads to a document that is to be followed."""
    ask_leads: Callable[[str], bool]
    forbids: dict[str, bool]
    """Whether a link is not to be followed."""
    ask_forbids: Callable[[str], bool]


class Rules(NamedTuple):
    """What plain URLs are identified and judged by."""

    sites: dict[str, Any]
    """Origins that are known, by their spelling (see `urls.identity`)."""
    secret: int
    max_length: int
    max_segments: int
    drop_slash: bool
    address: type[Address]
    words: Any
    """Segments and endings of paths that mean something to a rule, as `native.word_table` keeps them."""
    repeats: int
    """So many repetitions of a segment mean something too."""
    hosts: dict[str, bool]
    """Whether hosts are in scope, as far as it was asked."""
    ask_host: Callable[[str], bool]
    outside: Verdict
    """The verdict on what is not."""


def plain_sift(
    links: Sequence[Link],
    known: dict[str, Judged],
    learn: Callable[[str], Judged],
    depth: int,
    candidate: type[Candidate],
    rels: Rels,
    rules: Rules | None,
) -> tuple[Sequence[Link], Sequence[Candidate], list[Refused]]:
    """The links that go on, the same as candidates, and those that do not.

    What is not in `known` is asked of `learn`. The `rules` only save work, and only in C.
    """
    del rules
    leads, ask_leads, forbids, ask_forbids = rels
    wanted: list[Link] = []
    candidates: list[Candidate] = []
    refused: list[Refused] = []
    met: set[bytes] = set()
    for link in links:
        url, tag, rel, _ = link
        if tag == "link" and not _answer(leads, ask_leads, rel):
            continue
        forbidden = bool(rel) and _answer(forbids, ask_forbids, rel)
        judged = known.get(url)
        address, verdict, bonus = learn(url) if judged is None else judged
        if address is None:
            refused.append((None, verdict))
            continue
        if address.fingerprint in met:
            continue
        met.add(address.fingerprint)
        if forbidden:
            refused.append((address, None))
        elif verdict is not None:
            refused.append((address, verdict))
        else:
            wanted.append(link)
            candidates.append(candidate(address, depth, None, 0, bonus))
    return wanted, candidates, refused


def _answer(answers: dict[str, bool], ask: Callable[[str], bool], text: str) -> bool:
    answer = answers.get(text)
    if answer is None:
        answer = answers[text] = ask(text)
    return answer


sift = native.sift if AVAILABLE else plain_sift
