"""Registrable domains by the Public Suffix List."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.urls import registrable_domain


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("a.b.unlisted-tld", "b.unlisted-tld"),
        ("me.github.io", "me.github.io"),
        ("x.me.github.io", "me.github.io"),
        ("www.city.kobe.jp", "city.kobe.jp"),
    ],
)
def test_the_registrable_domain_is_one_label_more_than_the_suffix(host: str, domain: str) -> None:
    """S4: eTLD+1, IDN and privately run suffixes included."""
    assert registrable_domain(host) == domain


@pytest.mark.parametrize(
    "host", ["com", "co.uk", "github.io", "localhost", "127.0.0.1", "[::1]", "::1", "a..b.com", ""]
)
def test_what_has_no_registrable_part_stands_for_itself(host: str) -> None:
    """S4: every host has a domain to count under."""
    assert registrable_domain(host) == host


@given(
    st.lists(
        st.sampled_from(["a", "www", "co", "uk", "com", "github", "io", "kobe", "jp", "xn--p1ai", "1"]),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=100, deadline=None)
def test_a_domain_is_a_suffix_of_its_host_and_its_own_domain(labels: list[str]) -> None:
    """S4: hosts of one domain agree on it."""
    host = ".".join(labels)
    domain = registrable_domain(host)
    assert host == domain or host.endswith("." + domain)
    assert registrable_domain(domain) == domain
