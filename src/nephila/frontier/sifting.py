"""The loops of the sieve, run for every link of a page: in C where it was built (`native/links.c`), with their twins.

A URL that was judged is remembered as `Judged`; what is left to do for a page is then to look its links up, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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


def no_words(words: Sequence[str]) -> Sequence[str]:
    """Without the extension no path is looked at before the rules are."""
    return words


def no_plain_paths(addresses: Sequence[Address], words: object, repeats: int) -> list[bool]:
    """Of each address whether no rule about paths has to be asked: none is known not to."""
    del words, repeats
    return [False] * len(addresses)


def plain_unknown_urls(links: tuple[Link, ...], known: Mapping[str, object]) -> list[str]:
    """The URLs of links that a memory does not hold."""
    return [link.url for link in links if link.url not in known]


def plain_sift(
    links: tuple[Link, ...],
    known: dict[str, Judged],
    depth: int,
    candidate: type[Candidate],
    leads: dict[str, bool],
    ask_leads: Callable[[str], bool],
    forbids: dict[str, bool],
    ask_forbids: Callable[[str], bool],
) -> tuple[list[Link], list[Candidate], list[Refused], bool]:
    """The links that go on, as candidates, and those that do not; and whether a <link> is among the former.

    Every URL must be in `known`. `ask_leads` says of the rel of a <link> whether it leads to a document, `ask_forbids`
    of any rel whether it forbids to follow; `leads` and `forbids` hold what they said.
    """
    wanted: list[Link] = []
    candidates: list[Candidate] = []
    refused: list[Refused] = []
    met: set[bytes] = set()
    elements = False
    for link in links:
        url, tag, rel, _ = link
        if tag == "link" and not _answer(leads, ask_leads, rel):
            continue
        address, verdict, bonus = known[url]
        if address is None:
            refused.append((None, verdict))
            continue
        if address.fingerprint in met:
            continue
        met.add(address.fingerprint)
        if rel and _answer(forbids, ask_forbids, rel):
            refused.append((address, None))
        elif verdict is not None:
            refused.append((address, verdict))
        else:
            wanted.append(link)
            candidates.append(candidate(address, depth, None, 0, bonus))
            elements = elements or tag == "link"
    return wanted, candidates, refused, elements


def _answer(answers: dict[str, bool], ask: Callable[[str], bool], text: str) -> bool:
    answer = answers.get(text)
    if answer is None:
        answer = answers[text] = ask(text)
    return answer


word_table: Callable[[Sequence[str]], Any] = native.word_table if AVAILABLE else no_words
"""Makes what `plain_paths` takes."""
plain_paths: Callable[[Sequence[Address], Any, int], list[bool]] = native.plain_paths if AVAILABLE else no_plain_paths
unknown_urls = native.unknown_urls if AVAILABLE else plain_unknown_urls
sift = native.sift if AVAILABLE else plain_sift
