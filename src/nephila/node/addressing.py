"""How a crawl tells addresses: what one spelling is, what is known to be the same page, what lies in its scope.

The wiring needs it, and so does everybody who looks at a crawl from outside; so nothing here leads to the machinery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from nephila.dedup import (
    AliasStorage,
    LearnedAliases,
    LearnedEnvironment,
    LearningRules,
    LmdbAliasStorage,
    SharedLearning,
)
from nephila.frontier.scope import Scope, ScopeSeeds, document_endings
from nephila.interfaces.clock import Clock
from nephila.model.errors import UsageError
from nephila.model.settings import Settings
from nephila.urls import Address, Identifier, NormalRules, UrlLimits, registrable_domain


def identifier_of(settings: Settings, secret: int) -> Identifier:
    """The identifier that a crawl's addresses are made with."""
    urls = settings.urls
    rules = NormalRules(
        sort_query=urls.sort_query,
        drop_tracking=urls.drop_tracking,
        drop_trailing_slash=urls.drop_trailing_slash,
        extra_tracking=urls.extra_tracking,
    )
    overrides = _url_exceptions(urls.exceptions, rules)
    return Identifier(secret, replace(rules, overrides=overrides), UrlLimits(urls.max_length, urls.max_segments))


def _url_exceptions(exceptions: Sequence[str], rules: NormalRules) -> dict[str, NormalRules]:
    """The rules of the domains for which some are switched off (U2)."""
    switches = {name.name for name in fields(NormalRules) if name.type == "bool"}
    overrides: dict[str, NormalRules] = {}
    for exception in exceptions:
        domain, _, rule = exception.rpartition(":")
        if not domain or rule not in switches:
            raise UsageError(
                f"urls.exceptions: {exception!r} is not DOMAIN:RULE", hint=f"rules are {', '.join(sorted(switches))}"
            )
        domain = registrable_domain(domain)
        overrides[domain] = replace(overrides.get(domain, rules), **{rule: False})  # type: ignore[arg-type]  # only names of switches get here
    return overrides


def identify_with(identifier: Identifier) -> Callable[[str], Address | None]:
    """Addresses, or None for what is none."""

    def identify(url: str) -> Address | None:
        address = identifier.identify(url)
        return address if isinstance(address, Address) else None

    return identify


def aliases_of(
    environment: LearnedEnvironment,
    settings: Settings,
    identifier: Identifier,
    clock: Clock,
    shared: SharedLearning | None = None,
) -> LearnedAliases:
    """What a crawl has learned of aliases, and goes on to learn; a worker of a fleet together with the others."""
    votes = settings.aliases.votes
    own = LmdbAliasStorage(environment, votes)
    return aliases_on(own if shared is None else shared.over(own, votes), settings, identifier, clock)


def aliases_on(storage: AliasStorage, settings: Settings, identifier: Identifier, clock: Clock) -> LearnedAliases:
    """The same, wherever it is kept."""
    wanted = settings.aliases
    rules = LearningRules(wanted.votes, wanted.verify_every, wanted.learn)
    return LearnedAliases(storage, rules, identifier.address_of, clock.steady_ms, clock.wall_ms)


def scope_of(settings: Settings, saved: bytes) -> Scope:
    """The scope of a crawl that its seeds have widened so far; documents that links are taken out of lie in it, too."""
    return Scope(
        settings.scope,
        settings.limits.max_depth,
        ScopeSeeds.from_bytes(saved),
        repeated_segments=settings.traps.repeated_segments,
        documents=document_endings(pdf=settings.pdf.links, office=settings.office.links),
    )
