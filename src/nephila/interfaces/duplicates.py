"""Content seen before (D2)."""

from __future__ import annotations

from typing import Protocol

from nephila.model.record import Original


class DigestIndex(Protocol):
    """SHA-256 of a decoded body to its first capture. A lost entry costs a second copy, never a wrong answer.

    What it is told of is durable: a capture that refers to another one must not outlive it.
    """

    def find(self, digest: bytes) -> Original | None:
        """The first capture with that content."""

    def remember(self, digest: bytes, original: Original) -> None:
        """The first one wins; visible to `find` at once."""

    def forget(self, digest: bytes, record_id: str) -> None:
        """That capture was refused after all: nothing may refer to it."""

    def flush(self) -> None:
        """Write what was remembered to disk."""

    def close(self) -> None:
        """Flush and close."""


class SharedDigests(DigestIndex, Protocol):
    """One that others, on other machines, add to as well."""

    async def ask(self, digest: bytes) -> None:
        """Look whether others have stored that content, so that `find` knows it. Never raises for a server away."""
