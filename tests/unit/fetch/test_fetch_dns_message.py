"""DNS messages: questions out, answers in, nothing believed that was not asked."""

from __future__ import annotations

import pytest
from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, A, DNSRecord
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.fetch.dns_message import RecordType, Reply, UnsendableNameError, ask, read_reply

QUESTION = ask(0x1234, "www.example.com", RecordType.A)


def answered(*records: RR, question: bytes = QUESTION) -> DNSRecord:
    reply = DNSRecord.parse(question).reply()
    for record in records:
        reply.add_answer(record)
    return reply


def a(name: str, address: str, ttl: int = 60) -> RR:
    return RR(name, QTYPE.A, rdata=A(address), ttl=ttl)


def test_a_question_is_what_others_read_as_one() -> None:
    """H4: by an independent reader."""
    parsed = DNSRecord.parse(QUESTION)
    assert (parsed.header.id, parsed.header.rd) == (0x1234, 1)
    assert (str(parsed.q.qname), parsed.q.qtype) == ("www.example.com.", QTYPE.A)


def test_addresses_come_with_the_shortest_ttl_on_their_way() -> None:
    """H4: the chain of CNAMEs counts."""
    reply = answered(
        RR("WWW.example.com", QTYPE.CNAME, rdata=CNAME("cdn.example.net"), ttl=30),
        a("cdn.example.net", "1.2.3.4", 300),
        a("cdn.example.net", "1.2.3.5", 300),
        a("cdn.example.net", "1.2.3.4", 300),
    )
    assert read_reply(reply.pack(), QUESTION) == Reply(0, truncated=False, addresses=("1.2.3.4", "1.2.3.5"), ttl_s=30)


def test_ipv6_addresses_are_read() -> None:
    """H1: IPv6."""
    question = ask(7, "www.example.com", RecordType.AAAA)
    reply = answered(RR("www.example.com", QTYPE.AAAA, rdata=AAAA("2606:4700::1"), ttl=9), question=question)
    assert read_reply(reply.pack(), question) == Reply(0, truncated=False, addresses=("2606:4700::1",), ttl_s=9)


def test_records_that_the_question_does_not_lead_to_are_ignored() -> None:
    """H4: no poisoning through extra records."""
    reply = answered(a("evil.example.net", "6.6.6.6"), a("www.example.com", "1.2.3.4"))
    found = read_reply(reply.pack(), QUESTION)
    assert found is not None
    assert found.addresses == ("1.2.3.4",)


@pytest.mark.parametrize(
    "forged",
    [
        ask(0x1234, "www.example.com", RecordType.A),
        answered(a("www.example.com", "6.6.6.6"), question=ask(0x1235, "www.example.com", RecordType.A)).pack(),
        answered(a("www.example.org", "6.6.6.6"), question=ask(0x1234, "www.example.org", RecordType.A)).pack(),
        answered(question=ask(0x1234, "www.example.com", RecordType.AAAA)).pack(),
        b"",
        b"\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\xc0\x0c",
    ],
)
def test_an_answer_to_another_question_is_not_believed(forged: bytes) -> None:
    """H4: id, name and type are compared."""
    assert read_reply(forged, QUESTION) is None


def test_failures_and_truncation_are_told() -> None:
    """H4: what the resolver acts on."""
    missing = answered()
    missing.header.rcode = RCODE.NXDOMAIN
    assert read_reply(missing.pack(), QUESTION) == Reply(3, truncated=False, addresses=(), ttl_s=0)
    cut = answered()
    cut.header.tc = 1
    assert read_reply(cut.pack(), QUESTION) == Reply(0, truncated=True, addresses=(), ttl_s=0)


def test_an_answer_without_its_question_is_believed_only_where_it_says_no() -> None:
    """H4: refusals and cut answers; never one that names addresses or denies the name."""
    bare = {code: b"\x12\x34\x81" + bytes([0x80 | code]) + bytes(8) for code in (0, 3, 5)}
    assert read_reply(bare[0], QUESTION) is None
    assert read_reply(bare[3], QUESTION) is None
    assert read_reply(bare[5], QUESTION) == Reply(5, truncated=False, addresses=(), ttl_s=0)
    assert read_reply(answered().truncate().pack(), QUESTION) == Reply(0, truncated=True, addresses=(), ttl_s=0)


@pytest.mark.parametrize("name", ["a..example", "x" * 64 + ".example", ".".join(["abcdefgh"] * 30), ""])
def test_a_name_that_no_question_can_hold_is_told(name: str) -> None:
    """H4: instead of being cut."""
    with pytest.raises(UnsendableNameError):
        ask(1, name, RecordType.A)


def test_cname_loops_end() -> None:
    """Q5: a chain that bites its own tail has no address."""
    reply = answered(
        RR("www.example.com", QTYPE.CNAME, rdata=CNAME("b.example"), ttl=1),
        RR("b.example", QTYPE.CNAME, rdata=CNAME("www.example.com"), ttl=1),
    )
    found = read_reply(reply.pack(), QUESTION)
    assert found is not None
    assert found.addresses == ()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 120), st.binary(max_size=6))
def test_no_bytes_whatsoever_break_the_reader(tail: bytes, at: int, damage: bytes) -> None:
    """Q5: pointers in circles, lengths beyond the end, anything."""
    wire = bytearray(answered(a("www.example.com", "1.2.3.4")).pack() + tail)
    wire[at : at + len(damage)] = damage
    reply = read_reply(bytes(wire), QUESTION)
    assert reply is None or isinstance(reply, Reply)
