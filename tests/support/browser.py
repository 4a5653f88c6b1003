"""A real Chromium for the tests that look at pages: one that is found, else Debian's package, else Playwright's own.

Nothing of it may reach the network: background services are off, and every name but this machine's leads nowhere.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
)  # fmt: skip


@cache
def chromium() -> str:
    """The path of a Chromium; installs one where there is none, and says how where that cannot be done.

    To be asked before a network namespace is entered: there nothing can be installed.
    """
    found = _found()
    if found is None:
        with Path(tempfile.gettempdir(), f"nephila-tests-chromium-{os.geteuid()}").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # several processes of tests want one; the first installs it for all
            found = _found() or _installed()
    if found is None:
        raise AssertionError("no Chromium: install it (Debian: apt-get install chromium) and run the tests again")
    return found


_QUIETLY = {"DEBIAN_FRONTEND": "noninteractive"}
_PATIENTLY = ("-o", "DPkg::Lock::Timeout=300")


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _installed() -> str | None:
    """Debian's package where that may be installed, else Playwright's own."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        for what in (("update", "-q"), ("install", "-y", "-q", "chromium")):
            command = ["apt-get", *_PATIENTLY, *what]
            subprocess.run(command, check=False, capture_output=True, timeout=600, env={**os.environ, **_QUIETLY})
        if found := _found():
            return found
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False, timeout=600)
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return str(path) if path.exists() else None


@contextmanager
def opened() -> Iterator[Browser]:
    """A browser, ended with the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def shown(browser: Browser, url: str) -> Iterator[Page]:
    """A page with the dashboard that is served there; whatever it complains of, or asks of others, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(url) else None)
    page.goto(url + "/")
    yield page
    context.close()
    assert wrong == []
