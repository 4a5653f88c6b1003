"""How tags, attributes, comments and raw text are spelled: the HTML standard's tokenizer as regular expressions.

Possessive throughout, so that nothing is read twice. A pattern that does not match where its construct begins means
that the text ends inside of it: browsers drop such a rest, and so the reader stops there (13.2.5).
"""

from __future__ import annotations

import re

from .tags import FLAGS, RAW, RCDATA, lowered

_WS = r"\t\n\f\r "
_NAME = rf"[^{_WS}/>][^{_WS}/>=]*+"
_ATTRIBUTE = re.compile(
    rf"""({_NAME}) (?: [{_WS}]*+ = [{_WS}]*+ (?: "([^"]*+)" | '([^']*+)' | ([^{_WS}>"'][^{_WS}>]*+)?+ ) )?+""",
    re.VERBOSE,
)
TAG = re.compile(
    rf"""</?+ ([a-zA-Z][^{_WS}/>]*+)
         ( (?: [{_WS}/]*+ {_NAME}
               (?: [{_WS}]*+ = [{_WS}]*+ (?: "[^"]*+" | '[^']*+' | [^{_WS}>"'][^{_WS}>]*+ | (?=>) )
                 | (?! [{_WS}]*+ = ) ) )*+ )
         ([{_WS}/]*+) >""",
    re.VERBOSE,
)
"""Name, attributes, and what stands between them and the bracket."""
COMMENT = re.compile(r"<!--(?:-?+>|.*?(?:-->|--!>))", re.DOTALL)

_SCRIPT = re.compile(rf"</script[{_WS}/>]|<!--", re.IGNORECASE | re.ASCII)
_ESCAPED_SCRIPT = re.compile(rf"-->|</?script[{_WS}/>]", re.IGNORECASE | re.ASCII)
_TWICE_ESCAPED_SCRIPT = re.compile(rf"-->|</script[{_WS}/>]", re.IGNORECASE | re.ASCII)
_RAW_ENDS = {
    name: re.compile(rf"</{name}[{_WS}/>]", re.IGNORECASE | re.ASCII)
    for name, flags in FLAGS.items()
    if flags & (RAW | RCDATA) and name != "script"
}


def attributes_of(written: str) -> dict[str, str]:
    """The attributes of a tag, their values as written; of two with one name the first counts."""
    attributes: dict[str, str] = {}
    for name, double, single, plain in _ATTRIBUTE.findall(written):
        attributes.setdefault(lowered(name), double or single or plain)
    return attributes


def raw_end(text: str, name: str, position: int) -> int:
    """Where the end tag of an element without tags in it is; the end of the text where there is none."""
    if name == "script":
        return _script_end(text, position)
    match = _RAW_ENDS[name].search(text, position)
    return len(text) if match is None else match.start()


def _script_end(text: str, position: int) -> int:
    while (match := _SCRIPT.search(text, position)) is not None:
        if match[0] != "<!--":
            return match.start()
        position, ended = _behind_escape(text, match.start() + 2)  # its dashes may be those of the end
        if ended:
            return position
    return len(text)


def _behind_escape(text: str, position: int) -> tuple[int, bool]:
    """Where an escape in a script ends, or the script itself, and which of the two."""
    while (match := _ESCAPED_SCRIPT.search(text, position)) is not None:
        if match[0] == "-->":
            return match.end(), False
        if match[0][1] == "/":
            return match.start(), True
        # A script in an escape: its end tag does not end the outer one.
        match = _TWICE_ESCAPED_SCRIPT.search(text, match.end())
        if match is None:
            break
        if match[0] == "-->":
            return match.end(), False
        position = match.end()
    return len(text), True
