"""What somebody wants to have exported."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from nephila.export import Selection
from nephila.model.noun import noun


class Form(StrEnum):
    """What it is to become."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    LINKS = "links"
    WACZ = "wacz"

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of files."""
        return self in {Form.TEXT, Form.MARKDOWN, Form.HTML}


class View(StrEnum):
    """Which document of a page that a browser has shown (J4)."""

    RAW = "raw"
    """What the server sent."""
    RENDERED = "rendered"
    """What its scripts made of it; of pages that no browser has shown, what the server sent."""


@noun
class ExportOrder:
    """All of it."""

    form: Form
    to: Path | None
    """None: standard output."""
    selection: Selection
    view: View
    replace: bool = False
    limit: int = 0
    """At most so many; 0: all."""

    @property
    def as_parquet(self) -> bool:
        """Whether it is a table."""
        return self.form is Form.PARQUET or (
            self.form is Form.LINKS and self.to is not None and self.to.suffix.lower() == ".parquet"
        )

    @property
    def is_packed(self) -> bool:
        """Whether lines go under gzip."""
        return self.to is not None and self.to.suffix.lower() == ".gz"
