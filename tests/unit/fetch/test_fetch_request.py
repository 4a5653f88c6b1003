"""What is sent, byte for byte."""

from __future__ import annotations

import pytest

from nephila.fetch.proxy import Proxy, ProxyKind, read_proxy
from nephila.fetch.request import RequestSpelling, target_of
from nephila.model.errors import UsageError

SPELLING = RequestSpelling("Nephila/0.1 (+https://nephila.invalid/bot)", keep_alive=True)


def test_a_request_is_exactly_these_bytes() -> None:
    """H1, P6: the honest agent, what we can decode, and nothing else: no cookie, no credential, no referrer."""
    target = target_of("http://user:secret@Example.com:80/a%20b?x=1&y#fragment")
    assert SPELLING.spell(target, (("If-None-Match", '"abc"'),)) == (
        b"GET /a%20b?x=1&y HTTP/1.1\r\n"
        b"Host: example.com\r\n"
        b"User-Agent: Nephila/0.1 (+https://nephila.invalid/bot)\r\n"
        b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        b"Accept-Encoding: gzip, br, zstd\r\n"
        b"Connection: keep-alive\r\n"
        b'If-None-Match: "abc"\r\n'
        b"\r\n"
    )


@pytest.mark.parametrize(
    ("url", "host", "port", "authority", "literal"),
    [
        ("https://a.example/", "a.example", 443, "a.example", False),
        ("https://a.example:8443/", "a.example", 8443, "a.example:8443", False),
        ("http://a.example./", "a.example", 80, "a.example.", False),
        ("http://[2001:DB8::1]:81/", "2001:db8::1", 81, "[2001:db8::1]:81", True),
        ("http://0x7f.1/", "127.0.0.1", 80, "127.0.0.1", True),
        ("http://2130706433/", "127.0.0.1", 80, "127.0.0.1", True),
        ("http://017700000001/", "127.0.0.1", 80, "127.0.0.1", True),
        ("http://127.0.0.1./", "127.0.0.1", 80, "127.0.0.1", True),
        ("http://b\u00fccher.example/", "xn--bcher-kva.example", 80, "xn--bcher-kva.example", False),
        ("http://1.2.3.example/", "1.2.3.example", 80, "1.2.3.example", False),
        ("http://example.a1/", "example.a1", 80, "example.a1", False),
    ],
)
def test_a_target_is_read_as_browsers_read_it(url: str, host: str, port: int, authority: str, literal: bool) -> None:
    """H6, U1: every spelling of an address is that address."""
    target = target_of(url)
    assert (target.host, target.port, target.authority, target.literal) == (host, port, authority, literal)


@pytest.mark.parametrize("url", ["ftp://a.example/", "http://a b/", "nonsense", "javascript:alert(1)"])
def test_what_is_no_web_address_cannot_be_asked_for(url: str) -> None:
    """U4: only http and https get this far."""
    with pytest.raises(UsageError):
        target_of(url)


@pytest.mark.parametrize(
    "header", [("A", "b\r\nC: d"), ("A", "b\n"), ("A", "\0"), ("A", "\u20ac"), ("A b", "c"), ("", "c"), ("A:", "c")]
)
def test_a_header_that_would_smuggle_is_never_sent(header: tuple[str, str]) -> None:
    """H1: values are validated."""
    with pytest.raises(UsageError):
        SPELLING.spell(target_of("http://a.example/"), (header,))
    with pytest.raises(UsageError):
        RequestSpelling("x\r\nCookie: y", keep_alive=True)


def test_a_proxy_is_read_from_its_url() -> None:
    """H1: HTTP, HTTPS and SOCKS5, with their usual ports and escaped credentials."""
    assert read_proxy("") is None
    assert read_proxy("http://proxy.example:3128") == Proxy(ProxyKind.HTTP, "proxy.example", 3128)
    assert read_proxy("http://proxy.example:80/") == Proxy(ProxyKind.HTTP, "proxy.example", 80)
    assert read_proxy("https://u:p%40ss@proxy.example") == Proxy(ProxyKind.HTTPS, "proxy.example", 443, "u", "p@ss")
    assert read_proxy("socks5://[::1]") == Proxy(ProxyKind.SOCKS5, "::1", 1080)
    assert read_proxy("socks5://127.0.0.1:80") == Proxy(ProxyKind.SOCKS5, "127.0.0.1", 80)


@pytest.mark.parametrize(
    "url",
    [
        "proxy.example:3128",
        "ftp://p.example",
        "http://",
        "socks5h://p.example",
        "http://p.example/path",
        "http://a:b c@p.example",
    ],
)
def test_a_proxy_that_cannot_be_used_is_the_users_mistake(url: str) -> None:
    """H1: told at once, with what to write instead."""
    with pytest.raises(UsageError) as caught:
        read_proxy(url)
    assert "socks5://" in caught.value.hint


def test_a_proxys_password_is_in_no_message() -> None:
    """K4: what is told to people holds no secret."""
    with pytest.raises(UsageError) as caught:
        read_proxy("gopher://user:secret@p.example")
    assert "secret" not in str(caught.value)
