"""What plugins may return, as plain values: checked in their own process, and once more in ours.

`plain` turns what a method returned into numbers, texts, lists and nothing else, or says what is wrong with it; `noun`
turns such plain values into what the crawl uses. Sizes are bounded here: a plugin cannot flood the crawl.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from nephila.model.page import Link
from nephila.model.plugin import Extract, RequestAdvice

from .points import Point

Plain: TypeAlias = "bool | int | str | list[Plain] | None"

MOST_LINKS = 50_000
MOST_SEEDS = 100_000
MOST_FIELDS = 100
MOST_HEADERS = 50
LONGEST_URL = 65_536
LONGEST_TEXT = 16_384
LONGEST_REASON = 500
LONGEST_ANCHOR = 200
"""As `Link.text` has it."""


class BadAnswerError(Exception):
    """What a plugin returned is not what its point asks for."""


def plain(point: Point, answer: object, asked: int) -> Plain:
    """An answer as plain values; `asked` is of how many links it was asked. Raises `BadAnswerError`."""
    match point:
        case Point.FILTER:
            return _filtered(answer, asked)
        case Point.SCORE:
            return _scored(answer, asked)
        case Point.EXTRACT:
            return _extracted(answer)
        case Point.SEEDS:
            return [*_texts(answer, "seeds", MOST_SEEDS, LONGEST_URL)]
        case Point.BEFORE:
            return _advised(answer)
        case Point.RECORDS | Point.EVENTS | Point.AFTER:
            return None


def _items(answer: object, what: str, most: int) -> Sequence[object]:
    if not isinstance(answer, list | tuple):
        raise BadAnswerError(f"{what}: a list is expected, not {type(answer).__name__}")
    if len(answer) > most:
        raise BadAnswerError(f"{what}: {len(answer)} are too many, at most {most}")
    return answer


def _text(value: object, what: str, longest: int) -> str:
    if not isinstance(value, str):
        raise BadAnswerError(f"{what}: a text is expected, not {type(value).__name__}")
    # A lone surrogate has no spelling in UTF-8, and so in nothing that we write.
    return value[:longest].encode("utf-8", "replace").decode("utf-8")


def _texts(answer: object, what: str, most: int, longest: int) -> list[str]:
    return [_text(value, what, longest) for value in _items(answer, what, most)]


def _pairs(answer: object, what: str, most: int) -> list[Plain]:
    found: list[Plain] = []
    for pair in _items(answer, what, most):
        found.append([*_texts(pair, what, 2, LONGEST_TEXT)])
        if len(_items(pair, what, 2)) != 2:
            raise BadAnswerError(f"{what}: pairs of texts are expected")
    return found


def _filtered(answer: object, asked: int) -> Plain:
    found: list[Plain] = [
        verdict if isinstance(verdict, bool) else _text(verdict, "verdicts", LONGEST_REASON)
        for verdict in _items(answer, "verdicts", asked)
    ]
    return _of_all(found, asked)


def _scored(answer: object, asked: int) -> Plain:
    found: list[Plain] = []
    for points in _items(answer, "points", asked):
        if isinstance(points, bool) or not isinstance(points, int):
            raise BadAnswerError(f"points: a whole number is expected, not {type(points).__name__}")
        found.append(max(-100, min(100, points)))
    return _of_all(found, asked)


def _of_all(found: list[Plain], asked: int) -> list[Plain]:
    if len(found) != asked:
        raise BadAnswerError(f"{len(found)} answers for {asked} links")
    return found


def _extracted(answer: object) -> Plain:
    if answer is None:
        return None
    if not isinstance(answer, Extract):
        raise BadAnswerError(f"an Extract is expected, not {type(answer).__name__}")
    links: list[Plain] = []
    for link in _items(answer.links, "links", MOST_LINKS):
        if not isinstance(link, tuple) or len(link) != len(Link._fields):
            raise BadAnswerError("links: each is a Link")
        url, tag, rel, text = (_text(part, "links", LONGEST_URL) for part in link)
        links.append([url, tag[:50], rel[:200], text[:LONGEST_ANCHOR]])
    counts: list[Plain] = []
    for name, number in answer.counts[:MOST_FIELDS]:
        counts.append([_text(name, "counts", 50), int(number)])
    return [
        links,
        _text(answer.title, "title", LONGEST_TEXT),
        _text(answer.language, "language", 50),
        _pairs(answer.fields, "fields", MOST_FIELDS),
        counts,
        _text(answer.detail, "detail", LONGEST_REASON),
    ]


def _advised(answer: object) -> Plain:
    if answer is None:
        return None
    if not isinstance(answer, RequestAdvice):
        raise BadAnswerError(f"a RequestAdvice is expected, not {type(answer).__name__}")
    return [_pairs(answer.headers, "headers", MOST_HEADERS), _text(answer.veto, "veto", LONGEST_REASON)]


def extract_of(values: Plain) -> Extract:
    """The extract that plain values stand for. Raises `BadAnswerError` where they stand for none."""
    match values:
        case None:
            return Extract()
        case [list() as links, str() as title, str() as language, list() as fields, list() as counts, str() as detail]:
            return Extract(
                links=tuple(Link(*_row(link, 4)) for link in links),
                title=title,
                language=language,
                fields=tuple((name, text) for name, text in (_row(pair, 2) for pair in fields)),
                counts=tuple(_count(pair) for pair in counts),
                detail=detail,
            )
        case _:
            raise BadAnswerError("no extract")


def advice_of(values: Plain) -> RequestAdvice:
    """The advice that plain values stand for. Raises `BadAnswerError` where they stand for none."""
    match values:
        case None:
            return RequestAdvice()
        case [list() as headers, str() as veto]:
            return RequestAdvice(tuple((name, value) for name, value in (_row(pair, 2) for pair in headers)), veto)
        case _:
            raise BadAnswerError("no advice")


def verdicts_of(values: Plain, asked: int) -> list[bool | str]:
    """One verdict for each link."""
    found = [value for value in values if isinstance(value, bool | str)] if isinstance(values, list) else []
    if len(found) != asked:
        raise BadAnswerError("no such answer")
    return found


def points_given(values: Plain, asked: int) -> list[int]:
    """The points of each link."""
    found = [value for value in values if isinstance(value, int)] if isinstance(values, list) else []
    if len(found) != asked:
        raise BadAnswerError("no such answer")
    return found


def seeds_of(values: Plain) -> list[str]:
    """The seeds."""
    if not isinstance(values, list):
        raise BadAnswerError("no such answer")
    return [value for value in values if isinstance(value, str)]


def _row(values: Plain, size: int) -> list[str]:
    if not isinstance(values, list) or len(values) != size or not all(isinstance(one, str) for one in values):
        raise BadAnswerError("no such answer")
    return [str(one) for one in values]


def _count(pair: Plain) -> tuple[str, int]:
    match pair:
        case [str() as name, int() as number]:
            return name, number
        case _:
            raise BadAnswerError("no such answer")
