"""From what people write to what a setting holds.

Two ways in: `from_text` for the environment, `--set` and flags, where everything is a string; `from_toml` for files,
where numbers and lists have types of their own and a string stands for a number only when it carries a unit ("90s",
"10MB"). Both end in the same checks (range, choices, printable), and both raise a `BadValueError` that says what
was expected; whoever knows where the value came from turns it into a sentence for the user.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from .declared import Declared, Unit, Value

Scalar: TypeAlias = bool | int | float | str

SECONDS_IN: Mapping[str, float] = MappingProxyType(
    {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
)
BYTES_IN: Mapping[str, int] = MappingProxyType(
    {"b": 1}
    | {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)}
    | {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}
)
"""Decimal and binary multiples as IEC 80000-13 names them."""

LARGEST_INT = 2**63 - 1
"""What TOML promises to carry, and what packed records hold."""
LONGEST_S = 100 * 366 * 86_400.0
"""A century: a time added to now must still fit a packed millisecond count."""

AUTOMATIC = "auto"

TRUE = frozenset({"true", "yes", "on", "1"})
FALSE = frozenset({"false", "no", "off", "0"})

_MEASURE = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)\s*([a-z]+)")
_INT = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_UNIT_NOUNS: Mapping[Unit, tuple[str, str]] = MappingProxyType(
    {
        Unit.SECONDS: ('a duration ("90s", "5m", "2h", "1d", or seconds)', 'durations ("90s", "5m", or seconds)'),
        Unit.MILLISECONDS: ('milliseconds (or "100ms", "2s")', 'milliseconds (or "100ms", "2s")'),
        Unit.BYTES: ('a size ("10MB", "512KiB", "1GB", or bytes)', 'sizes ("10MB", "512KiB", or bytes)'),
    }
)
_TYPE_NOUNS: Mapping[type, tuple[str, str]] = MappingProxyType(
    {
        bool: ("true or false", "true or false"),
        int: ("a whole number", "whole numbers"),
        float: ("a number", "numbers"),
        str: ("a string", "strings"),
    }
)


class BadValueError(ValueError):
    """The value does not fit its setting; the text reads on after "``key`` ..."."""


def from_text(one: Declared, text: str) -> Value:
    """The value that a string stands for; a list is comma separated, or a TOML array when its items hold commas."""
    if not one.many:
        return _checked(one, _scalar_from_text(one, text))
    return from_items(one, _split(one, text))


def from_items(one: Declared, items: Sequence[str]) -> Value:
    """The value of a list whose items came one by one, e.g. from a flag given several times."""
    return _checked_many(one, [_scalar_from_text(one, item) for item in items])


def from_toml(one: Declared, value: object) -> Value:
    """The value that a TOML value stands for."""
    if not one.many:
        return _checked(one, _scalar_from_toml(one, value))
    if not isinstance(value, list):
        raise BadValueError(f"must be an array of {_noun(one, many=True)}, not {_shown(value)}")
    return _checked_many(one, [_scalar_from_toml(one, item) for item in value])


def expected(one: Declared) -> str:
    """What may be written for a setting, e.g. `a duration ("90s", "5m") or plain seconds`."""
    if one.choices:
        return "one of " + ", ".join(one.choices)
    return _noun(one, many=one.many)


def _scalar_from_text(one: Declared, text: str) -> Scalar:
    word = text.strip()
    if one.type is str:
        return text
    if one.automatic and word.lower() == AUTOMATIC:
        return 0
    if one.type is bool:
        if word.lower() in TRUE | FALSE:
            return word.lower() in TRUE
        raise _wrong(one, text)
    if one.type is int and _INT.fullmatch(word) and len(word) < 30:
        return int(word)
    if one.type is float:
        try:
            return float(word)
        except ValueError:
            pass  # perhaps it has a unit
    return _measure(one, word)


def _scalar_from_toml(one: Declared, value: object) -> Scalar:
    match value:
        case bool():
            fits = one.type is bool
        case int():
            fits = one.type in (int, float)
        case float():
            fits = one.type is float
        case str():
            if (one.type in (int, float) and one.unit is not Unit.PLAIN) or (one.automatic and value == AUTOMATIC):
                return _scalar_from_text(one, value)
            fits = one.type is str
        case _:
            fits = False
    if not fits or not isinstance(value, bool | int | float | str):
        raise _wrong(one, value)
    if one.type is float and isinstance(value, int):
        return float(min(value, LARGEST_INT))  # a longer one is refused as out of range all the same
    return value


def _measure(one: Declared, word: str) -> int | float:
    """A number with a unit, in the unit of the setting."""
    found = _MEASURE.fullmatch(word.lower())
    if found is None:
        raise _wrong(one, word)
    number, suffix = found[1].replace("_", ""), found[2]
    match one.unit:
        case Unit.BYTES if suffix in BYTES_IN:
            amount = float(number) * BYTES_IN[suffix] if "." in number else int(number[:30]) * BYTES_IN[suffix]
        case Unit.SECONDS if suffix in SECONDS_IN:
            amount = float(number) * SECONDS_IN[suffix]
        case Unit.MILLISECONDS if suffix in SECONDS_IN:
            amount = round(float(number) * SECONDS_IN[suffix] * 1000, 6)
        case _:
            raise _wrong(one, word)
    return round(amount) if one.type is int and math.isfinite(amount) else amount


def _split(one: Declared, text: str) -> list[str]:
    """Items of a list in one string. A TOML array first: a regex may hold a comma, and `config show` prints arrays."""
    if text.lstrip().startswith("["):
        try:
            array = tomllib.loads(f"items = {text.strip()}")["items"]
        except ValueError:
            array = None  # a regex may begin with a bracket as well
        kinds = (str,) if one.type is str else (str, int, float)  # [0] is a regex, too
        if isinstance(array, list) and all(type(item) in kinds for item in array):
            return [str(item) for item in array]
    return [item.strip() for item in text.split(",") if item.strip()]


def _checked(one: Declared, value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _CONTROL.search(value):
            raise BadValueError(f"must be one line of plain text, without control characters: {_shown(value)}")
        if one.choices and value not in one.choices:
            raise BadValueError(f"must be one of {', '.join(one.choices)}, not {_shown(value)}")
        return value
    if math.isnan(value) or (math.isinf(value) and not (one.endless and value > 0)):
        raise BadValueError(f"must be a finite number, not {_shown(value)}")
    low, high = one.low, one.high
    if high is None and not one.endless:
        high = LARGEST_INT if one.type is int else LONGEST_S
    if low is not None and value < low:
        raise BadValueError(f"must be at least {plain(low)}, not {_shown(value)}")
    if high is not None and value > high:
        raise BadValueError(f"must be at most {plain(high)}, not {_shown(value)}")
    return value


def _checked_many(one: Declared, items: Sequence[Scalar]) -> Value:
    checked = tuple(_checked(one, item) for item in items)
    if one.type is str and "" in checked:
        raise BadValueError("has an empty item")
    if one.type is float and any(isinstance(item, float) and item < 0 for item in checked):
        raise BadValueError("has a negative item")
    return checked  # type: ignore[return-value]  # all items are of the declared type


def _wrong(one: Declared, value: object) -> BadValueError:
    return BadValueError(f"must be {_noun(one, many=False)}, not {_shown(value)}")


def _noun(one: Declared, *, many: bool) -> str:
    single, plural = _UNIT_NOUNS.get(one.unit) or _TYPE_NOUNS[one.type]
    if one.automatic:
        single += f" or {AUTOMATIC}"
    return plural if many else single


def plain(number: float) -> str:
    """A bound as people write it, never as 1e+06."""
    return f"{number:g}" if number < 1_000_000 else f"{int(number):,}"


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
