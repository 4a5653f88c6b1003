"""What every `interfaces.aliases.Aliases` keeps.

A check takes `open_aliases`, which opens the aliases of a crawl at a clock that the check turns; calling it again opens
the same storage anew, as another process would. What keeps nothing beyond the process passes all but the checks in
`DURABLE_CHECKS`, which close before they open again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nephila.interfaces.aliases import Aliases
from nephila.model.alias import Aliased, AliasKind, AliasRule, AliasState, Sighting
from nephila.model.page import Directives, Link, Page
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

DOMAIN = "spiders.example"
ORIGIN = f"https://{DOMAIN}"
START = 1_767_225_600_000
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())


@dataclass(slots=True)
class Hand:
    """A clock that is turned by hand."""

    ms: int = START

    def now(self) -> int:
        """Wall and steady time alike."""
        return self.ms


OpenAliases = Callable[[Hand], Aliases]


def identify(url: str) -> Address | None:
    """Addresses as a crawl makes them."""
    address = IDENTIFIER.identify(url)
    return address if isinstance(address, Address) else None


def page_of(url: str, text: str, links: tuple[str, ...] = (), canonical: str = "") -> Page:
    """A page that says something."""
    found = tuple(Link(link, "a", "", "more") for link in links)
    name = text.encode().ljust(8, b".")[:8]
    return Page(url, url, "utf-8", text, found, Directives(), canonical, text_hash=name, shape_hash=name)


def see(aliases: Aliases, hand: Hand, path: str, text: str | None, location: str = "", canonical: str = "") -> None:
    """Let a URL be found to be a page, or something else."""
    url = path if "://" in path else ORIGIN + path
    page = page_of(url, text, canonical=canonical) if text is not None else None
    host = url.split("/")[2]
    aliases.observe(Sighting(url, host, DOMAIN, hand.ms, page, location))


def teach(aliases: Aliases, hand: Hand, name: str = "ref", pages: int = 6, *, path: str = "/item/") -> None:
    """All it takes for a rule: pages under two values of a parameter, and without it."""
    for number in range(1, pages + 1):
        for query in (f"?{name}=a{number}", f"?{name}=b{number}", ""):
            see(aliases, hand, f"{path}{number}{query}", f"text {number}")


def resolved(aliases: Aliases, url: str) -> Aliased | None:
    """What the rules in force make of a URL."""
    rules, address = aliases.in_force(), identify(url)
    if rules is None or address is None:
        return None
    own = rules[address.host]
    return own.resolve(address) if own is not None else None


def only_rule(aliases: Aliases, state: AliasState) -> AliasRule:
    """The one rule in a state."""
    (rule,) = [rule for rule in aliases.rules() if rule.state is state]
    return rule


def check_nothing_is_in_force_before_anything_was_seen(open_aliases: OpenAliases) -> None:
    """D4: links of a crawl that has learned nothing are not looked at."""
    aliases = open_aliases(Hand())
    assert aliases.in_force() is None
    assert aliases.rules() == []


def check_a_parameter_that_changes_nothing_is_an_alias_at_once(open_aliases: OpenAliases) -> None:
    """D4, T3: what this process learned holds for its next link, with the evidence in words."""
    hand = Hand()
    aliases = open_aliases(hand)
    teach(aliases, hand)
    found = resolved(aliases, f"{ORIGIN}/item/77?id=3&ref=zz")
    assert found is not None
    assert found.url == f"{ORIGIN}/item/77?id=3"
    assert f"parameter ref changes nothing in /item/{{n}} on {DOMAIN}: " in found.detail
    assert resolved(aliases, f"{ORIGIN}/item/77") is None
    assert resolved(aliases, f"{ORIGIN}/list?ref=zz") is None, "another kind of page"
    assert resolved(aliases, "https://elsewhere.example/item/77?ref=zz") is None


def check_a_parameter_that_changes_the_page_is_none(open_aliases: OpenAliases) -> None:
    """T3: whatever it is called."""
    hand = Hand()
    aliases = open_aliases(hand)
    for number in range(200):
        see(aliases, hand, f"/item/{number % 10}?ref={number}", f"text {number}")
    assert aliases.in_force() is None


def check_pages_that_are_all_alike_prove_nothing(open_aliases: OpenAliases) -> None:
    """T3: a shell that scripts fill is the same page under every parameter."""
    hand = Hand()
    aliases = open_aliases(hand)
    for number in range(1, 30):
        for query in (f"?ref=a{number}", f"?ref=b{number}", ""):
            see(aliases, hand, f"/item/{number}{query}", "loading")
    assert aliases.in_force() is None


def check_answers_that_are_no_pages_never_agree(open_aliases: OpenAliases) -> None:
    """T3: two errors are not the same page."""
    hand = Hand()
    aliases = open_aliases(hand)
    for number in range(1, 30):
        for query in (f"?ref=a{number}", f"?ref=b{number}", ""):
            see(aliases, hand, f"/item/{number}{query}", None)
    assert aliases.in_force() is None
    assert aliases.rules() == []


def check_without_a_stand_in_it_is_only_tried(open_aliases: OpenAliases) -> None:
    """D4: as long as nobody has seen the page without the parameter, nothing is refused; it is asked for beside."""
    hand = Hand()
    aliases = open_aliases(hand)
    for number in range(1, 9):
        for value in "abc":
            see(aliases, hand, f"/item/{number}?ref={value}", f"text {number}")
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") == Aliased("", "", f"{ORIGIN}/item/77")
    for number in (1, 2):
        see(aliases, hand, f"/item/{number}", f"text {number}")
    found = resolved(aliases, f"{ORIGIN}/item/77?ref=zz")
    assert found is not None
    assert (found.url, found.also) == (f"{ORIGIN}/item/77", "")


def check_a_stand_in_that_is_an_error_ends_the_trial(open_aliases: OpenAliases) -> None:
    """D4: a page that cannot be had without the parameter needs it."""
    hand = Hand()
    aliases = open_aliases(hand)
    for number in range(1, 9):
        for value in "abc":
            see(aliases, hand, f"/item/{number}?ref={value}", f"text {number}")
    assert aliases.in_force() is not None
    see(aliases, hand, "/item/1", None)
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is None


def check_one_comparison_against_it_suspends_a_rule(open_aliases: OpenAliases) -> None:
    """D4: and what it takes to be believed again is more than before."""
    hand = Hand()
    aliases = open_aliases(hand)
    teach(aliases, hand)
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is not None
    see(aliases, hand, "/item/3?ref=other", "something else")
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is None
    aliases.flush()
    rule = only_rule(aliases, AliasState.SUSPENDED)
    assert rule.against == 1
    assert rule.counter_example[1] == f"{ORIGIN}/item/3?ref=other"
    for number in range(101, 180):
        for query in (f"?ref=a{number}", f"?ref=b{number}", ""):
            see(aliases, hand, f"/item/{number}{query}", f"text {number}")
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is not None


def check_an_undone_rule_is_not_learned_again(open_aliases: OpenAliases) -> None:
    """D4: a person's word counts more than any evidence, until it is taken back."""
    hand = Hand()
    aliases = open_aliases(hand)
    teach(aliases, hand)
    aliases.flush()
    rule = only_rule(aliases, AliasState.IN_FORCE)
    undone = aliases.undo(rule.id)
    assert undone is not None
    assert undone.state is AliasState.UNDONE
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is None
    teach(aliases, hand, pages=100)
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is None
    assert aliases.undo("no such") is None
    assert aliases.redo("no such") is None
    redone = aliases.redo(rule.id)
    assert redone is not None
    assert redone.state is AliasState.IN_FORCE
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is not None
    assert aliases.redo(rule.id) is None, "it is not undone any more"


def check_what_another_process_decides_holds_within_a_second(open_aliases: OpenAliases) -> None:
    """D4: a rule learned there acts here, one undone there does no more."""
    hand = Hand()
    here, there = open_aliases(hand), open_aliases(hand)
    teach(there, hand)
    there.flush()
    hand.ms += 1001
    assert resolved(here, f"{ORIGIN}/item/77?ref=zz") is not None
    there.undo(only_rule(there, AliasState.IN_FORCE).id)
    hand.ms += 1001
    assert resolved(here, f"{ORIGIN}/item/77?ref=zz") is None


def check_what_two_processes_see_is_added_up(open_aliases: OpenAliases) -> None:
    """D4: neither overwrites what the other has learned."""
    hand = Hand()
    here, there = open_aliases(hand), open_aliases(hand)
    teach(here, hand)
    teach(there, hand, "via", path="/note/")
    here.flush()
    there.flush()
    patterns = {rule.pattern for rule in here.rules(DOMAIN) if rule.state is AliasState.IN_FORCE}
    assert patterns == {"/item/{n}?ref", "/note/{n}?via"}


def check_a_host_that_always_redirects_is_an_alias(open_aliases: OpenAliases) -> None:
    """D4: to the same path of another origin; one answer of its own suspends it."""
    hand = Hand()
    aliases = open_aliases(hand)
    old = "http://www.spiders.example"
    for number in range(5):
        see(aliases, hand, f"{old}/p/{number}?x=1", None, location=f"{ORIGIN}/p/{number}?x=1")
    found = resolved(aliases, f"{old}/other?y=2")
    assert found is not None
    assert found.url == f"{ORIGIN}/other?y=2"
    assert f"{old} always redirects to {ORIGIN}" in found.detail
    assert resolved(aliases, f"{ORIGIN}/other") is None
    see(aliases, hand, f"{old}/alive", "a page of its own")
    assert resolved(aliases, f"{old}/other") is None


def check_redirects_to_other_paths_make_no_alias(open_aliases: OpenAliases) -> None:
    """D4: what all leads to one place has not moved."""
    hand = Hand()
    aliases = open_aliases(hand)
    for number in range(30):
        see(aliases, hand, f"http://www.spiders.example/p/{number}", None, location=f"{ORIGIN}/")
    assert aliases.in_force() is None


def check_canonical_links_are_a_word_and_no_proof(open_aliases: OpenAliases) -> None:
    """D4, X2: every page of a list may name the first one; the pages themselves decide."""
    hand = Hand()
    aliases = open_aliases(hand)
    for number in range(1, 40):
        url = f"/list/{number % 5}?page={number}"
        see(aliases, hand, url, f"text {number}", canonical=f"{ORIGIN}/list/{number % 5}")
    assert resolved(aliases, f"{ORIGIN}/list/9?page=3") is None


def check_one_of_those_caught_is_let_through_now_and_then(open_aliases: OpenAliases) -> None:
    """D4: a rule is tested as long as it is in force, ever more seldom."""
    hand = Hand()
    aliases = open_aliases(hand)
    teach(aliases, hand)
    let_through = [n for n in range(1, 1001) if resolved(aliases, f"{ORIGIN}/item/{n}?ref=zz") is None]
    assert let_through == [50, 150, 350, 750]
    aliases.flush()
    assert only_rule(aliases, AliasState.IN_FORCE).caught == 1000 - len(let_through)


def check_old_sightings_are_not_compared(open_aliases: OpenAliases) -> None:
    """D4: a page that changed in two days says nothing about its parameters."""
    hand = Hand()
    aliases = open_aliases(hand)
    teach(aliases, hand)
    hand.ms += 2 * 86_400_000
    see(aliases, hand, "/item/3?ref=other", "a new edition")
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is not None


def check_rules_outlive_the_process(open_aliases: OpenAliases) -> None:
    """D4, F10: what was flushed is there again, with its evidence."""
    hand = Hand()
    first = open_aliases(hand)
    teach(first, hand)
    first.close()
    again = open_aliases(hand)
    assert resolved(again, f"{ORIGIN}/item/77?ref=zz") is not None
    rule = only_rule(again, AliasState.IN_FORCE)
    assert (rule.kind, rule.domain, rule.pattern) == (AliasKind.PARAMETER, DOMAIN, "/item/{n}?ref")
    assert rule.example[0].startswith(ORIGIN)
    assert replace(rule, caught=0) == replace(again.rules(DOMAIN)[0], caught=0)


def check_votes_of_a_domain_are_bounded(open_aliases: OpenAliases) -> None:
    """D4, F8: a site that mints parameters drives out its own votes, and rules in force stay."""
    hand = Hand()
    aliases = open_aliases(hand)
    teach(aliases, hand)
    for number in range(3000):
        see(aliases, hand, f"/mint/{number}?p{number}=1", f"mint {number}")
        see(aliases, hand, f"/mint/{number}?p{number}=2", f"mint {number}")
        if number % 100 == 0:
            aliases.flush()
    aliases.flush()
    assert resolved(aliases, f"{ORIGIN}/item/77?ref=zz") is not None


CHECKS: list[Callable[[OpenAliases], None]] = [
    check_nothing_is_in_force_before_anything_was_seen,
    check_a_parameter_that_changes_nothing_is_an_alias_at_once,
    check_a_parameter_that_changes_the_page_is_none,
    check_pages_that_are_all_alike_prove_nothing,
    check_answers_that_are_no_pages_never_agree,
    check_without_a_stand_in_it_is_only_tried,
    check_a_stand_in_that_is_an_error_ends_the_trial,
    check_one_comparison_against_it_suspends_a_rule,
    check_an_undone_rule_is_not_learned_again,
    check_what_another_process_decides_holds_within_a_second,
    check_what_two_processes_see_is_added_up,
    check_a_host_that_always_redirects_is_an_alias,
    check_redirects_to_other_paths_make_no_alias,
    check_canonical_links_are_a_word_and_no_proof,
    check_one_of_those_caught_is_let_through_now_and_then,
    check_old_sightings_are_not_compared,
    check_votes_of_a_domain_are_bounded,
]
DURABLE_CHECKS: list[Callable[[OpenAliases], None]] = [check_rules_outlive_the_process]
