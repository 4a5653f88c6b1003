"""What is not to be asked for any more, by a person's word (T7)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit, urlunsplit

from nephila.model.errors import UsageError
from nephila.model.policy import Block
from nephila.urls import resolve

EXACTLY = "$"
"""At the end of a URL: this one and no other. Where a URL really ends so, write %24."""

_AFTER_HOST = re.compile(r"[/\\?]")
_NO_NAME = re.compile(r"[/\\?#@:* ]")
_PORT = re.compile(r"([^:\[\]]+|\[[^\]]*\]):\d*")
_MORE = "x"
"""URLs go on behind their beginning: with that in its place, a dot at its end is no segment that leads elsewhere."""


class Blocklist:
    """Blocks, ready to be asked. A name blocks itself and all below it; a URL what begins so, with a $ only itself."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self._names: dict[str, Block] = {}
        self._prefixes: list[Block] = []
        self._exact: dict[str | bytes, Block] = {}
        for block in blocks:
            if "://" in block.pattern and block.pattern.endswith(EXACTLY):
                self._exact[block.pattern.removesuffix(EXACTLY)] = block
                if block.fingerprint:
                    self._exact[block.fingerprint] = block
            elif "://" in block.pattern:
                self._prefixes.append(block)
            else:
                self._names[block.pattern] = block

    def __bool__(self) -> bool:
        return bool(self._names or self._prefixes or self._exact)

    def of_host(self, host: str) -> Block | None:
        """The block that a whole host is under."""
        name = host
        while name:
            block = self._names.get(name)
            if block is not None:
                return block
            name = name.partition(".")[2]
        return None

    def of_url(self, url: str, fingerprint: bytes = b"") -> Block | None:
        """The block that forbids a URL by its beginning, or this very one, however it is spelled."""
        if self._exact and (block := self._exact.get(fingerprint) or self._exact.get(url)) is not None:
            return block
        return next((block for block in self._prefixes if url.startswith(block.pattern)), None)

    def find(self, host: str, url: str, fingerprint: bytes = b"") -> Block | None:
        """The block that forbids a URL."""
        return self.of_host(host) or self.of_url(url, fingerprint)


def check_pattern(pattern: str) -> str:
    """A pattern in the form in which it is kept; UsageError where it means nothing.

    That is the spelling that URLs and hosts have here: what is written otherwise would be kept and never match.
    """
    wanted = pattern.strip()
    if not wanted.isprintable():
        raise UsageError(f"{pattern!r} holds control characters", hint="give example.org or https://example.org/x")
    return _beginning(wanted) if "://" in wanted else _name(wanted)


def _beginning(pattern: str) -> str:
    """How URLs begin. What stands for a user, or behind a number sign, is in none of them."""
    exactly = EXACTLY if pattern.endswith(EXACTLY) else ""
    scheme, _, rest = pattern.removesuffix(EXACTLY).partition("#")[0].partition("://")
    if _AFTER_HOST.search(rest) is None:
        rest += "/"
    resolved = None if rest[0] in "/\\?" else resolve(None, f"{scheme}://{rest}{_MORE}")
    parsed = urlsplit(resolved or "")
    if parsed.scheme not in {"http", "https"}:
        raise UsageError(f"{pattern!r} is no URL that could be blocked", hint="give http(s)://HOST/PATH or a domain")
    begun = urlunsplit((parsed.scheme, parsed.netloc.rpartition("@")[2], parsed.path, parsed.query, ""))
    return begun.removesuffix(_MORE) + exactly


def _name(pattern: str) -> str:
    """A host, and all below it."""
    name = pattern.strip(".")
    if name.count(":") > 1 and not name.startswith("["):
        name = f"[{name}]"
    if _PORT.fullmatch(name):
        raise UsageError(
            f"{pattern!r} has a port, but a host is meant with all of its ports",
            hint="leave it out, or give http(s)://HOST:PORT/PATH",
        )
    parsed = urlsplit(resolve(None, f"http://{name}/") or "")
    if not parsed.hostname or _NO_NAME.search(name.rpartition("]")[2]):
        raise UsageError(f"{pattern!r} is neither a domain nor a URL", hint="give example.org or https://example.org/x")
    return parsed.netloc.strip(".")
