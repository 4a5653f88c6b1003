"""What leaves through standard output: text that cannot harm a terminal, and JSON of our nouns.

Titles, URLs and error texts come from strangers. On the way to a terminal every control character is replaced, so that
no page can move the cursor, recolour the screen or write into the clipboard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress

import click

from nephila.model.errors import NephilaError
from nephila.model.plain import plain

from .naming import command_name

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 and C1 controls, line separators, and the marks that turn the direction of writing (they disguise addresses)."""
_COMMAND = re.compile(r"(?<![^\s`])nephila (?=[a-z]+\b)")


def printable(text: str) -> str:
    """The text on one line, without anything that a terminal would act upon."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def tell(error: NephilaError) -> None:
    """One sentence on standard error, and below it what to do; nothing where that cannot be written either.

    Commands that a hint names can be copied as they stand: in a checkout `nephila` is `./nephila`.
    """
    sentence = printable(str(error))
    with suppress(OSError):
        click.echo(f"nephila: {sentence}" + ("" if sentence.endswith((".", "?", "!")) else "."), err=True)
        if error.hint:
            click.echo(f"  {printable(as_called(error.hint))}", err=True)


def as_called(hint: str) -> str:
    """A hint whose commands name this program as it was called."""
    return _COMMAND.sub(lambda _: f"{command_name()} ", hint)


def print_json(document: Mapping[str, object]) -> None:
    """One JSON object on one line of standard output, in ASCII: any pipe can carry it."""
    click.echo(json.dumps(plain(document), allow_nan=False))
