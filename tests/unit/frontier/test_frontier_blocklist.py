"""What people write to block something, and what is kept of it."""

import pytest

from nephila.frontier.blocklist import Blocklist, check_pattern
from nephila.model.errors import UsageError
from nephila.model.policy import Block


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (" Example.ORG. ", "example.org"),
        ("bücher.test", "xn--bcher-kva.test"),
        ("straße.test", "xn--strae-oqa.test"),
        ("[::1]", "[::1]"),
        ("2001:DB8::0:1", "[2001:db8::1]"),
        ("https://Bücher.test", "https://xn--bcher-kva.test/"),
        ("https://EXAMPLE.org:443/Größe nach", "https://example.org/Gr%C3%B6%C3%9Fe%20nach"),
        ("http://example.org:8080/a$", "http://example.org:8080/a$"),
    ],
)
def test_a_pattern_is_kept_as_hosts_and_urls_are_spelled(written: str, kept: str) -> None:
    """T7, K2, U1: what browsers make of it, for that is what it is compared with."""
    assert check_pattern(written) == kept
    assert check_pattern(kept) == kept


def test_a_url_in_letters_of_its_language_is_blocked() -> None:
    """T7: by its beginning, however the host and the path were written."""
    blocks = Blocklist([Block(check_pattern("https://bücher.test/lager/größe"), "they asked us", 0)])
    assert blocks.find("xn--bcher-kva.test", "https://xn--bcher-kva.test/lager/gr%C3%B6%C3%9Fe/7")
    assert not blocks.find("xn--bcher-kva.test", "https://xn--bcher-kva.test/lager/")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("example.org:8080", "has a port"),
        ("[::1]:8080", "has a port"),
        ("example.org/private", "is neither a domain nor a URL"),
        ("a b", "is neither a domain nor a URL"),
        ("exa%2Fmple", "is no domain name"),
        ("ftp://example.org/", "is no URL"),
        ("https://", "is no URL"),
        ("https://exa mple/", "is no URL"),
    ],
)
def test_what_could_never_be_met_is_refused(written: str, sentence: str) -> None:
    """T7, K2, C4: better than a block that holds nothing back."""
    with pytest.raises(UsageError, match=sentence):
        check_pattern(written)
