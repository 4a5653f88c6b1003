"""From links to addresses, or to the reason why not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.urls import (
    Address,
    Base,
    Identifier,
    NormalRules,
    UrlLimits,
    UrlRefused,
    fingerprint,
    host_of,
    origin_of,
)


@pytest.fixture
def identifier() -> Identifier:
    return Identifier(0xC0FFEE, NormalRules(), UrlLimits())


@pytest.fixture
def base() -> Base:
    base = Base.parse("https://www.example.com/dir/page.html")
    assert base is not None
    return base


def test_what_is_fetched_is_what_the_site_wrote(identifier: Identifier) -> None:
    """U2: order, tracking parameters and slashes are kept in the spelling that is asked for."""
    address = identifier.identify("HTTP://u:p@Example.COM.:80/b/?z=1&utm_source=x&a=%7e#f")
    assert isinstance(address, Address)
    assert address.url == "http://example.com./b/?z=1&utm_source=x&a=%7e"
    assert address.host == "example.com"
    assert address.key == "http://example.com./b?a=~&z=1"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://EXAMPLE.com:8080/", "example.com"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://example.com./", "example.com"),
        ("http://[::1]:8080/x", "[::1]"),
        ("http://u:p@[::1]/x", "[::1]"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://a@b@h/", "h"),
        ("http://example.com.:8080/x", "example.com"),
        ("http://example.com../x", "example.com"),
    ],
)
def test_the_host_is_the_politeness_key(identifier: Identifier, url: str, host: str) -> None:
    """U1, P2: no scheme, port, userinfo or trailing dot, lower case; the same of the spelling, and of the origin."""
    address = identifier.identify(url)
    assert isinstance(address, Address)
    assert address.host == host_of(address.url) == host_of(origin_of(address.url)) == host


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://exa mple/", "malformed"),
        ("not a url", "malformed"),
        ("http://", "no_host"),
        (" HTTPS:/\\?q", "no_host"),
        ("http://./x", "no_host"),
        (f"http://{'a' * 64}.example/x", "no_host"),
        (f"http://{'a.' * 130}example/x", "no_host"),
        (f"http://a.example{'.' * 600}/x", "no_host"),
        (f"http://a.example{'.' * 600}:8080/x", "no_host"),
        ("mailto:a@b.example", "scheme"),
        ("javascript:void(0)", "scheme"),
        ("ftp://h/x", "scheme"),
        ("data:text/html,http://h/", "scheme"),
        ("blob:https://h/uuid", "scheme"),
        ("http://h/" + "a" * 2040, "too_long"),
        ("http://h" + "/a" * 16, "too_many_segments"),
    ],
)
def test_a_link_that_is_no_address_is_refused_by_reason(identifier: Identifier, url: str, reason: str) -> None:
    """U4: refused, with a reason to count by and a sentence for people."""
    refused = identifier.identify(url)
    assert isinstance(refused, UrlRefused)
    assert refused.reason == reason
    assert refused.detail


@pytest.mark.parametrize(
    "url",
    [
        "http://h/" + "a" * 2039,
        "http://h/" + "a" * 2039 + "#" + "f" * 100,
        "http://user:password@h/" + "a" * 2039,
        "http://h" + "/a" * 15 + "/",
        "http://h" + "/a" * 15 + "?" + "/b" * 20,
    ],
)
def test_the_limits_are_for_what_is_fetched(identifier: Identifier, url: str) -> None:
    """U4: at the limit is within it; fragment, userinfo, trailing slash and query do not count as path."""
    assert isinstance(identifier.identify(url), Address)


def test_the_limits_are_settings() -> None:
    """U4: both can be set."""
    strict = Identifier(1, NormalRules(), UrlLimits(max_length=20, max_segments=2))
    reasons = [
        getattr(strict.identify(url), "reason", "")
        for url in ("http://h/a/b", "http://h/a/b/c", "http://hostname/abc/d")
    ]
    assert reasons == ["", "too_many_segments", "too_long"]


def test_fingerprints_are_of_the_key_and_belong_to_a_crawl(identifier: Identifier) -> None:
    """U3: 128 bits of the normal form under the crawl's secret."""
    one, other = identifier.identify("http://h/a/?b&a"), identifier.identify("http://h/a?a=&b=")
    assert isinstance(one, Address)
    assert isinstance(other, Address)
    assert one.fingerprint == other.fingerprint == fingerprint("http://h/a?a&b", 0xC0FFEE)
    assert len(one.fingerprint) == 16
    elsewhere = Identifier(1, NormalRules(), UrlLimits()).identify("http://h/a/?b&a")
    assert isinstance(elsewhere, Address)
    assert elsewhere.key == one.key
    assert elsewhere.fingerprint != one.fingerprint


@pytest.mark.parametrize("secret", [-1, 1 << 64])
def test_a_secret_has_64_bits(secret: int) -> None:
    """U3: a wrong secret is our mistake and is told at once."""
    with pytest.raises(ValueError, match="64 bits"):
        Identifier(secret, NormalRules(), UrlLimits())


def test_answers_stand_in_the_place_of_their_links(identifier: Identifier, base: Base) -> None:
    """U1, U4: a page's links in one sweep, repeated ones and bad ones among them."""
    hrefs = ["a", "mailto:x", "/b/", "a", "http://", "//other.example/c#x", "a#y", "http://u@www.example.com/dir/a"]
    answers = identifier.identify_links(base, hrefs)
    assert [getattr(answer, "reason", answer.url) for answer in answers] == [
        "https://www.example.com/dir/a",
        "scheme",
        "https://www.example.com/b/",
        "https://www.example.com/dir/a",
        "no_host",
        "https://other.example/c",
        "https://www.example.com/dir/a",
        "http://www.example.com/dir/a",
    ]
    assert answers == [identifier.identify(href, base) for href in hrefs]


def test_a_refused_link_does_not_lead_the_next_one_astray(identifier: Identifier) -> None:
    """U1: what is kept at hand of the last origin is that of the last good link."""
    urls = ["http://host.example/a", "ftp://elsewhere.example/long/path", "http://host.example/b/"]
    answers = identifier.identify_resolved(urls)
    assert isinstance(answers[2], Address)
    assert answers[2].key == "http://host.example/b"
    assert answers[2].host == "host.example"


HREFS = st.sampled_from(
    [
        *("a", "a/", "/a?b=1", "/a?c&b", "//x.example/", "http://u@x.example/%7e", "mailto:x", "http://", "b;sid=1"),
        *(
            "http://x.example/" + "y" * 2100,
            "/z" * 20,
            "//y.example:8080/(S(ab))/x",
            "#f",
            "?q='",
            "HTTP://X.example/a|b",
        ),
    ]
)


@given(st.lists(st.lists(HREFS, max_size=12), max_size=4))
@settings(max_examples=100, deadline=None)
def test_what_was_seen_before_changes_no_answer(pages: list[list[str]]) -> None:
    """U2, U3: the memories only save work."""
    base = Base.parse("https://www.example.com/dir/page.html")
    seasoned = Identifier(7, NormalRules(), UrlLimits())
    for hrefs in pages:
        alone = [Identifier(7, NormalRules(), UrlLimits()).identify(href, base) for href in hrefs]
        assert seasoned.identify_links(base, hrefs) == alone


def test_the_memories_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q3: a site that mints URLs and hosts for ever fills no memory."""
    monkeypatch.setattr("nephila.urls.identity._MEMO_ADDRESSES", 10)
    monkeypatch.setattr("nephila.urls.identity._MEMO_SITES", 10)
    identifier = Identifier(7, NormalRules(), UrlLimits())
    for number in range(100):
        assert isinstance(identifier.identify(f"http://h{number}.example/{number}"), Address)
    assert len(identifier._known) <= 11
    assert len(identifier._sites) <= 10
