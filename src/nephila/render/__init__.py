"""Browsers (J2): a pool of Chromium behind `interfaces.renderer`. Playwright is imported here, and only when needed."""

from .finding import HOW_TO_GET, browser_on, driver_is_there, found_browser
from .pool import ChromiumPool

__all__ = ["HOW_TO_GET", "ChromiumPool", "browser_on", "driver_is_there", "found_browser"]
