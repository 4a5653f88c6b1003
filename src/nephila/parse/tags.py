"""What the HTML standard says of each tag name, as flags, for a reader that builds no tree.

The flags are the standard's own categories (special, formatting, void, scope markers, ...) with a few of ours: which
tags break a run of text into blocks, which hold navigation, which are read for links. The native scanner has the same
table: `tools/scan_tables.py` writes it into `native/scan_tags.h`, and a test holds the two together.
"""

from __future__ import annotations

SPECIAL = 1
"""Elements that end tags of plain elements do not look behind."""
FORMATTING = 1 << 1
"""Elements that are opened again in the next block when a block's end closes them."""
VOID = 1 << 2
CLOSES_P = 1 << 3
"""An open paragraph ends before them."""
BREAK = 1 << 4
"""Text before and after them belongs to different blocks."""
RAW = 1 << 5
"""Their content is text without tags and without character references."""
RCDATA = 1 << 6
"""Their content is text without tags."""
SCOPE = 1 << 7
"""Most end tags do not look behind them."""
MARKER = 1 << 8
"""Formatting inside them is apart from formatting outside."""
HEADING = 1 << 9
READ = 1 << 10
"""They may hold a reference, or something else that a crawler wants to know."""
BREAKOUT = 1 << 11
"""They end foreign content (SVG, MathML)."""
TABLE = 1 << 12
"""What stands in them outside of cells is moved before the table."""
CELL = 1 << 13
PART = 1 << 14
"""They are ignored outside of tables."""
FRAME = 1 << 15
"""They stand around a page's content: navigation and the like."""
CLOSES = 1 << 16
"""Their end tag closes whatever is open inside them."""
SELECT = 1 << 17


def _names(flag: int, names: str) -> dict[str, int]:
    return dict.fromkeys(names.split(), flag)


_GROUPS = (
    _names(
        SPECIAL,
        "address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup"
        " dd details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head"
        " header hgroup hr html iframe img input keygen li link listing main marquee menu meta nav noembed noframes"
        " noscript object ol p param plaintext pre script search section select source style summary table tbody td"
        " template textarea tfoot th thead title tr track ul wbr xmp",
    ),
    _names(FORMATTING, "a b big code em font i nobr s small strike strong tt u"),
    _names(VOID, "area base basefont bgsound br col embed hr image img input keygen link meta param source track wbr"),
    _names(
        CLOSES_P,
        "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header"
        " hgroup main menu nav ol p search section summary ul h1 h2 h3 h4 h5 h6 pre listing form li dd dt table hr xmp",
    ),
    _names(
        BREAK,
        "address article aside blockquote body button caption center dd details dialog dir div dl dt fieldset"
        " figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li"
        " listing main menu nav noscript object ol optgroup option p pre script search section select style summary"
        " table tbody td template textarea tfoot th thead title tr ul xmp",
    ),
    _names(RAW, "script style xmp iframe noembed noframes"),
    _names(RCDATA, "title textarea"),
    _names(SCOPE, "applet caption html table td th marquee object template select"),
    _names(MARKER, "applet caption td th marquee object"),
    _names(HEADING, "h1 h2 h3 h4 h5 h6"),
    _names(READ, "a area link iframe form meta base title img image source"),
    _names(
        BREAKOUT,
        "b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img li listing"
        " menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var",
    ),
    _names(TABLE, "table tbody thead tfoot tr colgroup"),
    _names(CELL, "td th caption"),
    _names(PART, "caption col colgroup tbody td tfoot th thead tr"),
    _names(FRAME, "nav footer aside"),
    _names(
        CLOSES,
        "address article aside blockquote button center details dialog dir div dl fieldset figcaption figure footer"
        " header hgroup listing main menu nav ol pre search section summary ul applet marquee object dd dt",
    ),
    _names(SELECT, "select"),
)


def _flags() -> dict[str, int]:
    flags: dict[str, int] = {}
    for group in _GROUPS:
        for name, flag in group.items():
            flags[name] = flags.get(name, 0) | flag
    return flags


FLAGS = _flags()
"""By tag name; a name that is not here has no flags."""

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def lowered(name: str) -> str:
    """A tag or attribute name as the standard spells it: only ASCII letters have a lower case."""
    return name.lower() if name.isascii() else name.translate(_LOWER)
