"""Event lines of what was taken down: the evidence stays, the page is not told any more."""

from __future__ import annotations

import json

import pytest

from nephila.observe.line import decode_line
from nephila.observe.redaction import masked_line, masked_url
from nephila.urls import is_taken_down

LINE = (
    b'{"ts":"2026-01-31T12:00:00.123Z","t_ms_from_start":4123,"event":"fetch_ok","worker":"0",'
    b'"url":"http://a.test/people/jane","fingerprint":"000102030405060708090a0b0c0d0e0f","host":"a.test","status":200,'
    b'"detail":"to http://a.test/people/jane and http://b.test/x","via":"http://a.test/people/","sent_ms":5}\n'
)


def is_jane(url: str) -> bool:
    return url == "http://a.test/people/jane"


def test_path_fingerprint_and_mentions_go_and_the_rest_stays_in_as_many_bytes() -> None:
    """K2, O1: host, times and status are what an audit needs."""
    masked = masked_line(LINE, is_jane, lambda _host, _fingerprint: False)
    assert len(masked) == len(LINE)
    assert b"jane" not in masked
    told = json.loads(masked)
    assert told["url"] == "http://a.test/***"
    assert told["detail"] == "to http://a.test/*** and http://b.test/x"
    assert told["via"] == "http://a.test/people/"
    assert set(told["fingerprint"]) == {"0"}
    found = decode_line(masked)
    assert found is not None
    assert (found[0].host, found[0].status, found[0].sent_ms) == ("a.test", 200, 5)


def test_a_page_is_known_by_its_fingerprint_where_its_secrets_were_masked() -> None:
    """K2, K4: the spelling in the log need not be the one that was taken down."""
    wanted = bytes.fromhex("000102030405060708090a0b0c0d0e0f")
    masked = masked_line(LINE, lambda _url: False, lambda _host, fingerprint: fingerprint == wanted)
    assert b'"url":"http://a.test/***"' in masked


@pytest.mark.parametrize("line", [b'{"ts":"2026', b"\n", b"[1]\n", b"\xff\xfe\n", LINE.replace(b"jane", b"john")])
def test_other_lines_and_torn_ones_are_left_alone(line: bytes) -> None:
    """K1: nothing else is changed."""
    assert masked_line(line, is_jane, lambda _host, _fingerprint: False) == line


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("http://a.test/", "http://a.test/"),
        ("http://a.test/x", "http://a.test/*"),
        ("https://a.test:8/x?y#z", "https://a.test:8/***"),
        ("http://a.test", "http://a.test"),
    ],
)
def test_a_masked_url_is_never_longer(url: str, masked: str) -> None:
    """K2: so a line always fits where it was."""
    assert masked_url(url) == masked
    assert len(masked) <= len(url)
    assert is_taken_down(masked) == (masked.endswith("*"))
