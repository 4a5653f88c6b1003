"""Passwords for the servers of a fleet: from a file or from the environment, and from nowhere else.

A URL that is a setting is written into the crawl directory and shown by `config show`, so one with a password in it is
refused. What is found is held in memory as a `Secret`, which shows nothing when it is printed. Processes that read what
strangers wrote (browsers, readers of documents) are started without what of it stands in the environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from nephila.model.errors import UsageError

_TELLING = re.compile(r"token|secret|passw|passphrase|credential|auth|key", re.IGNORECASE)
_WITH_USER = re.compile(r"://[^/?#\s]*@")


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without the variables whose name tells of a secret, or whose URL names a user."""
    return {
        name: value for name, value in environ.items() if not _TELLING.search(name) and not _WITH_USER.search(value)
    }


class Secret:
    """A text that is not shown by accident."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one who sends it."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "Secret(...)" if self._text else "Secret()"


def find_secret(file: str, environ: Mapping[str, str], variables: tuple[str, ...], setting: str) -> Secret:
    """The first line of `file`, else the first of `variables` that is set; empty where there is none."""
    if file:
        try:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            told = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise UsageError(f"the password file {file} ({setting}) cannot be read: {told}", hint="mend it") from error
        if not lines or not lines[0]:
            raise UsageError(f"the password file {file} ({setting}) is empty", hint="its first line is the password")
        return Secret(lines[0])
    return Secret(next((environ[name] for name in variables if environ.get(name)), ""))


def split_address(url: str, schemes: tuple[str, ...], setting: str) -> SplitResult:
    """The parts of a server's URL; raises `UsageError` where it is none of ours, or tells a password."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - a port that is no number is told here
    except ValueError as error:  # which quotes what may be a part of a password
        raise UsageError(f"{setting} is not a URL", hint=f"write {schemes[0]}://HOST:PORT/...") from error
    if parts.password is not None:
        raise UsageError(
            f"{setting} has a password in it, which would be written into files and shown",
            hint="take it out of the URL, and put it into a file or the environment: see docs/settings.md",
        )
    if parts.scheme not in schemes:
        raise UsageError(
            f"{setting} begins with {parts.scheme or 'no scheme'}, not with {' or '.join(schemes)}",
            hint=f"write {schemes[0]}://HOST:PORT/...",
        )
    return parts
