"""Rules about aliases applied to the links of one domain: from an address to what it is an alias of (D4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nephila.model.alias import EVERYWHERE, Aliased, AliasKind, AliasState
from nephila.urls import Address, origin_of, skeleton

from .alias_tally import AliasTally
from .parameters import names_in, without

Catch = Callable[[AliasTally], bool]
"""A rule in force has caught a URL; False lets this one through, to see whether the rule still holds."""


class DomainAliases:
    """The rules of one registrable domain. Implements `interfaces.aliases.HostAliases`."""

    def __init__(self, domain: str, tallies: Iterable[AliasTally], catch: Catch) -> None:
        self._domain = domain
        self._catch = catch
        self._parameters: dict[tuple[str, str], AliasTally] = {}
        self._origins: dict[str, AliasTally] = {}
        for tally in tallies:
            if tally.kind == AliasKind.HOST:
                if tally.acts:
                    self._origins[tally.scope] = tally
            elif tally.acts or tally.doubtful or tally.state == AliasState.UNDONE:
                self._parameters[tally.scope, tally.name] = tally
        self._told = {key: self._sentence(rule) for key, rule in self._parameters.items()}
        self._names = frozenset(name for (_, name), tally in self._parameters.items() if tally.acts)

    def __bool__(self) -> bool:
        return bool(self._names or self._origins)

    def resolve(self, address: Address) -> Aliased | None:
        """As the interface."""
        url, also, evidence = address.url, "", []
        if self._names and "?" in address.key:
            rules = self._rules(address)
            strict = [rule for rule in rules if rule.state == AliasState.IN_FORCE]
            if False in [self._catch(rule) for rule in strict]:  # each of them counts what it catches
                return None
            if strict:
                url = without(url, frozenset(rule.name for rule in strict))
                evidence += [self._told[rule.scope, rule.name] for rule in strict]
            if len(strict) < len(rules):
                also = without(url, frozenset(rule.name for rule in rules))
        origin = origin_of(url)
        moved = self._origins.get(origin) if self._origins else None
        if moved is not None:
            if not self._catch(moved):
                return None
            url = moved.target + url[len(origin) :]
            also = also and moved.target + also[len(origin) :]
            answers = f"{moved.agreed} of {moved.agreed + moved.against} answers"
            evidence.append(f"{origin} always redirects to {moved.target}: {answers}")
        if evidence:
            return Aliased(url, "; ".join(evidence), also)
        return Aliased("", "", also) if also else None

    def names(self, shape: str) -> set[str]:
        """Parameters that may mean nothing in paths of a shape: a URL without them is a stand-in for others."""
        return {
            name for (scope, name), tally in self._parameters.items() if tally.acts and scope in {shape, EVERYWHERE}
        }

    def _rules(self, address: Address) -> list[AliasTally]:
        """The rules about parameters that concern an address."""
        present = self._names.intersection(names_in(address.url))
        if not present:
            return []
        shape = skeleton(address.key.partition("?")[0])
        return [rule for name in sorted(present) if (rule := self._rule(shape, name)) is not None]

    def _rule(self, shape: str, name: str) -> AliasTally | None:
        """The rule for a parameter in paths of a shape. What is known of just these comes before what holds for all."""
        rule = self._parameters.get((shape, name)) or self._parameters.get((EVERYWHERE, name))
        return rule if rule is not None and rule.acts else None

    def _sentence(self, rule: AliasTally) -> str:
        place = f"on {self._domain}" if rule.scope == EVERYWHERE else f"in {rule.scope} on {self._domain}"
        alike = f"{rule.agreed} of {rule.agreed + rule.against} pages alike"
        return f"parameter {rule.name} changes nothing {place}: {alike}"
