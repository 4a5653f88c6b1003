"""Charts as inline SVG and as rows of bars: no script, colours from the page's style sheet, figures in the text too.

Everything that came from the web is escaped here or in `report_page`, nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape

WIDTH, HEIGHT = 720, 180
LEFT, BOTTOM, TOP = 52, 22, 10
_TICKS = 4
_LABELS = 5
_DAY_MS, _MINUTE_MS = 86_400_000, 60_000

Row = tuple[str, float, str]
"""What, how much, and how that is written."""


def nice(most: float) -> float:
    """The least round figure (1, 2 or 5 times a power of ten) that a scale can end at."""
    if most <= 0:
        return 1.0
    power = 1.0
    while power < most:
        power *= 10
    while power / 10 >= most:
        power /= 10
    return next(power * part for part in (0.1, 0.2, 0.5, 1.0) if power * part >= most * 0.999999)


def area(figures: Sequence[float], begun_at: int, step_ms: int, write: Callable[[float], str], label: str) -> str:
    """A figure over time as a filled line, with its scale."""
    top = nice(max(figures, default=0.0))
    width, height = WIDTH - LEFT, HEIGHT - BOTTOM - TOP
    step = width / max(1, len(figures))
    points = "".join(
        f"L{LEFT + place * step:.1f},{TOP + height * (1 - figure / top):.1f}H{LEFT + (place + 1) * step:.1f}"
        for place, figure in enumerate(figures)
    )
    ground = TOP + height
    path = f"M{LEFT},{ground}{points}V{ground}Z"
    lines = "".join(_line(TOP + height * tick / _TICKS, write(top * (1 - tick / _TICKS))) for tick in range(_TICKS + 1))
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'{lines}<path class="area" d="{path}"/>{_times(begun_at, step_ms * len(figures), width)}</svg>'
    )


def _line(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="scale" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{escape(text)}</text>'
    )


def _times(begun_at: int, length_ms: int, width: float) -> str:
    """Instants below a chart."""
    form = "%H:%M:%S" if length_ms < 30 * _MINUTE_MS else "%H:%M" if length_ms < _DAY_MS else "%d %b %H:%M"
    found = []
    for label in range(_LABELS):
        share = label / (_LABELS - 1)
        told = datetime.fromtimestamp((begun_at + length_ms * share) / 1000, UTC).strftime(form)
        anchor = "start" if label == 0 else "end" if label == _LABELS - 1 else "middle"
        x = LEFT + width * share
        found.append(f'<text class="scale" x="{x:.1f}" y="{HEIGHT - 5}" text-anchor="{anchor}">{told}</text>')
    return "".join(found)


def bars(rows: Iterable[Row], kind: str = "") -> str:
    """Figures beside each other as a table with bars."""
    listed = list(rows)
    most = max((figure for _, figure, _ in listed), default=0) or 1
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f'<td class="bar"><span style="width:{100 * figure / most:.1f}%"></span></td>'
        f"<td>{escape(told)}</td></tr>"
        for name, figure, told in listed
    )
    return f'<table class="bars {kind}">{body}</table>' if body else '<p class="none">None.</p>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table; the first `words` columns are text, the others figures."""
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{"word" if place < words else "figure"}">{escape(cell)}</td>' for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    if not body:
        return '<p class="none">None.</p>'
    head = "".join(
        f'<th scope="col" class="{"word" if place < words else "figure"}">{escape(name)}</th>'
        for place, name in enumerate(heads)
    )
    return f'<div class="wide"><table class="list"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
