"""What the file of a page is called: readable, and safe on any file system, whatever the URL says.

The first folder is the host, the others follow the path. Whatever a file system could take amiss is taken out: dots
that lead upwards, separators, control and reserved characters, names that DOS had for devices, spaces and dots at an
end, lengths. Names are in lower case and in one normal form of Unicode, so that two of them differ everywhere or
nowhere; who comes second gets a part of a hash. Files always carry the form's ending and folders never do, so that no
page stands in the way of another one's folder.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256
from urllib.parse import unquote_to_bytes, urlsplit

INDEX = "index.jsonl"
"""The list that says which file is which URL."""

LONGEST = 80
"""Bytes of a name: file systems take 255 of one, and archives and old tools some 260 of a path."""
LONGEST_PATH = 180
HASH_DIGITS = 12

_UNSAFE = re.compile(r"""[\x00-\x1f\x7f-\x9f<>:"/\\|?*\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]""")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.DOTALL)
_PAGE_ENDINGS = (".html", ".htm", ".xhtml", ".php", ".asp", ".aspx", ".jsp")
_HTML_ENDINGS = (".html", ".htm", ".xhtml")


def mark(url: str) -> str:
    """What tells a URL from others with the same name."""
    return sha256(url.encode("utf-8", "replace")).hexdigest()[:HASH_DIGITS]


def safe_name(text: str, longest: int = LONGEST) -> str:
    """A text as the name of a file or folder; what does not fit is cut, and a part of its hash put in its place."""
    name = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    name = _UNSAFE.sub("_", name).strip(" ").rstrip(". ") or "_"
    if name.startswith(".") or _DEVICES.fullmatch(name):
        name = f"_{name}"
    data = name.encode("utf-8", "replace")
    if len(data) <= longest:
        return data.decode()
    kept = data[: longest - HASH_DIGITS - 1].decode("utf-8", "ignore").rstrip(". ")
    return f"{kept}~{mark(text)}"


def _decoded(segment: str) -> str:
    """A part of a path as people read it, where it is text at all."""
    try:
        return unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        return segment


def path_of(url: str, ending: str) -> tuple[str, ...]:
    """Folders and name of the file of a page; `ending` with its dot."""
    try:
        parts = urlsplit(url)
        host, port, path, query = parts.hostname or "", parts.port, parts.path, parts.query
    except ValueError:
        host, port, path, query = "", None, "/", url
    site = safe_name(f"{host}_{port}" if port is not None else host)
    *folders, last = [_decoded(one) for one in path.removeprefix("/").split("/")]
    stem = _stem(last, ending)
    if query:
        stem = f"{stem}~{mark(url)}"
    found = (_folder(site, ending), *(_folder(safe_name(one), ending) for one in folders))
    if sum(len(one.encode()) + 1 for one in found) > LONGEST_PATH:
        return (found[0], f"_{mark(url)}{ending}")
    return (*found, safe_name(stem, LONGEST - len(ending)) + ending)


def _stem(last: str, ending: str) -> str:
    """The last part of a path without the ending that it gets again."""
    if not last:
        return "index"
    lowered = last.lower()
    for known in _HTML_ENDINGS if ending == ".html" else _PAGE_ENDINGS:
        if lowered.endswith(known) and len(last) > len(known):
            return last[: -len(known)]
    return last


def _folder(name: str, ending: str) -> str:
    return f"{name}_" if name.endswith((ending, ".jsonl")) else name


def another(path: tuple[str, ...], url: str, at: int, ending: str) -> tuple[str, ...]:
    """The name of a page whose own is taken."""
    stem = path[-1].removesuffix(ending)
    return (*path[:-1], safe_name(stem, LONGEST - len(ending) - HASH_DIGITS - 1) + f"~{mark(f'{at} {url}')}{ending}")
