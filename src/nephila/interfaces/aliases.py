"""Learning that two URLs are one, and acting on it at admission (D4, T3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nephila.model.alias import Aliased, AliasRule, Sighting
from nephila.urls import Address


class HostAliases(Protocol):
    """The rules that may concern the URLs of one host."""

    def resolve(self, address: Address) -> Aliased | None:
        """What the rules make of an address; None when none concerns it, or when it is let through as a test."""


class Aliases(Protocol):
    """Rules of all domains, and what they are learned from.

    Promises, checked by the contract suite:

    - A rule that is in force is there after `flush`, whatever dies; what was observed since may be lost.
    - What this process learns holds at once, what another one learns (or a person undoes) a second later at the most.
    - Memory and disk are bounded: the oldest observations go first, and rules that are in force last.
    - The address of a URL never changes: an alias is admitted under the address of another URL.
    - A rule that was undone is not in force again before it is redone, whatever is observed.
    """

    def in_force(self) -> Mapping[str, HostAliases | None] | None:
        """The rules by host, None where there are none; look up with ``[host]``. None when there are none at all."""

    def observe(self, seen: Sighting) -> None:
        """Learn from what a URL was found to be. Raises nothing that the web could cause."""

    def rules(self, domain: str = "") -> list[AliasRule]:
        """Rules that are or were acted on or are being tried, of one domain or of all, oldest first."""

    def undo(self, rule_id: str) -> AliasRule | None:
        """Take a rule back for good; None when there is none of that id. Durable when it returns."""

    def redo(self, rule_id: str) -> AliasRule | None:
        """Let a rule that was undone be learned again, with the evidence there is; None when it is not undone."""

    def flush(self) -> None:
        """Make durable what was learned."""

    def close(self) -> None:
        """Flush and close."""
