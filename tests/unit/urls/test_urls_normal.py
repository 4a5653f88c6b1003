"""One spelling for all spellings of a URL."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nephila.urls import Address, Identifier, NormalRules, UrlLimits
from nephila.urls.normal import holds_rare
from nephila.urls.tracking import SESSION_NAMES, SESSION_PREFIXES, TRACKING_NAMES, TRACKING_PREFIXES

STANDARD = NormalRules()
NO_LIMITS = UrlLimits(10**9, 10**9)
ALL_OFF = NormalRules(
    tidy_percent=False,
    tidy_query=False,
    sort_query=False,
    drop_tracking=False,
    drop_sessions=False,
    drop_trailing_slash=False,
)


def key(url: str, rules: NormalRules = STANDARD) -> str | None:
    address = Identifier(1, rules, NO_LIMITS).identify(url)
    return address.key if isinstance(address, Address) else None


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://User:pw@EXAMPLE.com:80/?#frag", "http://example.com/"),
        ("https://bücher.example:443/a/./b/../c", "https://xn--bcher-kva.example/a/c"),
        ("http://h:8080/", "http://h:8080/"),
        ("http://h/%7euser/%41%2d%c3%a9", "http://h/~user/A-%C3%A9"),
        ("http://h/a%2fb%3f%23%25", "http://h/a%2Fb%3F%23%25"),
        ("http://h/a%21b(%28c%2Cd%3a%40", "http://h/a!b((c,d:@"),
        ("http://h/[x]|y^z'", "http://h/%5Bx%5D%7Cy%5Ez%27"),
        ("http://h/100%", "http://h/100%25"),
        ("http://h/%%37E", "http://h/%257E"),
        ("http://h/?b=2&a=1", "http://h/?a=1&b=2"),
        ("http://h/?b=2&a=2&b=1&a=1", "http://h/?a=2&a=1&b=2&b=1"),
        ("http://h/?q=a+b%20c", "http://h/?q=a%20b%20c"),
        ("http://h/?q=a%2bb%26c%3dd%3be", "http://h/?q=a%2Bb%26c%3Dd%3Be"),
        ("http://h/?u=http%3A%2F%2Fx%2F%3Fy", "http://h/?u=http://x/?y"),
        ("http://h/?&a=&&b", "http://h/?a&b"),
        ("http://h/?=", "http://h/?="),
        ("http://h/?a==", "http://h/?a=="),
        ("http://h/?utm_source=x&id=1&UTM_Medium=y&gclid=z&fbclid=1&msclkid=2", "http://h/?id=1"),
        ("http://h/?a=1&amp;utm_source=x&PHPSESSID=12&sid=3&jsessionid=4", "http://h/?a=1"),
        ("http://h/?ASPSESSIONIDQQBCRSTA=x", "http://h/"),
        ("http://h/a;jsessionid=12.node1?b", "http://h/a?b"),
        ("http://h/a;JSESSIONID=12;v=1/b", "http://h/a;v=1/b"),
        ("http://h/(S(lit3py55t21z5v55vlm25s55))/p.aspx", "http://h/p.aspx"),
        ("http://h/(F(abc)S(def))", "http://h/"),
        ("http://h/a/", "http://h/a"),
        ("http://h/a//", "http://h/a"),
        ("http://h//", "http://h/"),
        ("http://h/a/?b", "http://h/a?b"),
        ("http://h/", "http://h/"),
    ],
)
def test_spellings_become_one(url: str, normal: str) -> None:
    """U2: every rule of the normal form."""
    assert key(url) == normal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h/", "https://h/"),
        ("http://h/", "http://www.h/"),
        ("http://h/", "http://h:8080/"),
        ("http://h/a", "http://h/A"),
        ("http://h/", "http://h/index.html"),
        ("http://h/a/b", "http://h/a%2Fb"),
        ("http://h/a+b", "http://h/a%20b"),
        ("http://h/a;b", "http://h/a%3Bb"),
        ("http://h/a//b", "http://h/a/b"),
        ("http://h/?a+b", "http://h/?a%2Bb"),
        ("http://h/?a=1&b=2", "http://h/?a=1%26b=2"),
        ("http://h/?a=1&a=2", "http://h/?a=2&a=1"),
        ("http://h/?a=b", "http://h/?A=b"),
        ("http://h/?id=1", "http://h/?id=2"),
        ("http://h/?session=1", "http://h/?session=2"),
        ("http://h/?a%25", "http://h/?a%2525"),
        ("http://h/?q", "http://h/"),
        ("http://h/?=a", "http://h/?a"),
    ],
)
def test_what_may_be_different_stays_apart(one: str, other: str) -> None:
    """U2: two resources never share a key because of a spelling that may matter."""
    assert key(one) != key(other)


@pytest.mark.parametrize(
    ("rule", "url", "left_alone"),
    [
        ("tidy_percent", "http://h/%7e", "http://h/%7e"),
        ("tidy_query", "http://h/?b=&c+d", "http://h/?b=&c+d"),
        ("sort_query", "http://h/?b&a", "http://h/?b&a"),
        ("drop_tracking", "http://h/?utm_source=x", "http://h/?utm_source=x"),
        ("drop_sessions", "http://h/a;jsessionid=1?sid=2", "http://h/a;jsessionid=1?sid=2"),
        ("drop_trailing_slash", "http://h/a/", "http://h/a/"),
    ],
)
def test_each_rule_has_a_switch(rule: str, url: str, left_alone: str) -> None:
    """U2: each rule can be switched off alone, and alone on."""
    assert key(url) != left_alone
    assert key(url, replace(NormalRules(), **{rule: False})) == left_alone
    assert key(url, ALL_OFF) == left_alone
    assert key(url, replace(ALL_OFF, **{rule: True})) == key(url)


def test_a_domain_may_have_rules_of_its_own() -> None:
    """U2: rules are switched per registrable domain."""
    rules = NormalRules(overrides={"shop.example": replace(NormalRules(), sort_query=False, extra_tracking=("ref",))})
    assert key("http://www.shop.example/?b&a&ref=1", rules) == "http://www.shop.example/?b&a"
    assert key("http://www.other.example/?b&a&ref=1", rules) == "http://www.other.example/?a&b&ref=1"


def test_further_names_can_be_dropped() -> None:
    """U2: the maintained list can be added to, with a star for the rest of a name."""
    rules = replace(NormalRules(), extra_tracking=("Ref", "x_*"))
    assert key("http://h/?REF=1&refs=2&x_a=3&x=4", rules) == "http://h/?refs=2&x=4"


def test_the_list_is_in_lower_case_and_spares_names_of_content() -> None:
    """U2: the maintained list keeps its own promises."""
    names = {*TRACKING_NAMES, *TRACKING_PREFIXES, *SESSION_NAMES, *SESSION_PREFIXES}
    assert all(name == name.lower() for name in names)
    for name in ("id", "ref", "source", "session", "page", "q", "s", "from", "code", "lang", "campaign"):
        assert name not in names
        assert not name.startswith((*TRACKING_PREFIXES, *SESSION_PREFIXES))


def test_a_session_id_stays_where_its_going_would_make_a_dot_segment() -> None:
    """U2: the key is itself a URL that browsers leave as it is."""
    assert key("http://h/a/..;sid=1/b") == "http://h/a/..;sid=1/b"


PIECES = st.sampled_from(
    [
        *"/?&=;.%+#:@!$'()*,[]|^~ -_aZ9",
        *("//", "..", "%2e", "%2F", "%7e", "%C3", "%zz", "%%", "%25", "%26", "%3d", "%2B", "%37"),
        *("utm_source", "sid", "amp;", ";jsessionid=", "/(S(ab1))", "/..;sid=", "é", "日", "=", "=&"),
    ]
)


@given(st.lists(PIECES, max_size=14).map("".join))
@example("%%37E")
@example("/.;sid=1")
@example("/(S(a/(S(b))))")
@example("/(S(ab1));jsessionid=")
@example("?a=&a==&=&&")
@settings(max_examples=200, deadline=None)
def test_the_normal_form_of_a_normal_form_is_itself(tail: str) -> None:
    """U2: idempotent, whatever the site wrote."""
    normal = key(f"http://h/{tail}")
    assert normal is not None
    assert key(normal) == normal


@given(
    st.lists(PIECES, max_size=14).map("".join),
    st.sets(st.sampled_from(sorted(set(NormalRules.__slots__) - {"extra_tracking", "overrides"}))),
)
@settings(max_examples=200, deadline=None)
def test_it_is_idempotent_under_any_choice_of_rules(tail: str, off: set[str]) -> None:
    """U2: switching rules off breaks no other rule."""
    rules = replace(NormalRules(), **dict.fromkeys(off, False))
    normal = key(f"http://h/{tail}", rules)
    assert normal is not None
    assert key(normal, rules) == normal


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)), max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_different_parameters_does_not_matter(pairs: list[tuple[str, int]], random: object) -> None:
    """U2: sorted by name, repeats in their order."""
    by_name = sorted(pairs, key=lambda pair: pair[0])
    url = "http://h/?" + "&".join(f"{name}={value}" for name, value in pairs)
    expected = "http://h/" + ("?" if pairs else "") + "&".join(f"{name}={value}" for name, value in by_name)
    assert key(url) == expected


@given(st.text("[]|^{}\\`';(/?%a", max_size=30))
@settings(max_examples=100, deadline=None)
def test_the_look_for_rare_characters_misses_none(tail: str) -> None:
    """U2: the shortcut for pages without rare characters is one."""
    url = f"http://h/{tail}"
    alone = Identifier(1, NormalRules(), NO_LIMITS).identify(url)
    with_rare = Identifier(1, NormalRules(), NO_LIMITS).identify_links(None, ["http://h/;[('", url])[1]
    assert alone == with_rare
    assert holds_rare(tail) == any(char in tail for char in "[]|^{}\\`';(")
