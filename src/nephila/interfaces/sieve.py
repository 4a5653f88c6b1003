"""Which of the links found go on to the frontier (S2, S3, U4, X1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from nephila.model.noun import noun
from nephila.model.page import Page
from nephila.model.task import Candidate, PageTask, Refusal
from nephila.urls import Address


@noun
class Sifted:
    """What goes on, and what does not and why."""

    candidates: Sequence[Candidate] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    malformed: dict[str, int] = field(default_factory=dict)
    """Links that go no further and are only counted, by reason: no addresses, or more than a page may bring."""
    places: list[int] = field(default_factory=list)
    """Of what was listed: for each candidate, at which place of the list it stood."""


class LinkSieve(Protocol):
    """Pure but for the aliases learned so far: the same page gives the same answer under the same rules."""

    def sift(self, page: Page, depth: int) -> Sifted:
        """The links of a page that was found at `depth`."""

    def sift_listed(self, urls: Sequence[str], depth: int, *, seeds: bool = False) -> Sifted:
        """URLs of a sitemap or feed as candidates of `depth`; as `seeds` they widen the scope."""

    def lead(self, url: str, depth: int) -> Candidate | Refusal | None:
        """A sitemap or feed as a candidate of `depth`: what its name ends with is no objection. None: no address."""

    def target(self, location: str, task: PageTask) -> Address | Refusal | None:
        """Where a redirect leads, as an address or a refusal; None when it leads nowhere."""

    def follow(self, target: Address, task: PageTask) -> Candidate | Refusal:
        """A redirect's target as a candidate: same depth, one hop further, judged by the same rules."""

    def instead_of(self, task: PageTask) -> tuple[Candidate, str] | None:
        """What a URL that was fetched before is an alias of, with the evidence; None when it is to be asked for."""

    def allows(self, address: Address, depth: int) -> bool:
        """Whether an address may be admitted at a depth."""
