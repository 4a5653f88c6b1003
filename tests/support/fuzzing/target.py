"""What a fuzz target is: one check of one reader, which any bytes must pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A check that raises when a property does not hold; what the reader itself raises counts as well."""

    name: str
    check: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    """First inputs, from which the others are made."""
    words: tuple[bytes, ...] = ()
    """Pieces of the language that is read, for mutations."""
    longest: int = 4096
    """Bytes of an input."""


class Choices:
    """The first bytes of an input, spent on how the rest is used."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, below: int) -> int:
        """A number from 0 on; 0 when the input has come to its end."""
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % below

    def rest(self) -> bytes:
        """What was not spent."""
        return self._data[self._at :]


def pieces_of(data: bytes, step: int) -> list[bytes]:
    """The bytes cut as a network might cut them: pieces of `step`, `step + 1`, ... bytes; whole for 0."""
    if not step:
        return [data] if data else []
    pieces, at = [], 0
    while at < len(data):
        pieces.append(data[at : at + step])
        at, step = at + step, step + 1
    return pieces


def text_of(data: bytes) -> str:
    """Any text, lone surrogates included."""
    return data.decode("utf-8", "surrogatepass" if b"\xed" in data and _is_surrogates(data) else "replace")


def _is_surrogates(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
