"""Our nouns as JSON knows them: for `--json` and for the control API."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum, IntEnum


def plain(value: object) -> object:
    """Dataclasses as objects, bytes in hexadecimal, enumerations by their names; lone surrogates replaced."""
    result: object = value
    match value:
        case IntEnum():
            result = value.name.lower()
        case Enum():
            result = plain(value.value)
        case float() if not math.isfinite(value):
            result = str(value)
        case str():
            result = value.encode(errors="replace").decode()
        case None | bool() | int() | float():
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
