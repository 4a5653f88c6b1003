"""What leaves through standard output: text that cannot harm a terminal, and JSON of our nouns.

Titles, URLs and error texts come from strangers. On the way to a terminal every control character is replaced, so that
no page can move the cursor, recolour the screen or write into the clipboard.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum, IntEnum

import click

from nephila.model.errors import NephilaError

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 and C1 controls, line separators, and the marks that turn the direction of writing (they disguise addresses)."""


def printable(text: str) -> str:
    """The text on one line, without anything that a terminal would act upon."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def tell(error: NephilaError) -> None:
    """One sentence on standard error, and below it what to do; nothing where that cannot be written either."""
    sentence = printable(str(error))
    with suppress(OSError):
        click.echo(f"nephila: {sentence}" + ("" if sentence.endswith((".", "?", "!")) else "."), err=True)
        if error.hint:
            click.echo(f"  {printable(error.hint)}", err=True)


def plain(value: object) -> object:
    """A noun as JSON knows it: dataclasses as objects, bytes in hexadecimal, enumerations by their names."""
    result: object = value
    match value:
        case IntEnum():
            result = value.name.lower()
        case Enum():
            result = plain(value.value)
        case float() if not math.isfinite(value):
            result = str(value)
        case None | bool() | int() | float() | str():
            pass
        case bytes():
            result = value.hex()
        case Mapping():
            result = {str(key): plain(item) for key, item in value.items()}
        case _ if is_dataclass(value):
            result = {member.name: plain(getattr(value, member.name)) for member in fields(value)}
        case Iterable():
            result = [plain(item) for item in value]
        case _:
            result = str(value)
    return result


def print_json(document: Mapping[str, object]) -> None:
    """One JSON object on one line of standard output, in ASCII: any pipe can carry it."""
    click.echo(json.dumps(plain(document), allow_nan=False))
