from __future__ import annotations

from collections.abc import Callable

import pytest

from nephila.model.page import Page
from nephila.parse import parse_html

Reader = Callable[..., Page]


@pytest.fixture
def read() -> Reader:
    """Parse a page at http://site.example/dir/page, given as text."""

    def parsed(html: str, **options: object) -> Page:
        return parse_html(
            html.encode(),
            "http://site.example/dir/page",
            "text/html; charset=utf-8",
            agent="nephila",
            **options,  # type: ignore[arg-type]  # the tests pass what parse_html takes
        )

    return parsed
