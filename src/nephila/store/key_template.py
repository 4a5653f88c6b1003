"""``{date}/{domain_hash}/{url_hash}.warc.gz``: how the files of an archive are called, as an operator writes it (W1).

Every name gets a tail of its own behind what the template says (`rotation`), so that names never clash: whatever is
stored under a key is found by listing what begins with it. A template is judged before anything is fetched: what it
makes must be a harmless path below the archive, on any file system, and a key that every store of objects takes.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

from nephila.model.errors import UsageError
from nephila.model.noun import noun

from .rotation import MAX_NAME_BYTES, MAX_PART_BYTES, WARC_SUFFIX, WARC_SUFFIXES, longest_tail, without_suffix

MAX_HOST_IN_NAME = 100
"""A longer host or domain is cut: the tail of the name still tells it apart."""
DOMAIN_HASH_DIGITS = 16
"""Of SHA-256, in hexadecimal: enough to tell a billion domains apart."""

FIELDS: Mapping[str, int] = MappingProxyType(
    {
        "date": len("2026-01-31"),
        "hour": len("23"),
        "domain": MAX_HOST_IN_NAME,
        "domain_hash": DOMAIN_HASH_DIGITS,
        "host": MAX_HOST_IN_NAME,
        "url_hash": 32,
    }
)
"""What a template may name, each with its longest value."""

_TAKEN = frozenset({"trail", "nephila-crawl"})
"""What lies beside the archive under its prefix in a store of objects."""
_LITERAL = re.compile(r"[A-Za-z0-9._=/-]*")
RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
"""What Windows takes for a device, with anything behind a dot."""
_HINT = 'write it like archive.key = "{date}/{domain_hash}/{url_hash}.warc.gz"'


@noun
class KeyTemplate:
    """A template that was found to be good."""

    text: str
    """Without the suffix, which is that of the compression."""
    fields: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a template; raises `UsageError` with what is wrong with it."""
        if not text.endswith(WARC_SUFFIXES):
            raise _wrong(text, f"it does not end with {WARC_SUFFIX}")
        stem = without_suffix(text)
        fields = _fields(text, stem)
        folders = stem.split("/")
        if len(folders) == 1:
            raise _wrong(text, "it has no folder, and all files would lie in one")
        for folder in folders:
            if (reason := _unusable(folder)) is not None:
                raise _wrong(text, reason)
        if folders[0] in _TAKEN:
            raise _wrong(text, f"{folders[0]} is taken by what lies beside an archive")
        longest = stem.format(**{name: "x" * FIELDS[name] for name in fields}) + "x" * longest_tail()
        if len(longest) > MAX_NAME_BYTES:
            raise _wrong(text, f"its names could have {len(longest)} characters, and {MAX_NAME_BYTES} are the most")
        if any(len(part) > MAX_PART_BYTES for part in longest.split("/")):
            raise _wrong(text, f"one of its parts could have more than {MAX_PART_BYTES} characters")
        return cls(stem, frozenset(fields))

    def filled(self, values: Mapping[str, str]) -> str:
        """How the name of a file begins; values are harmless (`layout.in_a_name`)."""
        return self.text.format_map(values)

    @property
    def beginning(self) -> str:
        """What all names begin with."""
        return self.text.partition("{")[0]


def _fields(text: str, stem: str) -> list[str]:
    try:
        parts = list(string.Formatter().parse(stem))
    except ValueError as error:
        raise _wrong(text, f"its braces do not match ({error})") from error
    found: list[str] = []
    for literal, field, form, conversion in parts:
        if not _LITERAL.fullmatch(literal):
            raise _wrong(text, "beside fields it may have letters, digits, slashes and . _ = - only")
        if field is None:
            continue
        if form or conversion or field not in FIELDS:
            shown = f"{{{field}{'!' + conversion if conversion else ''}{':' + form if form else ''}}}"
            raise _wrong(text, f"{shown} is no field of it; there are {', '.join(FIELDS)}")
        found.append(field)
    return found


def _unusable(folder: str) -> str | None:
    """Why a part between slashes cannot be used."""
    if not folder:
        return "it begins with a slash, or has two in a row, or a name without anything in it"
    if folder in {".", ".."}:
        return f"{folder!r} in it leads out of the archive or nowhere"
    if folder.startswith("."):
        return f"{folder!r} would be hidden"
    if folder.endswith("."):
        return f"{folder!r} ends with a dot, which some file systems drop"
    if RESERVED.fullmatch(folder):
        return f"{folder!r} is the name of a device on some systems"
    return None


def _wrong(text: str, reason: str) -> UsageError:
    return UsageError(f"the key {text!r} cannot be used: {reason}", _HINT)
