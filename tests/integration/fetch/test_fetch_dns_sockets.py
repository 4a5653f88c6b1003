"""Names resolved by real name servers on loopback."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, SOA, A, DNSRecord

from nephila.fetch import DnsResolver
from nephila.fetch.dns_system import SystemNames, read_system_names
from nephila.interfaces.network import Resolved, Unresolved
from nephila.model.exchange import FailureKind, FetchFailed, FetchRequest
from nephila.model.settings import DnsSettings
from nephila.pipeline.narration import _circumstances

Run = Callable[[Any], Any]


class NameServer(asyncio.DatagramProtocol):
    """Answers from a zone: a list of records, a response code, or None for silence."""

    def __init__(self, zone: dict[str, Any]) -> None:
        self.zone = zone
        self.asked: list[tuple[str, str]] = []
        self.asked_tcp = 0
        self.authority: RR | None = None

    def reply_to(self, data: bytes, *, tcp: bool = False) -> bytes | None:
        request = DNSRecord.parse(data)
        name, kind = str(request.q.qname).rstrip("."), QTYPE[request.q.qtype]
        entry = self.zone.get(name, RCODE.NXDOMAIN)
        if entry is None:
            return None
        reply = request.reply()
        if isinstance(entry, int):
            reply.header.rcode = entry
            if self.authority is not None:
                reply.add_auth(self.authority)
            return bytes(reply.pack())
        for record in entry:
            if QTYPE[record.rtype] in {kind, "CNAME"}:
                reply.add_answer(record)
        packed = bytes(reply.pack())
        return packed if tcp or len(packed) <= 512 else bytes(reply.truncate().pack())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        question = DNSRecord.parse(data).q
        self.asked.append((str(question.qname).rstrip("."), QTYPE[question.qtype]))
        reply = self.reply_to(data)
        if reply is not None:
            self.transport.sendto(b"\xff\xff" + reply[2:], addr)  # a forged one first: another id
            self.transport.sendto(reply, addr)

    async def over_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked_tcp += 1
        size = int.from_bytes(await reader.readexactly(2))
        reply = self.reply_to(await reader.readexactly(size), tcp=True) or b""
        writer.write(len(reply).to_bytes(2) + reply)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def name_server(
    zone: dict[str, Any], kind: type[NameServer] = NameServer
) -> AsyncIterator[tuple[NameServer, str]]:
    """A server on UDP and TCP, and its HOST:PORT."""
    protocol = kind(zone)
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(protocol.over_tcp, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport, _ = await loop.create_datagram_endpoint(lambda: protocol, local_addr=("127.0.0.1", port))
    try:
        yield protocol, f"127.0.0.1:{port}"
    finally:
        transport.close()
        server.close()
        await asyncio.sleep(0)


def a(name: str, address: str, ttl: int = 60) -> RR:
    return RR(name, QTYPE.A, rdata=A(address), ttl=ttl)


class Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def wall_ms(self) -> int:
        return self.now

    def steady_ms(self) -> int:
        return self.now

    def boot_id(self) -> str:
        return "test"


def resolver(*servers: str, clock: Time | None = None, timeout_s: float = 2.0, **settings: Any) -> DnsResolver:
    return DnsResolver(DnsSettings(resolvers=servers, timeout_s=timeout_s, **settings), clock or Time())


def test_a_name_has_its_addresses_ipv4_first(run: Run) -> None:
    """H4, H1: A and AAAA together, through a chain of aliases, forged datagrams ignored."""

    async def main() -> Any:
        zone = {
            "www.test": [
                RR("www.test", QTYPE.CNAME, rdata=CNAME("cdn.test"), ttl=30),
                a("cdn.test", "1.2.3.4"),
                RR("cdn.test", QTYPE.AAAA, rdata=AAAA("2606:4700::1"), ttl=90),
            ]
        }
        async with name_server(zone) as (_, where):
            return await resolver(where).resolve("WWW.test.")

    assert run(main()) == Resolved(("1.2.3.4", "2606:4700::1"), 30.0)


def test_a_name_that_does_not_exist_or_has_no_address_is_final(run: Run) -> None:
    """H4, H5: NXDOMAIN and no data; remembered for a while."""

    async def main() -> Any:
        async with name_server({"empty.test": []}) as (server, where):
            names = resolver(where)
            answers = [await names.resolve(name) for name in ("none.test", "empty.test", "none.test")]
            return answers, server.asked.count(("none.test", "A"))

    answers, asked = run(main())
    assert [answer.kind for answer in answers] == [FailureKind.NO_SUCH_NAME] * 3
    assert asked == 1


def test_a_server_that_fails_or_is_silent_is_passed_over(run: Run) -> None:
    """H4: failover on SERVFAIL, REFUSED, silence and a closed port; the good one is asked first from then on."""

    async def main() -> Any:
        good = {"a.test": [a("a.test", "1.2.3.4")], "b.test": [a("b.test", "1.2.3.5")]}
        async with name_server(good) as (_, where):
            for bad in ({"a.test": RCODE.SERVFAIL}, {"a.test": RCODE.REFUSED}, {"a.test": None}):
                async with name_server(bad) as (server, broken):
                    names = resolver(broken, where, timeout_s=0.2)
                    assert await names.resolve("a.test") == Resolved(("1.2.3.4",), 60.0)
                    assert await names.resolve("b.test") == Resolved(("1.2.3.5",), 60.0)
                    assert not any(name == "b.test" for name, _ in server.asked)
            names = resolver(broken, where)  # nobody listens there any more
            return await names.resolve("a.test")

    assert run(main()) == Resolved(("1.2.3.4",), 60.0)


def test_a_question_that_got_lost_is_asked_again_within_its_try(run: Run) -> None:
    """H4: a burst of names overflows a server's buffer; a name whose datagram was dropped must not wait for seconds."""

    async def main() -> Any:
        async with name_server({"lost.test": None}) as (server, where):
            found = [a("lost.test", "1.2.3.4")]
            asyncio.get_running_loop().call_later(0.2, server.zone.update, {"lost.test": found})
            answer = await asyncio.wait_for(resolver(where, timeout_s=20.0, tries=1).resolve("lost.test"), 10)
            return answer, server.asked.count(("lost.test", "A"))

    assert run(main()) == (Resolved(("1.2.3.4",), 60.0), 2)


def test_when_all_fail_the_failure_is_passing(run: Run) -> None:
    """H4, H5: typed dns, after the number of tries in the settings."""

    async def main() -> Any:
        async with name_server({"a.test": RCODE.SERVFAIL}) as (server, where):
            return await resolver(where, tries=3).resolve("a.test"), server.asked.count(("a.test", "A"))

    answer, asked = run(main())
    assert isinstance(answer, Unresolved)
    assert (answer.kind, asked) == (FailureKind.DNS, 3)


def test_the_last_known_address_serves_when_all_fail(run: Run) -> None:
    """H4: marked stale, and the resolvers are asked again after a while."""

    async def main() -> Any:
        clock = Time()
        async with name_server({"a.test": [a("a.test", "1.2.3.4")]}) as (server, where):
            names = resolver(where, clock=clock, negative_ttl_s=60)
            first = await names.resolve("a.test")
            server.zone["a.test"] = RCODE.SERVFAIL
            clock.now += 61_000
            second = await names.resolve("a.test")
            server.zone["a.test"] = [a("a.test", "1.2.3.9")]
            third = await names.resolve("a.test")
            clock.now += 61_000
            return first, second, third, await names.resolve("a.test")

    first, second, third, fourth = run(main())
    assert first == Resolved(("1.2.3.4",), 60.0)
    assert second == third == Resolved(("1.2.3.4",), 0.0, stale=True)
    assert fourth == Resolved(("1.2.3.9",), 60.0)


def test_answers_are_asked_for_again_after_their_ttl(run: Run) -> None:
    """H4: TTL-aware cache."""

    async def main() -> Any:
        clock = Time()
        async with name_server({"a.test": [a("a.test", "1.2.3.4", 30)]}) as (server, where):
            names = resolver(where, clock=clock)
            for wait_ms in (0, 29_000, 2_000):
                clock.now += wait_ms
                await names.resolve("a.test")
            return server.asked.count(("a.test", "A"))

    assert run(main()) == 2


def test_equal_questions_at_the_same_time_are_one(run: Run) -> None:
    """H4: and an asker that gives up does not take the answer from the others."""

    async def main() -> Any:
        async with name_server({"a.test": [a("a.test", "1.2.3.4")]}) as (server, where):
            names = resolver(where)
            tasks = [asyncio.create_task(names.resolve("a.test")) for _ in range(20)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            return answers[1:], server.asked.count(("a.test", "A"))

    answers, asked = run(main())
    assert answers == [Resolved(("1.2.3.4",), 60.0)] * 19
    assert asked == 1


def test_an_answer_that_does_not_fit_is_asked_for_over_tcp(run: Run) -> None:
    """H4: TC set."""
    many = [f"1.2.{n // 200}.{n % 200}" for n in range(60)]

    async def main() -> Any:
        async with name_server({"big.test": [a("big.test", address) for address in many]}) as (server, where):
            return await resolver(where).resolve("big.test"), server.asked_tcp

    answer, over_tcp = run(main())
    assert sorted(answer.addresses) == sorted(many)
    assert over_tcp == 1


def aaaa(name: str, count: int) -> list[RR]:
    return [RR(name, QTYPE.AAAA, rdata=AAAA(f"2606:4700::{n + 1:x}"), ttl=60) for n in range(count)]


class OnlyDatagrams(NameServer):
    """Hangs up on TCP, as a firewall may."""

    async def over_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        self.asked_tcp += 1
        writer.transport.abort()


def test_where_tcp_is_barred_what_fits_a_datagram_must_do(run: Run) -> None:
    """H4: the IPv4 addresses of a name are good though its IPv6 ones do not fit; who has all of them is asked first."""
    zone = {"big.test": [a("big.test", "1.2.3.4"), *aaaa("big.test", 40)]}

    async def main() -> Any:
        async with name_server(zone, OnlyDatagrams) as (server, barred), name_server(zone) as (_, where):
            alone = await resolver(barred, timeout_s=0.5).resolve("big.test")
            return alone, server.asked_tcp, await resolver(barred, where, timeout_s=0.5).resolve("big.test")

    alone, over_tcp, with_another = run(main())
    assert alone == Resolved(("1.2.3.4",), 60.0)
    assert over_tcp > 0
    assert len(with_another.addresses) == 41


def test_a_cut_answer_does_not_say_that_there_is_no_address(run: Run) -> None:
    """H4, H5: the name has too many addresses for a datagram, and none of the other type: a passing failure."""

    async def main() -> Any:
        async with name_server({"six.test": aaaa("six.test", 40)}, OnlyDatagrams) as (_, where):
            return await resolver(where, timeout_s=0.5).resolve("six.test")

    assert run(main()).kind is FailureKind.DNS


def test_own_resolvers_are_asked_for_everything_and_the_system_for_what_it_knows(run: Run) -> None:
    """H4: the hosts file and localhost belong to the machine's own configuration."""

    async def main() -> Any:
        async with name_server({"localhost": [a("localhost", "9.9.9.9")], "box.lan": []}) as (_, where):
            own = DnsResolver(DnsSettings(resolvers=(where,)), Time(), SystemNames(hosts={"box.lan": ("10.0.0.1",)}))
            system = DnsResolver(DnsSettings(), Time(), SystemNames(hosts={"box.lan": ("10.0.0.1",)}))
            return [await names.resolve(name) for names in (own, system) for name in ("localhost", "box.lan", "x.test")]

    own_local, own_box, own_x, local, box, unknown = run(main())
    assert own_local.addresses == ("9.9.9.9",)
    assert own_box.kind is own_x.kind is FailureKind.NO_SUCH_NAME
    assert local.addresses == ("127.0.0.1", "::1")
    assert box.addresses == ("10.0.0.1",)
    assert (unknown.kind, unknown.detail) == (FailureKind.DNS, "no name server is configured")


def test_closing_ends_questions_in_flight(run: Run) -> None:
    """H4: no task is left behind."""

    async def main() -> Any:
        async with name_server({"a.test": None}) as (_, where):
            names = resolver(where, timeout_s=60)
            asker = asyncio.create_task(names.resolve("a.test"))
            await asyncio.sleep(0)
            await names.close()
            return await asyncio.gather(asker, return_exceptions=True)

    assert [type(error) for error in run(main())] == [asyncio.CancelledError]


def test_a_name_that_is_rebound_to_loopback_gets_no_connection(run: Run, stand: Any) -> None:
    """H6: the resolver's answer is judged, every time."""

    async def main() -> Any:
        async with (
            name_server({"evil.test": [a("evil.test", "127.0.0.1", 0)]}) as (_, where),
            stand.listening(stand.answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as site,
        ):
            fetcher = stand.fetcher(resolver(where), allow_addresses=())
            answer = await fetcher.fetch(FetchRequest(f"http://evil.test:{site.port}/"))
            return answer, site.connections

    answer, connections = run(main())
    assert isinstance(answer, FetchFailed)
    assert (answer.kind, connections) == (FailureKind.ADDRESS, 0)


def test_the_machines_own_files_are_read(tmp_path: Path) -> None:
    """H4: resolv.conf and hosts, comments and rubbish passed over; missing files say nothing."""
    (tmp_path / "resolv.conf").write_text(
        "# x\nnameserver 9.9.9.9 ; y\nnameserver fe80::1%eth0\nnameserver x\nsearch a\n"
    )
    (tmp_path / "hosts").write_text("127.0.0.1 localhost Box.LAN # me\n::1 localhost\n10.0.0.1 box.lan\nrubbish x\n")
    names = read_system_names(tmp_path / "resolv.conf", tmp_path / "hosts")
    assert names.servers == (("9.9.9.9", 53), ("fe80::1", 53))
    assert names.find("localhost") == ("127.0.0.1", "::1")
    assert names.find("box.lan") == ("10.0.0.1", "127.0.0.1")
    assert read_system_names(tmp_path / "none", tmp_path / "none") == SystemNames()


def soa(name: str, ttl: int, minimum: int) -> RR:
    return RR(name, QTYPE.SOA, rdata=SOA(f"ns.{name}", f"root.{name}", (1, 2, 3, 4, minimum)), ttl=ttl)


def test_that_there_is_no_such_name_is_kept_as_long_as_its_zone_says(run: Run) -> None:
    """H4: the SOA record's own time, or its last field where that is less; a record of another zone is not believed."""

    async def main() -> Any:
        clock, counts = Time(), {}
        async with name_server({}) as (server, where):
            names = resolver(where, clock=clock)
            for name, record in {
                "a.zone.test": soa("zone.test", 900, 300),
                "b.zone.test": soa("zone.test", 200, 300),
                "c.zone.test": soa("other.test", 900, 300),
                "d.zone.test": None,
            }.items():
                server.authority = record
                begun = clock.now
                while server.asked.count((name, "A")) < 2:
                    answer = await names.resolve(name)
                    assert isinstance(answer, Unresolved)
                    clock.now += 10_000
                counts[name] = (clock.now - begun) // 1_000 - 10
            return counts

    assert run(main()) == {"a.zone.test": 300, "b.zone.test": 200, "c.zone.test": 60, "d.zone.test": 60}


def test_the_last_known_address_serves_for_a_day_and_no_longer(run: Run) -> None:
    """H4: then the name fails as if it had never been known."""

    async def main() -> Any:
        clock = Time()
        async with name_server({"a.test": [a("a.test", "1.2.3.4")]}) as (server, where):
            names = resolver(where, clock=clock, tries=1)
            await names.resolve("a.test")
            server.zone["a.test"] = RCODE.SERVFAIL
            answers = []
            for passed_s in (3_600, 23 * 3_600, 3_600):
                clock.now += passed_s * 1_000 - 1
                answers.append(await names.resolve("a.test"))
            return answers

    early, late, too_late = run(main())
    assert early == late == Resolved(("1.2.3.4",), 0.0, stale=True)
    assert isinstance(too_late, Unresolved)
    assert too_late.kind is FailureKind.DNS


def test_a_dead_resolver_is_tried_once_and_comes_back(run: Run) -> None:
    """H4: it rests behind the others; after its rest the user's first choice is the first again."""

    async def main() -> Any:
        clock = Time()
        zone = {f"{number}.test": [a(f"{number}.test", "1.2.3.4")] for number in range(9)}
        silent = dict.fromkeys(zone)
        async with name_server(dict(silent)) as (first, where), name_server(zone) as (second, other):
            names = resolver(where, other, clock=clock, timeout_s=0.2)
            for number in range(4):
                assert await names.resolve(f"{number}.test") == Resolved(("1.2.3.4",), 60.0)
            before = len({name for name, _ in first.asked}), len({name for name, _ in second.asked})
            first.zone = zone
            clock.now += 31_000
            for number in range(4, 8):
                await names.resolve(f"{number}.test")
            return before, len({name for name, _ in first.asked}), len({name for name, _ in second.asked})

    assert run(main()) == ((1, 4), 5, 4)


def test_a_guesser_gains_nothing_and_the_question_is_asked_over_tcp(run: Run) -> None:
    """H4: answers with another id, another name or another type, from the right address and port, in any number."""

    class Guesser(NameServer):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            reply = DNSRecord.parse(data).reply()
            reply.add_answer(a("a.test", "6.6.6.6"))
            wrong_id = bytes(reply.pack())
            other = DNSRecord.question("b.test")
            other.header.id = reply.header.id
            wrong_name = other.reply()
            wrong_name.add_answer(a("a.test", "6.6.6.6"))
            for number in range(20):
                self.transport.sendto(bytes([number, number]) + wrong_id[2:], addr)
                self.transport.sendto(bytes(wrong_name.pack()), addr)

    async def main() -> Any:
        async with name_server({"a.test": [a("a.test", "1.2.3.4")]}, Guesser) as (server, where):
            return await resolver(where, tries=1).resolve("a.test"), server.asked_tcp

    answer, over_tcp = run(main())
    assert answer == Resolved(("1.2.3.4",), 60.0)
    assert over_tcp == 2


def test_a_name_server_may_send_anything(run: Run) -> None:
    """H4, Q5: rubbish over UDP and TCP, half a message, a connection that ends: no answer, within the time limit."""
    rubbish = random.Random(7)

    class Fool(NameServer):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            flags = rubbish.choice([b"\x83\x80", b"\x81\x80", b"\xff\xff"])  # the first says: ask over TCP
            self.transport.sendto(data[:2] + flags + rubbish.randbytes(rubbish.randrange(300)), addr)
            self.transport.sendto(data[:2] + flags + data[4:12] + data[12:] + rubbish.randbytes(60), addr)

        async def over_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(rubbish.choice([b"", b"\x00", b"\xff\xff", b"\x00\x05", b"\x00\x00"]) + rubbish.randbytes(5))
            writer.close()

    async def main() -> Any:
        async with name_server({}, Fool) as (_, where):
            names = resolver(where, tries=2, timeout_s=0.2)
            return await asyncio.gather(*(names.resolve(f"n{number}.test") for number in range(50)))

    answers = run(main())
    assert {type(answer) for answer in answers} == {Unresolved}


def test_an_answer_says_that_its_address_was_only_the_last_known_one(run: Run, stand: Any) -> None:
    """H4: told by the event, for whoever wonders why a host that moved is still asked at its old place."""

    async def main() -> Any:
        clock = Time()
        async with (
            name_server({"a.test": [a("a.test", "127.0.0.1", 5)]}) as (server, where),
            stand.listening(stand.answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", close=True)) as site,
        ):
            fetcher = stand.fetcher(resolver(where, clock=clock, tries=1), keep_alive_s=0)
            answers = [await fetcher.fetch(FetchRequest(f"http://a.test:{site.port}/"))]
            server.zone["a.test"] = RCODE.SERVFAIL
            clock.now += 10_000
            answers.append(await fetcher.fetch(FetchRequest(f"http://a.test:{site.port}/")))
            return answers

    answers = run(main())
    assert [answer.stale_address for answer in answers] == [False, True]
    assert [_circumstances(answer) for answer in answers] == [
        "",
        "no name server answered: the last known address was used",
    ]
