"""Which Chromium there is on this machine: one that was named, one that is installed, or Playwright's own."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRIVER = "playwright"
"""What drives browsers: an extra of the package, because most crawls need none."""
_DOWNLOADED = ("chromium-*/chrome-linux/chrome", "chromium-*/chrome-linux64/chrome")

HOW_TO_GET = (
    "Install one (Debian: apt-get install chromium), or let Playwright download its own"
    " (python -m playwright install chromium)."
)


def driver_is_there() -> bool:
    """Whether the extra is installed."""
    return find_spec(DRIVER) is not None


def browser_on(executable: str = "") -> str | None:
    """The path of a Chromium: the named one, else one that is installed, else one that Playwright has downloaded."""
    if executable:
        return shutil.which(executable)
    installed = next((path for name in NAMES if (path := shutil.which(name))), None)
    return installed or _downloaded()


def found_browser(executable: str = "") -> str | None:
    """The same, where it can be used as well."""
    return browser_on(executable) if driver_is_there() else None


def _downloaded() -> str | None:
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    found = sorted(path for pattern in _DOWNLOADED for path in folder.glob(pattern) if os.access(path, os.X_OK))
    return str(found[-1]) if found else None
