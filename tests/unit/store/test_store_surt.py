"""Keys of the index, against the tool that others use."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.store.surt import surt, surt_by_rules

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the oracle's own regular expressions are written in an old style
    from surt import surt as oracle


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.com/A/B/?b=1&a=2", "com,example)/a/b?a=2&b=1"),
        ("https://example.com:443/x//y/", "com,example)/x/y"),
        ("https://www.example.com:8443/index.html?", "com,example:8443)/index.html"),
        ("http://127.0.0.1:8000/", "1,0,0,127:8000)/"),
        ("http://[::1]:81/x", "::1:81)/x"),
        ("http://xn--bcher-kva.example/%E2%82%AC?q=%20a", "example,xn--bcher-kva)/%e2%82%ac?q=%20a"),
        ("http://ex.com/?sid=0123456789abcdef0123456789abcdef&a", "com,ex)/?a"),
        ("http://ex.com/(a(0123456789abcdef01234567))/x.aspx", "com,ex)/x.aspx"),
        ("http://ex.com/a%2523", "com,ex)/a%23"),
        ("http://ex.com/..%2f../x", "com,ex)/x"),
        ("dns:example.com", "dns:example.com"),
    ],
)
def test_keys_are_those_of_the_usual_tools(url: str, key: str) -> None:
    """W1: what pywb and cdxj-indexer look up."""
    assert surt(url) == key


_SESSIONS = ("sid=" + "a" * 32, "jsessionid=" + "B" * 32, "PHPSESSID=" + "c" * 32, "ASPSESSIONIDabcdefgh=" + "d" * 24)
_ODDITIES = ("cfid=1&cftoken=2", "(0123456789abcdefghijklmn)/", "x.aspx", "//", "..", *_SESSIONS)
_ESCAPES = ("%41", "%25", "%2525", "%2F", "%2e", "%c3%a9", "%zz")
_PIECES = st.sampled_from([*"aB0/.?&=;()|'~+,:@", *_ESCAPES, *_ODDITIES])
_HOSTS = st.sampled_from(
    ["ex.com", "www.ex.com", "www12.ex.com:8080", "192.0.2.1:80", "www.com", "a.b.", "www1.www.b.c"]
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["http", "https"]), _HOSTS, st.lists(_PIECES, max_size=10))
def test_any_url_has_the_same_key_as_elsewhere(scheme: str, host: str, pieces: list[str]) -> None:
    """W1: byte for byte the key of the oracle."""
    url = f"{scheme}://{host}/{''.join(pieces)}"
    assert surt(url) == oracle(url)


@given(st.from_regex(r"https?://[a-z0-9.:-]{1,20}(/[A-Za-z0-9_.~,:=+!$&*@-]{0,6}){0,5}/?", fullmatch=True))
def test_the_short_way_comes_to_the_same_key(url: str) -> None:
    """W1: plain URLs are keyed without the rules, as by the rules."""
    assert surt(url) == surt_by_rules(url)
