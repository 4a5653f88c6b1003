"""Documents to be written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from nephila.export import Document
from nephila.model.page import Link
from nephila.testing.contracts.catalogue import sample_row

MakeDocument = Callable[..., Document]


@pytest.fixture
def document() -> MakeDocument:
    """Makes one of a URL; everything can be said otherwise."""

    def make(url: str = "https://spiders.example/a", **more: object) -> Document:
        known = Document(
            row=replace(sample_row(1, url), simhash=-2),
            headers=[("content-type", "text/html"), ("x", "1"), ("x", "2")],
            body=b"<p>Silk.",
            media_type="text/html",
            charset="UTF-8",
            title="Silk \U0001f577",
            language="en",
            links=[
                Link("https://spiders.example/b", "a", "nofollow ugc", "the other"),
                Link("https://x.example/", "link", "", ""),
            ],
            nofollow=False,
            noindex=False,
            noarchive=True,
            rendered=False,
            last_seen_at=1_767_225_700_000,
            extracted=[("shop.price", "3")],
            text=lambda: "Silk.",
            markdown=lambda: "**Silk.**",
        )
        return replace(known, **more)  # type: ignore[arg-type]  # checked by the fields

    return make
