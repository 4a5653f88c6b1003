"""Which URLs a takedown means, wherever they are told of."""

import pytest

from nephila.node.addressing import identify_with
from nephila.node.takedown.record import Order
from nephila.node.takedown.target import Target, check_order
from nephila.urls import Identifier, NormalRules, UrlLimits

identify = identify_with(Identifier(7, NormalRules(), UrlLimits()))


def target(*, urls: tuple[str, ...] = (), domains: tuple[str, ...] = ()) -> Target:
    return Target(check_order(Order(urls, domains, "they asked us", "test"), identify), identify)


@pytest.mark.parametrize(
    ("domain", "url"),
    [
        ("[::1]", "http://[::1]:8080/jane"),
        ("::1", "http://[::1]/jane"),
        ("example.org", "http://example.org.:8080/jane"),
        ("example.org", "https://www.example.org/jane"),
        ("bücher.test", "https://xn--bcher-kva.test/jane"),
        ("straße.test", "https://xn--strae-oqa.test/jane"),
    ],
)
def test_a_host_is_known_in_every_url_that_names_it(domain: str, url: str) -> None:
    """K2: what was found on it, what was a copy of it and what an event tells of it are asked by their URL."""
    assert target(domains=(domain,)).names(url)


@pytest.mark.parametrize(
    ("page", "url"),
    [
        ("http://[::1]:8080/jane", "http://[::1]:8080/jane?utm_source=x"),
        ("http://example.org./jane", "http://example.org./jane/"),
        ("https://example.org/jane", "https://example.org/jane#top"),
    ],
)
def test_a_page_is_known_by_any_spelling(page: str, url: str) -> None:
    """K2: of an address in brackets and a name with a dot at its end, too."""
    assert target(urls=(page,)).names(page)
    assert target(urls=(page,)).names(url)


def test_no_other_host_is_taken_for_it() -> None:
    """K2: neither a name that ends likewise nor another address."""
    taken = target(domains=("example.org", "[::1]"))
    for url in ("http://badexample.org/", "http://[::11]/", "http://example.org.evil.test/", "", "http://[::1/"):
        assert not taken.names(url)
