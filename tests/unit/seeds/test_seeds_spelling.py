"""What people write, and what is made of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.exchange import FailureKind
from nephila.seeds import CONNECTION_LEVEL, SeedFault, SeedUrl, http_twin, spell
from nephila.seeds.spelling import Unreadable, is_site

quick = settings(max_examples=200, deadline=None)


@pytest.mark.parametrize(
    "text", ["https://example.org/", "http://foo", "HTTP://Example.org/a?b#c", "https://[::1]:8/x"]
)
def test_a_full_url_is_taken_as_it_is(text: str) -> None:
    """S1: nothing to fall back on."""
    assert spell(text) == SeedUrl(text, None)


@pytest.mark.parametrize(
    "text",
    [
        "example.org",
        "example.org.",
        "example.org/path?q=1",
        "example.org?q=1",
        "example.org:8443",
        "bücher.example/straße",
        "例え。テスト",
        "हिन्दी.भारत",
        "xn--bcher-kva.example",
        "a_b.example.org",
        "localhost",
        "localhost:8000/x",
        "intranet:8080",
        "127.0.0.1",
        "127.0.0.1:8080",
        "[::1]:8080/x",
    ],
)
def test_a_bare_host_is_https_first_then_http(text: str) -> None:
    """S1: domain, IDN, address, host and port."""
    assert spell(text) == SeedUrl(f"https://{text}", f"http://{text}")


def test_a_bare_host_may_follow_two_slashes_and_an_ipv6_address_needs_no_brackets() -> None:
    """S1: both are plainly meant."""
    assert spell("//example.org/a") == SeedUrl("https://example.org/a", "http://example.org/a")
    assert spell("2001:db8::1") == SeedUrl("https://[2001:db8::1]", "http://[2001:db8::1]")


def test_a_port_that_names_the_scheme_decides_it() -> None:
    """S1: nobody speaks TLS on port 80."""
    assert spell("example.org:80/x") == SeedUrl("http://example.org:80/x", None)
    assert spell("example.org:443") == SeedUrl("https://example.org:443", None)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "empty"),
        ("https://exam ple.org/", "white space"),
        ("example.org\x00", "control"),
        ("http//typo.org", '"http://typo.org"'),
        ("https:/example.org/a", '"https://example.org/a"'),
        ("https:example.org", '"https://example.org"'),
        ("HTTP;//example.org", '"http://example.org"'),
        ("http:\\\\example.org", '"http://example.org"'),
        ("/etc/hosts", "path"),
        ("./list", "path"),
        ("seeds.txt", "--seeds seeds.txt"),
        ("top-1m.csv", "--seeds"),
        ("<urlset>", "markup"),
        ("me@example.org", "mail"),
        ("me:secret@example.org/", "password"),
        ("*.example.org", "--scope domain"),
        ("example.org:http/", "port"),
        ("foo", "http://foo"),
        ('"http://example.org/"', "quotation marks"),
        ("3.14", "neither"),
        ("1.2.3.999", "neither"),
        ("a..b.org", "neither"),
        ("exa!mple.org", "neither"),
    ],
)
def test_a_slip_is_refused_with_a_sentence_that_helps(text: str, hint: str) -> None:
    """S1: refused, and why."""
    refused = spell(text)
    assert isinstance(refused, Unreadable)
    assert refused.fault == SeedFault.MALFORMED
    assert hint in refused.detail


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ftp://example.org/", '"ftp"'),
        ("mailto:me@example.org", '"mailto"'),
        ("tel:5550123", '"tel"'),
        ("tel:555", '"tel"'),
        ("javascript:void(0)", '"javascript"'),
        ("htps://example.org/", '"https://example.org/"'),
        ("ttp://example.org/", '"http://example.org/"'),
    ],
)
def test_another_scheme_is_refused_as_such(text: str, hint: str) -> None:
    """S1, U4: http and https only."""
    refused = spell(text)
    assert isinstance(refused, Unreadable)
    assert refused.fault == SeedFault.SCHEME
    assert hint in refused.detail


@quick
@given(st.text(max_size=40).map(str.strip))
def test_any_text_is_a_url_or_a_refusal(text: str) -> None:
    """S1: never an exception; a URL always begins with its scheme, its fall-back is its twin."""
    spelled = spell(text)
    if isinstance(spelled, SeedUrl):
        assert spelled.address_url.lower().startswith(("https://", "http://"))
        assert spelled.fallback in (None, http_twin(spelled.address_url))
    else:
        assert spelled.detail


@quick
@given(st.from_regex(r"[a-z0-9]{1,8}(\.[a-z0-9]{1,8}){0,3}(:[0-9]{1,4})?(/[a-z]{0,5})?", fullmatch=True))
def test_what_is_a_site_can_be_spelled(text: str) -> None:
    """S1: the CSV reader and the speller agree, file names aside."""
    if is_site(text):
        spelled = spell(text)
        assert isinstance(spelled, SeedUrl) or "file" in spelled.detail


def test_the_twin_of_https_is_http() -> None:
    """S1: port kept, nothing for http."""
    assert http_twin("https://example.org:8443/x?y") == "http://example.org:8443/x?y"
    assert http_twin("http://example.org/") is None


def test_plain_http_is_tried_after_failures_that_it_may_not_share() -> None:
    """S1: not for a name that does not exist or an address that may not be asked."""
    assert {FailureKind.CONNECT, FailureKind.TLS, FailureKind.TIMEOUT, FailureKind.DNS} <= CONNECTION_LEVEL
    assert not {FailureKind.NO_SUCH_NAME, FailureKind.ADDRESS, FailureKind.BAD_CONTENT} & CONNECTION_LEVEL


@pytest.mark.parametrize("text", ["3,,leer", "-", "+http:", "a|b", "what?ever"])
def test_what_can_be_no_host_is_not_offered_as_one(text: str) -> None:
    """S1: a row of a table, a dash: the advice must be one that helps."""
    refused = spell(text)
    assert isinstance(refused, Unreadable)
    assert f"http://{text}" not in refused.detail
