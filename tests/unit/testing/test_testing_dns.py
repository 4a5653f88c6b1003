from __future__ import annotations

import dnslib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.testing.web.dns import answer_query

NAMES = {"site1.test": "127.1.1.2"}


def ask(name: str, kind: str = "A") -> dnslib.DNSRecord:
    query = dnslib.DNSRecord.question(name, kind)
    response = dnslib.DNSRecord.parse(answer_query(query.pack(), NAMES.get))
    assert response.header.id == query.header.id
    assert str(response.q.qname).lower() == name.lower() + "."
    return response


@pytest.mark.parametrize("name", ["site1.test", "SITE1.test"])
def test_a_known_name_has_its_address(name: str) -> None:
    (record,) = ask(name).rr
    assert str(record.rdata) == "127.1.1.2"
    assert record.ttl > 0


def test_an_unknown_name_does_not_exist() -> None:
    response = ask("nobody.test")
    assert (response.header.rcode, response.rr) == (dnslib.RCODE.NXDOMAIN, [])


def test_a_known_name_has_no_other_records() -> None:
    response = ask("site1.test", "AAAA")
    assert (response.header.rcode, response.rr) == (dnslib.RCODE.NOERROR, [])


@given(st.binary(max_size=80))
@settings(max_examples=200, deadline=None)
def test_no_message_breaks_it(message: bytes) -> None:
    response = answer_query(message, NAMES.get)
    assert response == b"" or response[:2] == message[:2]
