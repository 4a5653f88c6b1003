"""Which servers are offered HTTP/2, by the setting and by what was learned."""

from __future__ import annotations

import ssl

import pytest

from nephila.fetch.tls import tell, wants_another_protocol
from nephila.fetch.tongues import Tongues

ONE, OTHER = "https://a.test", "https://b.test:8443"


@pytest.mark.parametrize(
    ("choice", "offered", "falls_back"), [("fallback", False, True), ("prefer", True, False), ("off", False, False)]
)
def test_the_setting_says_who_is_offered_what(choice: str, offered: bool, falls_back: bool) -> None:
    """H1: before anything is known of a server."""
    tongues = Tongues(choice)
    assert (tongues.offers_http2(ONE), tongues.falls_back(ONE)) == (offered, falls_back)


def test_what_a_server_wants_is_remembered_for_it_alone_and_not_for_ever() -> None:
    """H1, Q5: by origin; those that were met longest ago are forgotten first."""
    tongues = Tongues("fallback", size=3)
    tongues.learn(ONE, http2=True)
    assert (tongues.offers_http2(ONE), tongues.falls_back(ONE)) == (True, False)
    assert not tongues.offers_http2(OTHER)
    for number in range(10):
        tongues.learn(f"https://{number}.test", http2=True)
        tongues.learn(OTHER, http2=True)
    assert len(tongues) == 3
    assert not tongues.offers_http2(ONE)
    assert tongues.offers_http2(OTHER)


def test_a_server_that_refuses_http2_is_not_offered_it_again() -> None:
    """H1: where all others are."""
    tongues = Tongues("prefer")
    tongues.learn(ONE, http2=False)
    assert (tongues.offers_http2(ONE), tongues.offers_http2(OTHER)) == (False, True)


def test_the_alert_is_known_by_what_openssl_calls_it() -> None:
    """H1, H5: the ssl module of Python 3.11 has no name for it."""
    alert = ssl.SSLError(1, "[SSL] tlsv1 alert no application protocol (_ssl.c:1006)")
    other = ssl.SSLError(1, "[SSL: SSLV3_ALERT_HANDSHAKE_FAILURE] sslv3 alert handshake failure (_ssl.c:1006)")
    assert (wants_another_protocol(alert), wants_another_protocol(other)) == (True, False)
    assert tell(alert) == "the server speaks no HTTP that it was offered"
