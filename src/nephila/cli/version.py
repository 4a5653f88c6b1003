"""Which version this is: of the checkout that it runs from, or of the installed package."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
"""Beside `src` in a checkout; an installed package has none there."""


def version() -> str:
    """The version, ``unknown`` where neither a checkout nor an installation tells."""
    return _of_checkout(PROJECT) or _of_installation()


def _of_checkout(project: Path) -> str:
    try:
        text = project.read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r'^name = "nephila"\nversion = "([^"]+)"', text, re.MULTILINE)
    return found[1] if found else ""


def _of_installation() -> str:
    import importlib.metadata  # noqa: PLC0415 - 30 ms that a checkout need not spend

    try:
        return importlib.metadata.version("nephila")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
