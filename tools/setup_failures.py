"""Why `.venv` could not be made, told to people in one sentence with what to do.

pip and venv fail with pages of text made for their authors. The table below reads the few reasons that matter out of
it; anything else is answered with the last line and the name of the log. Used by `bootstrap`, so standard library only.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path


class SetupError(Exception):
    """`.venv` could not be made: `str(error)` is the sentence."""

    def __init__(self, message: str, *, untouched: bool = False) -> None:
        super().__init__(message)
        self.untouched = untouched
        """The environment is as it was: pip fetches and checks everything before it installs anything."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One way to fail: how it shows in the output, and what is said. `{what}` is the pattern's group of that name."""

    pattern: str
    sentence: str
    untouched: bool = False


DISK_FULL = Reason(
    r"No space left on device|Disk quota exceeded|\[Errno (28|122)\]",
    "The disk is full: free about 300 MB for {directory} and in the temporary directory (TMPDIR), then start again.",
)
NOT_WRITABLE = Reason(
    r"Permission denied|Operation not permitted|Read-only file system|\[Errno (1|13|30)\]",
    "{directory} cannot be written: make it writable for you, or copy the checkout to a place that is.",
)
HASH_MISMATCH = Reason(
    r"THESE PACKAGES DO NOT MATCH THE HASHES",
    "A downloaded package is not the one that was locked (hash mismatch), so nothing was installed: try again with "
    "PIP_NO_CACHE_DIR=1; if it stays, the package index or something on the way to it changes files.",
    untouched=True,
)
BAD_CERTIFICATE = Reason(
    r"CERTIFICATE_VERIFY_FAILED",
    "The package index shows a certificate that is not trusted: name the certificates of your network with "
    "PIP_CERT=FILE, then start again.",
    untouched=True,
)
NO_NETWORK = Reason(
    r"NewConnectionError|ConnectTimeoutError|NameResolutionError|ReadTimeoutError|ProxyError|Max retries exceeded"
    r"|Temporary failure in name resolution|Network is unreachable|RemoteDisconnected|Connection refused"
    r"|Name or service not known|IncompleteRead|Connection reset|Could not fetch URL",
    "The package index cannot be reached: check the network, or point pip to an index or proxy that can be "
    "(PIP_INDEX_URL, PIP_PROXY), then start again.",
    untouched=True,
)
NO_WHEEL = Reason(
    r"(No matching distribution found for|Could not find a version that satisfies the requirement) (?P<what>[^\s(]+)",
    "The package index has no {what} ready for Python {version} on {platform}: use CPython 3.11 to 3.14 on Linux "
    "x86-64 (name one with NEPHILA_PYTHON=/path/to/python), or an index that has it.",
    untouched=True,
)

REASONS = (DISK_FULL, HASH_MISMATCH, BAD_CERTIFICATE, NO_NETWORK, NO_WHEEL, NOT_WRITABLE)
"""In the order in which they are looked for: an index out of reach also has no matching distribution."""


def explain_output(output: str, directory: Path, log: Path) -> SetupError:
    """The reason of a failed step, read from what it printed."""
    for reason in REASONS:
        if match := re.search(reason.pattern, output):
            sentence = reason.sentence.format(
                directory=directory,
                what=match.groupdict().get("what"),
                version=_version(),
                platform=f"{os.uname().sysname} {os.uname().machine}",
            )
            return SetupError(f"{sentence} Details: {log}", untouched=reason.untouched)
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no output")
    return SetupError(f"Setting up {directory} failed: {last} Details: {log}")


def explain_os_error(error: OSError, directory: Path) -> SetupError:
    """The reason why our own work on files failed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SetupError(DISK_FULL.sentence.format(directory=directory))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return SetupError(NOT_WRITABLE.sentence.format(directory=directory))
    return SetupError(f"Setting up {directory} failed: {error}")


def venv_missing(python: str) -> SetupError:
    """Debian's Python without its -venv package, and without pip to help itself with."""
    return SetupError(
        f"{python} cannot make environments, its venv or ensurepip module is missing: install it (Debian, Ubuntu: apt "
        f"install python{_version()}-venv), or name another Python with NEPHILA_PYTHON=/path/to/python."
    )


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
