"""What the benches' command lines have in common."""

from __future__ import annotations

import argparse
from typing import NoReturn


def numbers(text: str) -> list[int]:
    """Whole numbers above 0, as in 3,30,100."""
    try:
        found = [int(word) for word in text.split(",") if word]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers such as 3,30,100")
    return found


def one_sentence(parser: argparse.ArgumentParser) -> None:
    """Let a wrong argument be answered with one sentence, without the usage that nobody asked for."""

    def error(message: str) -> NoReturn:
        parser.exit(2, f"{parser.prog}: {message}.\n")

    parser.error = error  # type: ignore[method-assign]  # argparse's own way is to derive a class
