"""A scope that another process may widen: whoever lets a redirect's target in has to tell the others.

They are told by the file that the scope is saved in. It is saved before what it lets in is admitted, so whoever claims
such a URL and asks for the size of the file before judging its page has seen all of it. That is a microsecond a page,
and no message can come too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephila.frontier.scope import Scope, ScopeSeeds
from nephila.interfaces.sieve import LinkSieve, Sifted
from nephila.model.errors import UsageError
from nephila.model.page import Page
from nephila.model.settings import Settings
from nephila.model.task import Candidate, PageTask, Refusal
from nephila.urls import Address

from .addressing import scope_of
from .directory import CrawlDirectory


def check_scope(out: Path, settings: Settings) -> None:
    """Refuse to go on under a mode for which the seeds are not known: nothing that is found would be in scope (S2)."""
    directory = CrawlDirectory(out)
    if directory.scope.is_file() and scope_of(settings, directory.saved_scope()).is_lost:
        raise UsageError(
            f"what --scope {settings.scope.mode} allows is not known in {out}: its seeds were given under a wider one",
            hint="give the seeds again with it: what was fetched of them is known, and is not fetched twice",
        )


class ScopeFollower:
    """Keeps a `Scope` up with its file."""

    def __init__(self, directory: CrawlDirectory, scope: Scope) -> None:
        self._directory = directory
        self._scope = scope
        self._read = 0
        """Bytes that are known, up to the end of a line."""

    def __call__(self) -> None:
        """Learn what was added since the last call."""
        size = self._directory.scope_size()
        if size == self._read:
            return
        if size < self._read:  # a torn end was cut off
            self._read = 0
        added = self._directory.saved_scope(self._read)
        added = added[: added.rfind(b"\n") + 1]
        self._scope.learn(ScopeSeeds.from_bytes(added))
        self._read += len(added)


class FollowingSieve:
    """A `LinkSieve` that looks for a wider scope before it judges."""

    def __init__(self, sieve: LinkSieve, follow: ScopeFollower) -> None:
        self._sieve = sieve
        self._follow = follow

    def sift(self, page: Page, depth: int) -> Sifted:
        """As the interface."""
        self._follow()
        return self._sieve.sift(page, depth)

    def sift_listed(self, urls: Sequence[str], depth: int, *, seeds: bool = False) -> Sifted:
        """As the interface."""
        self._follow()
        return self._sieve.sift_listed(urls, depth, seeds=seeds)

    def lead(self, url: str, depth: int) -> Candidate | Refusal | None:
        """As the interface."""
        self._follow()
        return self._sieve.lead(url, depth)

    def target(self, location: str, task: PageTask) -> Address | Refusal | None:
        """As the interface."""
        return self._sieve.target(location, task)

    def instead_of(self, task: PageTask) -> tuple[Candidate, str] | None:
        """As the interface."""
        if not task.digest:  # never fetched: it is asked for, whatever the scope
            return None
        self._follow()
        return self._sieve.instead_of(task)

    def allows(self, address: Address, depth: int) -> bool:
        """As the interface."""
        self._follow()
        return self._sieve.allows(address, depth)

    def follow(self, target: Address, task: PageTask) -> Candidate | Refusal:
        """As the interface."""
        self._follow()
        return self._sieve.follow(target, task)
