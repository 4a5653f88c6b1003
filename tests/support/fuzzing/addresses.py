"""URLs: the normal form, links resolved, shapes, masks, the keys of indexes."""

from __future__ import annotations

import ada_url

from nephila.model.page import Link
from nephila.native import AVAILABLE, native
from nephila.parse.html import plainly_resolved
from nephila.parse.walk import Findings, outranked
from nephila.store.surt import surt, surt_by_rules
from nephila.urls import (
    Address,
    Base,
    Identifier,
    NormalRules,
    UrlLimits,
    UrlRefused,
    fingerprint,
    mask_secrets,
    origin_of,
    registrable_domain,
    resolve,
    resolve_location,
    skeleton,
)
from nephila.urls.skeleton import is_open

from .target import Choices, Target, text_of

SECRET = 0xC0FFEE
LIMITS = UrlLimits()
_identifier = Identifier(SECRET, NormalRules(), LIMITS)
_kept = Identifier(SECRET, NormalRules(drop_trailing_slash=False, sort_query=False, drop_tracking=False), LIMITS)


def check_url(data: bytes) -> None:
    """A link has an address or a reason, spelled as the standard has it; the normal form is a fixed point; C agrees."""
    text = text_of(data)
    for identifier in (_identifier, _kept):
        found = identifier.identify(text)
        whole = resolve(None, text)
        if whole is None:
            assert isinstance(found, UrlRefused)
            continue
        assert resolve(None, whole) == whole
        if whole.startswith(("http://", "https://")):
            assert ada_url.normalize_url(whole) == whole
        plain = identifier.identify_plainly((whole,))[0]
        assert identifier.identify_new((whole,)) == [plain]
        assert found == plain
        if not isinstance(found, Address):
            continue
        assert found.url.startswith(("http://", "https://"))
        assert len(found.url) <= LIMITS.max_length
        assert found.fingerprint == fingerprint(found.key, SECRET)
        again = identifier.identify(found.key)
        if isinstance(again, Address):
            assert again.key == found.key, (found.key, again.key)
            assert again.host == found.host
        else:  # encoding may make a key longer than a URL may be
            assert again.reason == "too_long"
        assert origin_of(found.url)
        assert registrable_domain(found.host)
        assert found.host.endswith(registrable_domain(found.host))


_BASES = (
    *("http://example.com/", "https://www.example.com/a/b/c?q=1", "http://[::1]:8080/x/", "http://user@h.test/%41/"),
    *("https://xn--mnchen-3ya.de/", "http://127.0.0.1/..", "about:blank", "http://a.test/dir/;x=1/"),
)


def check_links(data: bytes) -> None:
    """References are resolved alike in C and in Python, and as the parser resolves them one by one."""
    choices = Choices(data)
    base = Base.parse(_BASES[choices.number(len(_BASES))])
    assert base is not None
    hrefs = text_of(choices.rest()).split("\n")
    tags = ("a", "link", "img", "area", "form")
    found = Findings()
    for number, href in enumerate(hrefs):
        found.references[href] = (tags[number % 5], ("", "nofollow")[number % 2], f"t{number % 3}")
    plain = plainly_resolved(found, base)
    if AVAILABLE:
        assert native.resolve_references(found.references, base.url, base.join, outranked, Link) == plain
    expected = [resolve(base.url, href) for href in found.references]
    web = {url.partition("#")[0] for url in expected if url and url.startswith(("http://", "https://"))}
    assert {link.url for link in plain} == web
    location = hrefs[0].encode("utf-8", "replace").decode("latin-1")
    resolve_location(base.url, location)


def check_shape(data: bytes) -> None:
    """A shape is short, without the URL's host, and the same each time; a mask shows no secret."""
    text = text_of(data)
    url = resolve(None, "http://host.test/" + text)
    if url is not None:
        shape = skeleton(url)
        assert shape == skeleton(url)
        assert shape.startswith("/")
        assert len(shape) <= 12 * len(url) + 12
        is_open(shape)
        masked = mask_secrets(url)
        assert mask_secrets(masked) == masked
    secret = "Zq7" * 3
    for name in ("token", "password", "api_key", "sid"):
        assert secret not in mask_secrets(f"http://h.test/?{name}={secret}&{text}")
    mask_secrets(text)


def check_surt(data: bytes) -> None:
    """A key is one word of ASCII, the same by the short way and by all rules."""
    text = text_of(data)
    for url in (resolve(None, text), resolve(None, "http://host.test/" + text)):
        if url is None or not url.startswith(("http://", "https://")):
            continue
        key = surt(url)
        assert key == surt_by_rules(url)
        assert key.isascii()
        assert " " not in key
        assert "\n" not in key
        assert len(key) <= 9 * len(url.encode()) + 8
    surt(text)


_URLS = (
    b"http://example.com/", b"HTTP://u:p@Example.COM.:80/b/../c/?z=1&utm_source=x&a=%7e#f", b"https://b\xc3\xbccher.example/\xc3\xa9?\xc3\xa9",
    b"http://[::1]:8080/x;jsessionid=1", b"http://0x7f.1/", b"mailto:a@b.example", b"http://a.test/a//b/%2e%2E/?b&a=&b=1&PHPSESSID=2",
    b"https://a.co.uk/%", b"http://h.test/?%", b"http:\\\\a\\b", b"http://h.test/a%2fb%2F%61?x=%c3%bc+%20",
)  # fmt: skip
_URL_WORDS = (
    *(
        b"http://",
        b"https://",
        b"../",
        b"./",
        b"%2e",
        b"%2F",
        b"%",
        b"?",
        b"&",
        b"=",
        b"#",
        b"//",
        b"@",
        b":",
        b"[::1]",
    ),
    *(
        b"utm_source=",
        b"jsessionid=",
        b"PHPSESSID=",
        b"xn--",
        b"\xc3\xbc",
        b"+",
        b";",
        b"^",
        b"|",
        b"'",
        b"\\",
        b"%C3%BC",
    ),
    *(b"2031/07/02", b"8f3a01bc77de", b"index.html", b"%25", b"\t", b"~", b"*", b"%00", b"\xef\xbf\xbd"),
)
TARGETS = (
    Target("url", check_url, _URLS, _URL_WORDS, 600),
    Target(
        "links",
        check_links,
        tuple(bytes([at]) + b"a\n../b?x\n#f\n//h.test/y\n?q\nhttp://x.test/%7e\n" + url for at, url in enumerate(_URLS[:8])),
        _URL_WORDS,
        600,
    ),
    Target("shape", check_shape, (
        b"calendar/2031/07/02?view=day", b"p/red-chair-with-arms-4711.html?token=x&a=b@c.de", b"a/b/a/b/a/b/index.html",
        b"x/8f3a01bc77de/550e8400-e29b-41d4-a716-446655440000?q1=2&q2=3",
    ), _URL_WORDS, 600),
    Target("surt", check_surt, (
        *_URLS, b"(S(abcdefghijklmnopqrstuvwx))/page.aspx?sid=0123456789abcdef0123456789abcdef&b=2&a",
    ), (*_URL_WORDS, b".aspx", b"cfid=", b"&cftoken=", b"www1."), 600),
)  # fmt: skip
