"""How blocks are written by people, and kept so that they match what is crawled (T7, K2)."""

from __future__ import annotations

import pytest

from nephila.frontier.blocklist import Blocklist, check_pattern
from nephila.model.errors import UsageError
from nephila.model.policy import Block
from nephila.urls import Address, Identifier, NormalRules, UrlLimits


def forbids(pattern: str, url: str) -> bool:
    """Whether a block that is written so forbids a URL as it is crawled."""
    address = Identifier(0, NormalRules(), UrlLimits()).identify(url)
    assert isinstance(address, Address)
    return Blocklist([Block(check_pattern(pattern), "they asked us")]).find(address.host, address.url) is not None


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("stra\u00dfe.example", "http://stra\u00dfe.example/"),
        ("B\u00fccher.example.", "https://www.b\u00fccher.example/a"),
        ("https://b\u00fccher.example/privat", "https://xn--bcher-kva.example/private"),
        ("https://example.org/\u00fc", "https://example.org/\u00fcber"),
        ("https://example.org/a b", "https://example.org/a%20b/c"),
        ("http://Example.org:80/a", "http://example.org/ab"),
        ("https://example.org:443", "https://example.org/"),
        ("http://example.org:8080", "http://example.org:8080/x"),
        ("http://someone:secret@example.org/x", "http://example.org/x"),
        ("https://example.org/x#part", "https://example.org/xy"),
        ("https://example.org/x?", "https://example.org/x?a=1"),
        ("https://example.org?a", "https://example.org/?a=1"),
        ("https://example.org/.", "https://example.org/.git/config"),
        ("https://example.org/a/../b", "https://example.org/b"),
        ("https://example.org/\u00fc$", "https://example.org/\u00fc"),
        ("0x7f.1", "http://127.0.0.1/"),
        ("::1", "http://[0:0::1]/"),
        ("[::1]", "http://[::1]/"),
    ],
)
def test_a_block_holds_however_it_is_written(pattern: str, url: str) -> None:
    """T7: in the spelling that addresses have, so that nothing is said to be blocked that is not."""
    assert forbids(pattern, url)
    assert check_pattern(check_pattern(pattern)) == check_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("stra\u00dfe.example", "http://strasse.example/"),
        ("https://example.org/.", "https://example.org/"),
        ("https://example.org/a/..", "https://example.org/"),
        ("https://example.org/x?", "https://example.org/x"),
        ("https://example.org/x$", "https://example.org/xy"),
        ("https://example.org/x#part$", "https://example.org/xy"),
        ("https://example.org", "https://example.organic/"),
        ("example.org", "https://notexample.org/"),
    ],
)
def test_a_block_holds_for_nobody_else(pattern: str, url: str) -> None:
    """T7, K2: a takedown of one name must not take out another's pages."""
    assert not forbids(pattern, url)


@pytest.mark.parametrize(
    "pattern",
    [
        *("", ".", "*.example.org", "example.org/x", "ex ample", "example.org:8080", "someone@example.org"),
        *("http://", "http:///x", "ftp://example.org/", "http://[", "a\nb.example", "https://example.org/\tx"),
    ],
)
def test_what_could_never_match_is_refused(pattern: str) -> None:
    """T7: told at once, and not when somebody wonders."""
    with pytest.raises(UsageError):
        check_pattern(pattern)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (" Example.ORG. ", "example.org"),
        ("2001:DB8::0:1", "[2001:db8::1]"),
        ("https://B\u00fccher.test", "https://xn--bcher-kva.test/"),
        ("https://EXAMPLE.org:443/Gr\u00f6\u00dfe nach", "https://example.org/Gr%C3%B6%C3%9Fe%20nach"),
        ("http://example.org:8080/a$", "http://example.org:8080/a$"),
    ],
)
def test_a_pattern_is_kept_as_hosts_and_urls_are_spelled(written: str, kept: str) -> None:
    """T7, K2, U1: what browsers make of it, for that is what it is compared with."""
    assert check_pattern(written) == kept


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("example.org:8080", "has a port"),
        ("[::1]:8080", "has a port"),
        ("example.org/private", "is neither a domain nor a URL"),
        ("exa%2Fmple", "is neither a domain nor a URL"),
        ("https://exa mple/", "is no URL"),
    ],
)
def test_a_refusal_says_what_is_wrong(written: str, sentence: str) -> None:
    """T7, C4: in a sentence of its own for what people often write."""
    with pytest.raises(UsageError, match=sentence):
        check_pattern(written)
