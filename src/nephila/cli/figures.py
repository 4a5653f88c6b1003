"""Figures for people: counts, sizes, rates and times, short enough for a narrow column."""

from __future__ import annotations

from datetime import UTC, datetime

_SIZES = ("kB", "MB", "GB", "TB", "PB")


def count(number: int) -> str:
    """``1,234,567``."""
    return f"{number:,}"


def short_count(number: int) -> str:
    """At most seven characters: ``99,999``, then ``100.0 k``, ``1.23 M``, ``45.6 G``."""
    if number < 100_000:
        return count(number)
    scaled, unit = float(number), ""
    for unit in ("k", "M", "G", "T"):  # noqa: B007 - the last unit is wanted
        scaled /= 1000
        if scaled < 999.5:
            break
    return f"{_three_digits(scaled)} {unit}"


def size(number: int) -> str:
    """``512 B``, ``31.2 kB``, ``1.50 GB``: decimal multiples."""
    if number < 1000:
        return f"{number} B"
    scaled, unit = float(number), ""
    for unit in _SIZES:  # noqa: B007 - the last unit is wanted
        scaled /= 1000
        if scaled < 999.5:
            break
    return f"{_three_digits(scaled)} {unit}"


def rate(per_second: float) -> str:
    """``0.25/s``, ``14.8/s``, ``1,480/s``."""
    return f"{_three_digits(per_second)}/s"


def clock(seconds: float) -> str:
    """``0:07``, ``12:34``, ``1:02:03``, ``3d 1:02:03``."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def span(seconds: float) -> str:
    """A duration in the largest unit that leaves it whole: ``0.5 s``, ``90 s``, ``15 min``, ``6 h``, ``2 d``."""
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:,.12g} s"


def moment(milliseconds: int) -> str:
    """A stored instant, ``2026-01-31 12:34:56``, in UTC like everything that is stored."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _three_digits(number: float) -> str:
    if number < 10:
        return f"{number:.2f}"
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}"
