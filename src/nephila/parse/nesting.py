"""Which elements are open at a place of a page, told from its tags alone.

Browsers repair bad nesting by the rules of the HTML standard (13.2.6), and those rules decide where an anchor ends, and
so what its text is. Here they are followed with a list of open elements and no tree. Two things keep it short. Elements
that the standard calls special are opened and closed by rules that formatting has no part in, so they are followed to
the letter. And formatting elements (`<b>`, `<i>`, ...) that are opened again in later blocks make no difference to any
anchor, but that they take plain elements in them along when they close; unless an anchor is open then: that is a
*doubt*, as is all else that would need the tree: anchors cut in two, references between the cells of a table, HTML
inside of SVG, framesets.

What must stay true: where there is no doubt, anchors begin and end where they do in the standard's tree; each tag costs
at most as much as `DEEPEST` elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .tags import (
    BREAKOUT,
    CELL,
    CLOSES,
    CLOSES_P,
    FLAGS,
    FORMATTING,
    HEADING,
    MARKER,
    PART,
    RAW,
    RCDATA,
    READ,
    SCOPE,
    SELECT,
    SPECIAL,
    TABLE,
    VOID,
)

DEEPEST = 200
"""Open elements; real pages have some thirty, and a page with more is left to the tree."""
MOST_ANCHORS = 8
"""Anchors in anchors; more are left to the tree."""

_MODES = TABLE | CELL | SELECT
_TEXT_POINTS = frozenset({"title", "desc", "foreignobject", "mi", "mo", "mn", "ms", "mtext", "annotation-xml"})
"""Elements of SVG and MathML that hold HTML, or text as HTML does."""
_LIST_STOPS = frozenset({"ol", "ul"})
_ITEM_GOES_ON = frozenset({"address", "div", "p"})
_DEFINITIONS = frozenset({"dd", "dt"})
_NOT_KEPT = frozenset({"html", "head", "body", "frame"})
_NO_MATTER = frozenset({"html", "head", "body", "br"})
_IN_TABLE = frozenset({"style", "script", "input"})
_NOT_IN_SELECT = frozenset(
    {"svg", "math", "table", "select", "input", "keygen", "textarea", "button", "object", "applet", "marquee"}
)


class Doubt(Exception):  # noqa: N818 - no error: the tags alone do not tell
    """What the page means cannot be told from its tags alone."""


@dataclass(slots=True)
class Formatting:
    """The formatting elements since the last marker, as far as they are known."""

    counts: dict[str, int] = field(default_factory=dict)
    """How many of each may be open, or may have to be opened again."""
    again: dict[str, int] = field(default_factory=dict)
    """Of those that were closed by something else than their end tag: behind which place they are opened again."""


@dataclass(slots=True)
class Open:
    """An open element."""

    name: str
    flags: int = 0
    foreign: bool = False
    mode: int = 0
    """The flags of the nearest table, cell or select around it."""
    outside: Formatting | None = None
    """The formatting around it, where it is a marker."""


class Nesting:
    """The open elements of a page, from its start and end tags in their order."""

    def __init__(self, ended: Callable[[int], None]) -> None:
        self._open = [Open("html", SPECIAL | SCOPE)]
        self._paragraphs = 0
        self._table_in_paragraph = False
        """Whether a paragraph that a table began in may be open still: that depends on the document's mode."""
        self._formatting = Formatting()
        self._anchors: list[int] = []
        """Where the anchors stand whose text is wanted."""
        self._ended = ended
        """Called with the number of anchors that are left, when some ended."""
        self.form = False
        """Whether a form is open, as the standard counts."""

    @property
    def foreign(self) -> bool:
        """Whether we are in SVG or MathML."""
        return self._open[-1].foreign

    def want_text(self) -> None:
        """The anchor that was opened last is to be told of when it ends."""
        self._anchors.append(len(self._open) - 1)
        if len(self._anchors) > MOST_ANCHORS:
            raise Doubt

    def close_last(self) -> None:
        """The element that was opened last had a slash at its end, and is foreign: it is closed already."""
        self._cut(len(self._open) - 1)

    def close_all(self) -> None:
        """The page ends here, and with it what is open."""
        self._cut(1)

    def start(self, name: str, flags: int, *, self_closing: bool) -> bool:  # noqa: PLR0911 - a rule each
        """Open an element; returns whether it is one of the document, and not ignored."""
        top = self._open[-1]
        if top.foreign:
            return self._start_foreign(name, flags, self_closing=self_closing)
        if name in _NOT_KEPT:
            return name == "html"
        if top.mode & SELECT:
            if flags & (READ | RCDATA | PART | (RAW if name != "script" else 0)) or name in _NOT_IN_SELECT:
                raise Doubt
            return False
        if flags & PART:
            self._start_part(name, flags)
            return False
        if name == "form" and self.form:
            return False
        if top.mode & TABLE and (counts := self._start_in_table(name, flags)) is not None:
            return counts
        self._start_in_body(name, flags, self_closing=self_closing)
        return True

    def _start_in_table(self, name: str, flags: int) -> bool | None:
        """Between the cells of a table; None for what is to be opened as anywhere else."""
        if name == "form":
            self.form = True
            return True
        if name in _IN_TABLE:
            return False
        if name == "table":
            self._cut_if(self._nearest_table())
        elif flags & READ:
            raise Doubt
        return None

    def _start_foreign(self, name: str, flags: int, *, self_closing: bool) -> bool:
        top = self._open[-1]
        if top.name in _TEXT_POINTS or flags & BREAKOUT or name == "html":
            raise Doubt
        if flags & READ and name not in {"a", "title"}:
            raise Doubt
        if name == "a" or not self_closing:
            self._push(Open(name, SPECIAL | SCOPE if name in _TEXT_POINTS else 0, foreign=True, mode=top.mode))
        return name == "a"

    def _start_in_body(self, name: str, flags: int, *, self_closing: bool) -> None:  # noqa: C901, PLR0912 - a rule each
        if name == "li":
            self._close_item(frozenset({"li"}))
        elif name in _DEFINITIONS:
            self._close_item(_DEFINITIONS)
        if name == "table":
            if self._anchors:
                raise Doubt
            self._table_in_paragraph |= self._paragraphs > 0
        if flags & CLOSES_P and (self._paragraphs or self._table_in_paragraph):
            self._close_paragraph()
        if flags & (VOID | RAW | RCDATA):
            return
        if flags & FORMATTING:
            self._start_formatting(name)
        elif flags & HEADING and self._open[-1].flags & HEADING:
            self._cut(len(self._open) - 1)
        elif name == "button" and (at := self._found("button", SCOPE)):
            self._cut(at)
        elif name == "option" and self._open[-1].name == "option":
            self._cut(len(self._open) - 1)
        elif name == "form":
            self.form = True
        foreign = name in {"svg", "math"}
        if foreign and self_closing:
            return
        mode = flags & _MODES or self._open[-1].mode
        entry = Open(name, flags, foreign, mode)
        if flags & MARKER:
            entry.outside, self._formatting = self._formatting, Formatting()
        self._push(entry)

    def _start_formatting(self, name: str) -> None:
        counts = self._formatting.counts
        if name == "a" and counts.get("a"):
            self._end_formatting("a")
            counts["a"] = 0
            self._formatting.again.pop("a", None)
        elif name == "nobr" and counts.get("nobr"):
            if self._anchors:
                raise Doubt
            self._end_formatting("nobr")
        counts[name] = counts.get(name, 0) + 1

    def _start_part(self, name: str, flags: int) -> None:
        """A row, a cell or another part of a table: what is open in the table and cannot hold it is closed."""
        mode = self._open[-1].mode
        if mode & CELL:
            self._cut(self._cell())
        elif not mode & TABLE:
            return
        table = self._nearest_table()
        if table is None:
            return
        if name in {"td", "th"}:
            self._cut_to(("tr",), table)
        elif name == "tr":
            self._cut_to(("tbody", "thead", "tfoot"), table)
        else:
            self._cut(table + 1)
        if not flags & VOID:
            entry = Open(name, flags, mode=flags & _MODES)
            if flags & MARKER:
                entry.outside, self._formatting = self._formatting, Formatting()
            self._push(entry)

    def end(self, name: str, flags: int) -> None:  # noqa: C901, PLR0912 - a rule each
        """Close what an end tag closes."""
        if self._open[-1].foreign:
            if name in {"p", "br"}:
                raise Doubt
            for at in range(len(self._open) - 1, 0, -1):
                if not self._open[at].foreign:
                    break
                if self._open[at].name == name:
                    self._cut(at)
                    return
        if name in _NO_MATTER:
            return
        if self._open[-1].mode & SELECT:
            self._end_in_select(name)
        elif name == "form":
            self._end_form()
        elif flags & (PART | TABLE):
            self._end_part(name)
        elif flags & FORMATTING:
            self._end_formatting(name)
        elif name == "p":
            self._close_paragraph()
        elif name == "li":
            self._cut_if(self._found("li", SCOPE, _LIST_STOPS))
        elif flags & HEADING:
            self._cut_if(next((at for at in self._scope() if self._open[at].flags & HEADING), None))
        elif flags & CLOSES:
            self._cut_if(self._found(name, SCOPE))
        else:
            self._end_plain(name)

    def _end_in_select(self, name: str) -> None:
        if name == "select":
            self._cut_if(self._nearest(SELECT))
        elif name not in {"option", "optgroup"} and any(entry.name == name for entry in self._open):
            raise Doubt

    def _end_form(self) -> None:
        if not self.form:
            return
        self.form = False
        at = self._found("form", SCOPE)
        if at is not None:
            self._take_out(at)

    def _end_part(self, name: str) -> None:
        mode = self._open[-1].mode
        if not mode & (TABLE | CELL):
            return
        at = self._found(name, 0, frozenset({"table"}))
        if at is None:
            return
        if mode & CELL:
            cell = self._cell()
            if cell < at:
                return
            self._cut(cell)
        if at < len(self._open):
            self._cut(at)

    def _cell(self) -> int:
        """Where the cell stands that we are in. What is apart from it in its formatting, and still open, is a doubt."""
        cell = self._nearest(CELL)
        if cell is None or cell != self._nearest(MARKER):
            raise Doubt
        return cell

    def _end_formatting(self, name: str) -> None:
        counts, again = self._formatting.counts, self._formatting.again
        if not counts.get(name):
            self._end_plain(name)
            return
        counts[name] -= 1
        at = self._formatting_element(name)
        kept = self._anchors[-1] if self._anchors else -1
        if kept > at:
            raise Doubt
        if not at:  # it is open again behind the place where it was closed, if anything is open there
            at = again.get(name, len(self._open))
        last_special = next((place for place in range(len(self._open) - 1, at - 1, -1) if self._is_special(place)), 0)
        if kept == at and last_special:
            raise Doubt
        self._cut(last_special + 1 if last_special else at)
        # An element is cut in two at each special one in it: those stay open, and the formatting between them.
        for place in range(last_special - 1, at - 1, -1):
            entry = self._open[place]
            if not entry.flags & SPECIAL and (entry.name == name or not entry.flags & FORMATTING):
                self._take_out(place)
        if not counts[name]:
            again.pop(name, None)

    def _is_special(self, place: int) -> bool:
        return self._open[place].flags & SPECIAL != 0

    def _formatting_element(self, name: str) -> int:
        """Where the last formatting element of that name since the last marker stands; 0 for none."""
        for at in range(len(self._open) - 1, 0, -1):
            entry = self._open[at]
            if entry.name == name and not entry.foreign:
                return at
            if entry.flags & MARKER:
                break
        return 0

    def _end_plain(self, name: str) -> None:
        for at in range(len(self._open) - 1, 0, -1):
            entry = self._open[at]
            if entry.name == name and not entry.foreign:
                if name == "noscript" and at == 1 < len(self._open) - 1:
                    raise Doubt  # in a head it was left for the body by what is open in it
                self._cut(at)
                return
            if entry.flags & SPECIAL:
                return

    def _close_item(self, names: frozenset[str]) -> None:
        for at in range(len(self._open) - 1, 0, -1):
            entry = self._open[at]
            if entry.name in names and not entry.foreign:
                self._cut(at)
                return
            if entry.flags & SPECIAL and entry.name not in _ITEM_GOES_ON:
                return

    def _close_paragraph(self) -> None:
        if self._table_in_paragraph and self._anchors:
            raise Doubt
        self._cut_if(self._found("p", SCOPE, frozenset({"button"})))

    def _scope(self) -> range:
        """The places of the elements in scope, the last one first."""
        at = len(self._open) - 1
        while not self._open[at].flags & SCOPE:
            at -= 1
        return range(len(self._open) - 1, at, -1)

    def _found(self, name: str, stop: int, stops: frozenset[str] = frozenset()) -> int | None:
        """Where the last element of that name stands, if nothing that stops the look stands before it."""
        for at in range(len(self._open) - 1, 0, -1):
            entry = self._open[at]
            if entry.name == name and not entry.foreign:
                return at
            if entry.flags & stop or (entry.name in stops and not entry.foreign):
                return None
        return None

    def _nearest(self, flag: int) -> int | None:
        return next((at for at in range(len(self._open) - 1, 0, -1) if self._open[at].flags & flag), None)

    def _nearest_table(self) -> int | None:
        return self._found("table", 0)

    def _cut_to(self, names: tuple[str, ...], table: int) -> None:
        """Close what is open behind the last element of these names in the table, or behind the table."""
        for at in range(len(self._open) - 1, table, -1):
            if self._open[at].name in names and not self._open[at].foreign:
                self._cut(at + 1)
                return
        self._cut(table + 1)
        for name in ("tbody", "tr") if "tr" in names else ("tbody",):
            self._push(Open(name, FLAGS[name], mode=TABLE))

    def _push(self, entry: Open) -> None:
        self._open.append(entry)
        self._paragraphs += entry.name == "p"
        if len(self._open) > DEEPEST:
            raise Doubt

    def _cut_if(self, at: int | None) -> None:
        if at is not None:
            self._cut(at)

    def _cut(self, at: int) -> None:
        """Close the element at that place, and all in it."""
        for entry in reversed(self._open[at:]):
            self._paragraphs -= entry.name == "p"
            if entry.outside is not None:
                self._formatting = entry.outside
            elif entry.flags & FORMATTING and not entry.foreign:
                self._formatting.again[entry.name] = at
        del self._open[at:]
        again = self._formatting.again
        for name, place in again.items():
            again[name] = min(place, at)
        if self._anchors and self._anchors[-1] >= at:
            while self._anchors and self._anchors[-1] >= at:
                self._anchors.pop()
            self._ended(len(self._anchors))

    def _take_out(self, at: int) -> None:
        """Close the element at that place, and leave open what is in it."""
        del self._open[at]
        again = self._formatting.again
        for name, place in again.items():
            again[name] = place - (place > at)
        self._anchors = [place - (place > at) for place in self._anchors]
