"""Writes `native/scan_*.h` from the tables of `nephila.parse`: what the native scanner and its twin share.

Tags and their flags, character references, the words of the calendar and of languages, limits. Run it after a change to
one of them; a test compares the files with what this would write.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))

from nephila.parse import characters, features, gather, language, main, nesting, prose, scan, tags, walk, words  # noqa: E402

_NAMED_IN_CODE = (
    "svg math title desc foreignobject mi mo mn ms mtext annotation-xml option optgroup datalist dialog image"
)
"""Names that the code asks for and that have no flags."""
_LIMITS = {
    "DEEPEST": nesting.DEEPEST,
    "MOST_ANCHORS": nesting.MOST_ANCHORS,
    "MAX_TAGS": scan.MAX_TAGS,
    "MAX_ANCHOR_TEXT": gather.MAX_ANCHOR_TEXT,
    "MAX_REFERENCES": walk.MAX_REFERENCES,
    "MAX_METAS": walk.MAX_METAS,
    "MAX_TEXT": walk.MAX_TEXT,
    "MAX_TITLE": walk.MAX_TITLE,
    "MAX_WORDS": prose.MAX_WORDS,
    "LEAST_BLOCK": main.LEAST_BLOCK,
    "LINK_SHARE": main.LINK_SHARE,
    "LOOSE_LINK_SHARE": main.LOOSE_LINK_SHARE,
    "LEAST_TEXT": main.LEAST_TEXT,
    "LITTLE_TEXT": main.LITTLE_TEXT,
    "LINKS_OVER_TEXT": main.LINKS_OVER_TEXT,
    "LEAST_WORDS": features.LEAST_WORDS,
    "PLACES": features.PLACES,
    "LOOK_WORDS": language.LOOK_WORDS,
    "LEAST_HITS": language.LEAST_HITS,
    "LEAST_SHARE": language.LEAST_SHARE,
    "LONGEST_LEGACY": characters.LONGEST_LEGACY,
    "LONGEST_JOINED": words.LONGEST_JOINED,
}
_FACTORS = {
    "SEED": words.SEED,
    "FACTOR": words.FACTOR,
    "LAST_FACTOR": words.LAST_FACTOR,
    "RUN_FIRST": features.RUN_FACTORS[0],
    "RUN_SECOND": features.RUN_FACTORS[1],
    "RUN_THIRD": features.RUN_FACTORS[2],
}
_FLAGS = (
    "SPECIAL FORMATTING VOID CLOSES_P BREAK RAW RCDATA SCOPE MARKER HEADING READ BREAKOUT TABLE CELL PART FRAME CLOSES"
    " SELECT"
)
_SEMICOLON = ";"


def name_key(name: str) -> int:
    """What the native scanner knows a name by: its bytes where they are eight at most, else their hash."""
    written = name.encode()
    return int.from_bytes(written, "little") if len(written) <= 8 else words.word_hash(written)


def _slots(entries: dict[int, str], bits: int) -> list[str]:
    """An open-addressing table: each entry in the first free slot from the one that its key names."""
    slots: dict[int, str] = {}
    for key, entry in entries.items():
        slot = (key * words.FACTOR & words.MASK) >> 64 - bits
        while slot in slots:
            slot = (slot + 1) % (1 << bits)
        slots[slot] = entry
    return [f"[{slot}] = {entry}" for slot, entry in sorted(slots.items())]


def _lines(items: Iterable[str]) -> str:
    """Items with commas between them, as many in a line as fit."""
    lines = textwrap.wrap(", ".join(item.replace(" ", "\0") for item in items), 116)
    return "".join(f"    {line}\n".replace("\0", " ") for line in lines)


def _array(kind: str, name: str, items: Iterable[str], size: str = "") -> str:
    return f"static const {kind} {name}[{size}] = {{\n{_lines(items)}}};\n"


def _enum(names: Iterable[str]) -> str:
    return f"enum {{\n{_lines(names)}}};\n"


def _tags() -> list[str]:
    names = sorted({*tags.FLAGS, *_NAMED_IN_CODE.split()})
    formatting = [name for name in names if tags.FLAGS.get(name, 0) & tags.FORMATTING]
    identity = {name: f"TAG_{name.upper().replace('-', '_')}" for name in names}
    entries = {
        name_key(name): f"{{{name_key(name):#x}u, {identity[name]}, {tags.FLAGS.get(name, 0):#x}}}" for name in names
    }
    return [
        _enum(["TAG_OTHER", *identity.values(), "TAG_COUNT"]),
        f"enum {{ FORMATTING_COUNT = {len(formatting)}, TAG_SLOT_BITS = 9 }};\n",
        _array(
            "unsigned char",
            "FORMATTING_PLACE",
            (f"[{identity[name]}] = {place}" for place, name in enumerate(formatting)),
            "TAG_COUNT",
        ),
        "struct tag_entry {\n    uint64_t key;\n    uint16_t tag;\n    uint32_t flags;\n};\n",
        _array("struct tag_entry", "TAGS", _slots(entries, 9), "1 << TAG_SLOT_BITS"),
    ]


def _references() -> list[str]:
    every = {name + _SEMICOLON: value for name, value in characters.NAMED.items()} | characters.LEGACY
    entries = {}
    for name, value in every.items():
        first, second = ord(value[0]), ord(value[1]) if len(value) == 2 else 0
        key = words.word_hash(name.encode())
        entries[key] = f"{{{key:#x}u, {first:#x}, {second:#x}}}"
    assert len(entries) == len(every)  # noqa: S101 - the hash tells all names apart
    return [
        "enum { REFERENCE_SLOT_BITS = 13, LONGEST_REFERENCE = " + str(max(map(len, every)) - 1) + " };\n",
        "struct reference_entry {\n    uint64_t key;\n    uint32_t first, second;\n};\n",
        _array("struct reference_entry", "REFERENCES", _slots(entries, 13), "1 << REFERENCE_SLOT_BITS"),
        _array("uint16_t", "C1", (f"{characters.C1.get(code, code):#x}" for code in range(0x80, 0xA0))),
    ]


def _words() -> list[str]:
    calendar = {words.word_hash(word.encode()): "" for word in sorted(prose.CALENDAR_WORDS)}
    masked = {key: f"{{{key:#x}u, {mask:#x}}}" for key, mask in language.TABLE.items()}
    dated = {key: f"{key:#x}u" for key in calendar}
    return [
        "enum { CALENDAR_SLOT_BITS = 8, LANGUAGE_SLOT_BITS = 11 };\n",
        _array("uint64_t", "CALENDAR", _slots(dated, 8), "1 << CALENDAR_SLOT_BITS"),
        "struct language_entry {\n    uint64_t key;\n    uint32_t mask;\n};\n",
        _array("struct language_entry", "COMMON_WORDS", _slots(masked, 11), "1 << LANGUAGE_SLOT_BITS"),
        _array("char *const", "LANGUAGES", (f'"{name}"' for name in language.LANGUAGES)),
        f"enum {{ LANGUAGE_COUNT = {len(language.LANGUAGES)} }};\n",
        _array("uint32_t", "ALONE", (f"{{{first:#x}, {last:#x}}}" for first, last in words.ALONE), "][2"),
        _array("uint32_t", "JOINING", (f"{{{first:#x}, {last:#x}}}" for first, last in words.JOINING), "][2"),
        _array("uint32_t", "SIGNS", (f"{{{first:#x}, {last:#x}}}" for first, last in words.SIGNS), "][2"),
        _array("uint32_t", "UNSEEN", (f"{code:#x}" for code in words.UNSEEN)),
    ]


def header(part: str) -> str:
    """The text of one header: `tags`, `references` or `words`, or the limits that all share."""
    parts = {"tags": _tags, "references": _references, "words": _words, "limits": _limits}
    title = "/* Written by tools/scan_tables.py from the tables of nephila.parse: change those. */\n"
    return title + "\n".join(parts[part]())


def _limits() -> list[str]:
    return [
        "enum {\n" + "".join(f"    {name} = {value},\n" for name, value in _LIMITS.items()) + "};\n",
        "".join(f"#define {name} UINT64_C({value:#x})\n" for name, value in _FACTORS.items()),
        "enum {\n" + "".join(f"    {name} = {getattr(tags, name):#x},\n" for name in _FLAGS.split()) + "};\n",
    ]


PARTS = ("limits", "tags", "references", "words")


def path_of(part: str) -> Path:
    """Where a header is."""
    return ROOT / "native" / f"scan_{part}.h"


def main_program() -> None:
    """Write all headers."""
    for part in PARTS:
        path_of(part).write_text(header(part), encoding="utf-8")


if __name__ == "__main__":
    main_program()
