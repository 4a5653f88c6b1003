"""WARC records: names, dates, lines."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.store import warc
from nephila.store.warc import CrawlIdentity, Exchanged, RecordKind


def _named(secret: int, token: int, attempt: int, kind: RecordKind = RecordKind.RESPONSE) -> str:
    return CrawlIdentity(secret).lease_ids(token, attempt) + kind


def test_ids_are_uuids_of_our_own_making() -> None:
    """W1: version 8 and the RFC 9562 variant, so that any tool takes them."""
    for token in range(50):
        parsed = uuid.UUID(_named(5, token, 1).removeprefix("urn:uuid:"))
        assert parsed.variant == uuid.RFC_4122
        assert parsed.version == 8


def test_ids_follow_from_secret_token_attempt_and_kind() -> None:
    """W1: the same four give the same id; changing one of them changes it."""
    base = _named(1, 2, 3)
    assert base == _named(1, 2, 3)
    others = {_named(9, 2, 3), _named(1, 9, 3), _named(1, 2, 9), _named(1, 2, 3, RecordKind.METADATA), base}
    assert len(others) == 5


@pytest.mark.parametrize("secret", [0, 1, 2**64 - 1, 2**128, 2**600])
def test_any_secret_will_do(secret: int) -> None:
    """U3: the crawl's secret may be of any size."""
    assert _named(secret, 2**64 - 1, 1).startswith("urn:uuid:")


@settings(max_examples=200, deadline=None)
@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_dates_keep_their_milliseconds(at: int) -> None:
    """W1: stored instants are UTC milliseconds, there and back."""
    assert warc.parse_date(warc.warc_date(at)) == at


def test_a_date_as_the_standard_writes_it() -> None:
    """W1: WARC 1.1 dates carry a fraction and a Z."""
    assert warc.warc_date(1_767_225_600_007) == "2026-01-01T00:00:00.007Z"
    assert warc.parse_date("2026-01-01T00:00:00Z") == 1_767_225_600_000


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_a_target_uri_never_breaks_its_line(text: str) -> None:
    """W1: no white space, control character or angle bracket reaches a field, whatever we were given."""
    uri = warc.target_uri("http://example.com/" + text)
    assert not set(uri) & set(map(chr, range(33))) | set(uri) & set("<>\x7f")


def test_an_ordinary_url_is_left_alone() -> None:
    """W1: nothing is encoded that need not be."""
    url = "https://example.com/a%20b?x=[1]&y=%7C|"
    assert warc.target_uri(url) == url


def test_a_value_cannot_start_a_field_of_its_own() -> None:
    """Q5: a line end inside a value becomes a space."""
    block = warc.fields_block([("note-title", "a\r\nvia: https://forged.example/\nx")])
    assert block == b"note-title: a  via: https://forged.example/ x\r\n"


def test_digests_are_sha1_in_base_32() -> None:
    """W1: the form that warcio, FastWARC and pywb compare."""
    assert warc.digest_of(b"") == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def test_a_request_record_line_by_line() -> None:
    """W1: what is sent is stored verbatim and tied to its answer."""
    ids = CrawlIdentity(1).lease_ids(2, 3)
    exchange = Exchanged(ids, "2026-01-01T00:00:00.000Z", "http://example.com/", "192.0.2.1", "http/1.1")
    record = warc.request(exchange, b"GET / HTTP/1.1\r\n\r\n")
    assert record.decode().split("\r\n") == [
        "WARC/1.1",
        "WARC-Type: request",
        f"WARC-Record-ID: <{ids + RecordKind.REQUEST}>",
        "WARC-Date: 2026-01-01T00:00:00.000Z",
        "WARC-Target-URI: http://example.com/",
        "WARC-IP-Address: 192.0.2.1",
        "WARC-Protocol: http/1.1",
        f"WARC-Concurrent-To: <{ids + RecordKind.RESPONSE}>",
        "WARC-Block-Digest: " + warc.digest_of(b"GET / HTTP/1.1\r\n\r\n"),
        "Content-Type: application/http;msgtype=request",
        "Content-Length: 18",
        "",
        "GET / HTTP/1.1",
        "",
        "",
        "",
        "",
    ]
