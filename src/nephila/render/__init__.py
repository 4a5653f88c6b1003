"""Browsers (J2): a pool of Chromium behind `interfaces.renderer`. Playwright is imported here, and only when needed."""

from .finding import HOW_TO_GET, browser_on, driver_is_there, found_browser
from .lending import BorrowedBrowsers, BrowserLender
from .pool import ChromiumPool
from .shared_shelf import SharedShelf
from .shelf import FolderShelf

__all__ = [
    "HOW_TO_GET",
    "BorrowedBrowsers",
    "BrowserLender",
    "ChromiumPool",
    "FolderShelf",
    "SharedShelf",
    "browser_on",
    "driver_is_there",
    "found_browser",
]
