"""The shape of a URL: its path and the names of its parameters, with what only tells one page from the next left open.

A program that makes pages without end makes their URLs by one rule: a date, a number, a session. `skeleton` undoes that
rule, so that the trap policy (T2) can count what the pages of one rule have brought. It has no scheme and no host.

    /calendar/2031/07/02?view=day      /calendar/{date}?view
    /p/red-chair-with-arms-4711.html   /p/{words}.html
    /x/8f3a01bc77de                    /x/{hex}
    /a/b/a/b/a/b/index.html            /(a/b)+/index.html

How: percent escapes are read, words that hold a digit become placeholders by what they look like, titles of several
words one placeholder, a run of equal segments (or of equal short sequences) is folded to one, and the query is the
sorted set of its names. Words stay words: a site's sections keep their own skeletons.

What must stay true: the same URL gives the same skeleton in every version that reads the same store (it is a key
there); time is linear in the length of the URL. A skeleton without a placeholder, a fold or a query stands for one URL
only (`is_open` is False), so there is nothing to count.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

DATE, NUMBER, HEX, UUID, TOKEN, TITLE = "{date}", "{n}", "{hex}", "{uuid}", "{id}", "{words}"

_YEAR = r"(?:1[89]|2\d)\d\d"
_DATE_PATH = re.compile(rf"/{_YEAR}/(?:0?[1-9]|1[0-2])(?:/(?:0?[1-9]|[12]\d|3[01]))?(?![^/])")
"""``/2031/07`` and ``/2031/07/02`` as whole segments."""
_has_digit = re.compile(r"\d").search
_VARIABLE = re.compile(
    rf"""
      (?<!\d){_YEAR}([-._])(?:0?[1-9]|1[0-2])(?:\1(?:0?[1-9]|[12]\d|3[01]))?(?![\d-])    # 2031-07-02, 2031-07
    | (?<![\d-])(?:0?[1-9]|[12]\d|3[01])([-.])(?:0?[1-9]|1[0-2])\2{_YEAR}(?!\d)          # 02.07.2031
    | (?<!\w){_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\w)                      # 20310702
    | (?P<uuid>(?<!\w)[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}(?!\w))
    | (?P<token>(?<![^\W_])[^\W\d_]*+\d[^\W_]*+)                                         # any word that holds a digit
    """,
    re.VERBOSE,
)
_may_be_fixed = re.compile(r"\d{4}[-._]\d|\d[-.]\d{4}|\d{8}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-").search
"""Quickly, whether a segment of several words may hold a date or a uuid. In most of them it is just a title."""
_HEX = re.compile(r"(?=\d*[a-fA-F])[0-9a-fA-F]{8,}")
_PARTS = re.compile(r"\d+|\D+")
_DIGITS = re.compile(r"\d+")
_MANY_PARTS = 4
"""Changes between letters and digits in one word that no word of a language has, nor a product's name: ``a1b2``."""
_LONG = 16
"""Letters and digits without a break: longer words are no names."""
_TITLE_BREAKS = 3
_NUMBERED_TITLE_BREAKS = 2
"""Breaks between words from which on a segment is the title of one page, and not the name of a section."""
_LONGEST_ENDING = 5
_LONGEST_BLOCK = 4
"""Segments of a sequence that is looked for again right behind itself."""


def skeleton(url: str) -> str:
    """The shape of an http(s) URL, beginning with a slash."""
    parts = url.split("/", 3)
    path, mark, query = (parts[3] if len(parts) > 3 else "").partition("?")
    if "%" in path:
        path = unquote(path)
    path = "/" + path
    if _has_digit(path):
        path = _DATE_PATH.sub("/" + DATE, path)
    segments = [segment if segment.isalpha() else _segment(segment) for segment in path.split("/")]
    if len(set(segments)) < len(segments):
        segments[1:] = _folded(segments[1:])  # before the first slash is nothing, and that is no segment
    shape = "/".join(segments)
    return f"{shape}?{_names(query)}" if mark else shape


def _segment(segment: str) -> str:
    """One segment that is no plain word."""
    breaks = segment.count("-") + segment.count("_") + segment.count("+") + segment.count(" ")
    if _has_digit(segment):
        if breaks < _NUMBERED_TITLE_BREAKS or _may_be_fixed(segment):
            segment = _VARIABLE.sub(_placeholder, segment)
            breaks = segment.count("-") + segment.count("_") + segment.count("+") + segment.count(" ")
        if breaks >= _NUMBERED_TITLE_BREAKS:
            return _titled(segment)
    return _titled(segment) if breaks >= _TITLE_BREAKS else segment


def is_open(shape: str) -> bool:
    """Whether a skeleton can stand for more than one URL."""
    return "{" in shape or "?" in shape or ")+" in shape


def _placeholder(match: re.Match[str]) -> str:
    """What stands for a date, an identifier or a word with digits."""
    token = match["token"]
    if token is None:
        return UUID if match["uuid"] else DATE
    if token.isdigit():
        return NUMBER
    if _HEX.fullmatch(token):
        return HEX
    parts = len(_PARTS.findall(token))
    letters = token.lstrip("0123456789")
    mixed_case = not letters.islower() and not letters.isupper() and not letters.istitle()
    if len(token) >= _LONG or parts >= _MANY_PARTS or (mixed_case and len(token) > 5):
        return TOKEN
    return _DIGITS.sub(NUMBER, token)


def _titled(segment: str) -> str:
    """The placeholder for the title of a page, with the ending that a file has."""
    _, dot, ending = segment.rpartition(".")
    return f"{TITLE}.{ending}" if dot and ending.isalnum() and len(ending) <= _LONGEST_ENDING else TITLE


def _folded(segments: list[str]) -> list[str]:
    """The segments with each sequence that stands right behind itself, however often, written once."""
    found: list[str] = []
    at = 0
    while at < len(segments):
        size, end = _repeat(segments, at)
        if size:
            found.append(f"({'/'.join(segments[at : at + size])})+")
            at = end
        else:
            found.append(segments[at])
            at += 1
    return found


def _repeat(segments: list[str], at: int) -> tuple[int, int]:
    """Length of the sequence at a place that is repeated there, and where its repeats end; zeros when it is not.

    The end of the path may break off within the sequence: an endless path is cut somewhere.
    """
    for size in range(1, _LONGEST_BLOCK + 1):
        block = segments[at : at + size]
        end = at + size
        while segments[end : end + size] == block:
            end += size
        times = (end - at) // size
        # /12/34 are two numbers as many good paths have them; three are a habit.
        if times >= 3 or (times == 2 and any(segment and segment[0] != "{" for segment in block)):
            rest = segments[end:]
            return size, len(segments) if rest == block[: len(rest)] else end
    return 0, 0


def _names(query: str) -> str:
    """The names of the parameters, sorted, each once."""
    if "&" not in query and "=" in query:  # most queries
        names = {query.partition("=")[0]}
    else:
        names = {pair.partition("=")[0] for pair in query.split("&")}
    return "&".join(sorted({_segment(name) if _has_digit(name) else name for name in names}))
