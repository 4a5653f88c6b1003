"""Pages as files in a folder, by host and path, with a list that says which file is which URL."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from .columns import moment
from .document import Document
from .lines import line_of
from .names import INDEX, another, path_of

_NOT_DIGITS = re.compile(r"\D")
_quoted = msgspec.json.Encoder().encode


class PageTree:
    """Files of one form below a folder that is empty."""

    def __init__(self, root: Path, ending: str, content: Callable[[Document], bytes], *, dated: bool = False) -> None:
        """`dated`: names tell the time of the capture, as there may be several of a URL."""
        self._folder = os.fsencode(root)
        self._ending = ending
        self._content = content
        self._dated = dated
        self._index: BinaryIO = (root / INDEX).open("xb")

    def add(self, document: Document) -> None:
        """As the protocol."""
        row, ending = document.row, self._ending
        if self._dated:
            ending = f"@{_NOT_DIGITS.sub('', moment(row.at))[:14]}{ending}"
        path = path_of(row.url, ending)
        if not self._written(path, document):
            path = another(path, row.url, row.at, ending)
            self._written(path, document)
        line: dict[str, object] = {
            "file": "/".join(path),
            "url": row.url,
            "status": row.status,
            "fetched_at": moment(row.at),
            "content_type": row.content_type,
            "charset": document.charset,
            "title": document.title,
            "language": document.language,
            "rendered": document.rendered,
            "sha256": document.sha256,
        }
        self._index.write(line_of(line))

    def _written(self, path: tuple[str, ...], document: Document) -> bool:
        """Write a file; False where there is one of that name. No name that we make leads out of the folder.

        Names are UTF-8 whatever the locale is: a locale may not know their characters.
        """
        file = b"/".join([self._folder, *(part.encode() for part in path)])
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            os.makedirs(file.rpartition(b"/")[0], exist_ok=True)  # noqa: PTH103 - of bytes
            return self._written(path, document)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(self._content(document))
        return True

    def close(self) -> None:
        """As the protocol."""
        self._index.close()


def html_file(document: Document) -> bytes:
    """The body as it is."""
    return document.body


def text_file(document: Document) -> bytes:
    """The main text."""
    return f"{document.text()}\n".encode("utf-8", "replace")


def markdown_file(document: Document) -> bytes:
    """The main content, below a few lines that say what it is (YAML, whose strings JSON's are)."""
    head = {
        "url": document.row.url,
        "title": document.title,
        "language": document.language,
        "fetched_at": moment(document.row.at),
    }
    lines = "".join(f"{name}: {_quoted(value).decode()}\n" for name, value in head.items() if value)
    return f"---\n{lines}---\n\n{document.markdown()}\n".encode("utf-8", "replace")
