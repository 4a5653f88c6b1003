"""What is not to be asked for any more, by a person's word (T7)."""

from __future__ import annotations

from collections.abc import Iterable

from nephila.model.errors import UsageError
from nephila.model.policy import Block
from nephila.urls import resolve

EXACTLY = "$"
"""At the end of a URL: this one and no other. Where a URL really ends so, write %24."""


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
    """A pattern in the form in which it is kept, spelled as URLs and hosts are; UsageError where it means nothing."""
    if "://" not in pattern:
        return _name(pattern)
    url = resolve(None, pattern.strip())
    if url is None or not url.startswith(("http://", "https://")):
        raise UsageError(f"{pattern!r} is no URL that could be blocked", hint="give http(s)://HOST/PATH or a domain")
    return url.partition("#")[0]


def _name(pattern: str) -> str:
    name = pattern.strip().strip(".")
    if not name or any(mark in name for mark in "/?#@ *"):
        raise UsageError(f"{pattern!r} is neither a domain nor a URL", hint="give example.org or https://example.org/x")
    if name.count(":") > 1 and "[" not in name:
        name = f"[{name}]"
    if ":" in name.rpartition("]")[2]:
        raise UsageError(
            f"{pattern!r} has a port, but a host is meant with all of its ports",
            hint="leave it out, or give http(s)://HOST:PORT/PATH",
        )
    url = resolve(None, f"http://{name}/")
    if url is None:
        raise UsageError(f"{pattern!r} is no domain name")
    return url.removeprefix("http://").removesuffix("/").strip(".")
