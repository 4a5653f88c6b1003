from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from nephila.testing.web import Fault, RobotsKind, Role, ServedAnswer, SimulatedWeb, Timing, WebSpec, WireMix
from nephila.testing.web.atlas import Spot
from nephila.testing.web.wire import CODINGS

ReadHeader = Callable[[ServedAnswer, str], str]
ReadBody = Callable[[ServedAnswer], bytes]
ALL_CODINGS = {"accept-encoding": "gzip, deflate, br, zstd"}


@pytest.fixture(scope="module")
def web() -> SimulatedWeb:
    return SimulatedWeb(WebSpec.standard(1))


def pages_of(web: SimulatedWeb, *roles: Role) -> list[tuple[str, str]]:
    return [
        (host.name, web.atlas.target(Spot(host.number, page)))
        for host in web.hosts
        for page in range(host.pages)
        if web.atlas.role(host, page) in roles
    ]


def host_with(web: SimulatedWeb, kind: RobotsKind) -> str:
    return next(host.name for host in web.hosts if host.robots is kind)


def ask(web: SimulatedWeb, page: tuple[str, str], tries: int = 0, now: int = 0, **headers: str) -> ServedAnswer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.answer(*page, ALL_CODINGS | named, now, tries)


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(web: SimulatedWeb) -> None:
    again, other = SimulatedWeb(WebSpec.standard(1)), SimulatedWeb(WebSpec.standard(2))
    pages = pages_of(web, *Role)[::7]
    assert [ask(web, page) for page in pages] == [ask(again, page) for page in pages]
    assert pages_of(web, *Role) != pages_of(other, *Role)
    assert ask(web, ("site0.test", "/")).payload != ask(other, ("site0.test", "/")).payload


def test_what_was_asked_before_changes_nothing(web: SimulatedWeb) -> None:
    fresh = SimulatedWeb(web.spec)
    for page in reversed(pages_of(web, *Role)[::11]):
        assert ask(fresh, page) == ask(web, page)


def test_every_coding_and_framing_is_met_and_decodes_to_the_same_body(
    web: SimulatedWeb, read_header: ReadHeader, read_body: ReadBody
) -> None:
    met = set()
    for page in pages_of(web, Role.ARTICLE):
        answer = ask(web, page)
        plain = web.answer(*page, {}, 0)
        assert read_header(plain, "content-encoding") == ""
        assert read_body(answer) == read_body(plain) == web.expected_body(f"http://{page[0]}{page[1]}")
        framing = read_header(answer, "transfer-encoding") or (
            "length" if read_header(answer, "content-length") else ""
        )
        met.add((read_header(answer, "content-encoding"), framing))
    assert {coding for coding, _ in met} == {"", *CODINGS}
    assert {framing for _, framing in met} == {"", "chunked", "length"}


def test_a_refused_coding_is_not_sent(web: SimulatedWeb, read_header: ReadHeader) -> None:
    for page in pages_of(web, Role.ARTICLE)[:200]:
        answer = web.answer(*page, {"accept-encoding": "gzip;q=0, br;q=1.0"}, 0)
        assert read_header(answer, "content-encoding") in ("", "br")


def test_pages_are_of_the_size_asked_for() -> None:
    for size in (3000, 30_000, 100_000):
        web = SimulatedWeb(WebSpec.plain(1, hosts=5, pages=100, page_bytes=size, links_per_page=10))
        sizes = [len(ask(web, page).payload) for page in pages_of(web, Role.ARTICLE)]
        assert sum(sizes) / len(sizes) == pytest.approx(size, rel=0.2)


def test_every_charset_is_met_and_reads_right(web: SimulatedWeb) -> None:
    bodies = [web.expected_body(f"http://{host}{target}") or b"" for host, target in pages_of(web, Role.ARTICLE)]
    assert any("静かな川のそば".encode("shift_jis") in body for body in bodies)
    assert any("Дом стоит".encode("windows-1251") in body for body in bodies)
    assert any("Вечером".encode("koi8-r") in body for body in bodies)
    assert any(body.startswith(b"\xef\xbb\xbf") for body in bodies)


@pytest.mark.parametrize(
    ("role", "first", "later"),
    [
        (Role.NOT_FOUND, 404, 404),
        (Role.GONE, 410, 410),
        (Role.ERROR, 500, 500),
        (Role.BUSY_ONCE, 503, 200),
        (Role.LIMITED, 429, 200),
    ],
)
def test_failures_fail_as_they_should(web: SimulatedWeb, role: Role, first: int, later: int) -> None:
    for page in pages_of(web, role):
        assert (ask(web, page).status, ask(web, page, tries=1).status) == (first, later)


def test_busy_twice_means_twice_and_says_nothing(web: SimulatedWeb) -> None:
    page = pages_of(web, Role.BUSY_TWICE)[0]
    answers = [ask(web, page, tries=tries) for tries in range(3)]
    assert [answer.status for answer in answers] == [503, 503, 200]
    assert b"Retry-After" not in answers[0].head


def test_retry_after_is_told_and_known(web: SimulatedWeb, read_header: ReadHeader) -> None:
    answer = ask(web, pages_of(web, Role.LIMITED)[0])
    assert int(read_header(answer, "retry-after")) * 1000 == answer.retry_after_ms > 0


@pytest.mark.parametrize(
    ("role", "fault", "silent"),
    [
        (Role.RESET, Fault.RESET, True),
        (Role.RESET_BODY, Fault.RESET, False),
        (Role.CUT, Fault.CUT, False),
        (Role.HANG, Fault.HANG, True),
        (Role.HANG_BODY, Fault.HANG, False),
    ],
)
def test_faults_break_off_where_they_should(web: SimulatedWeb, role: Role, fault: Fault, silent: bool) -> None:
    answer = ask(web, pages_of(web, role)[0])
    assert answer.fault is fault
    assert (answer.sent == b"") == silent
    assert answer.wire.startswith(answer.sent)
    assert silent or len(answer.head) < len(answer.sent) < len(answer.wire)


def test_a_cleaned_page_redirects_to_itself_without_the_tracker(web: SimulatedWeb, read_header: ReadHeader) -> None:
    host, target = pages_of(web, Role.CLEANED)[0]
    answer = ask(web, (host, target + "?utm_source=letter"))
    assert read_header(answer, "location").endswith(target)
    assert answer.respells
    assert ask(web, (host, target)).status == 200


def validated(web: SimulatedWeb, name: bytes) -> tuple[str, str]:
    return next(page for page in pages_of(web, Role.ARTICLE) if name in ask(web, page).head)


def test_validators_give_a_304_without_a_body() -> None:
    web = SimulatedWeb(WebSpec(1, hosts=5, pages=300, wire=WireMix(validators=1, lying=0, changing=0)))
    by_tag, by_date = validated(web, b"ETag"), validated(web, b"Last-Modified")
    etag = ask(web, by_tag).head.partition(b"ETag: ")[2].partition(b"\r\n")[0].decode()
    date = ask(web, by_date).head.partition(b"Last-Modified: ")[2].partition(b"\r\n")[0].decode()
    same = ask(web, by_tag, if_none_match=f'"other", {etag}')
    assert (same.status, same.payload) == (304, b"")
    assert b"Content-Length" not in same.head
    assert ask(web, by_tag, if_none_match='"other"').status == 200
    assert ask(web, by_date, if_modified_since=date).status == 304
    assert ask(web, by_date, if_modified_since="Thu, 01 Jan 1970 00:00:00 GMT").status == 200
    assert ask(web, by_date, if_modified_since="yesterday").status == 200


def test_changing_pages_change_with_time_and_so_do_their_validators(read_header: ReadHeader) -> None:
    wire = WireMix(validators=1, lying=0, changing=1)
    web = SimulatedWeb(WebSpec(1, hosts=3, pages=200, wire=wire, timing=Timing(change_s=60)))
    day = 24 * 3600 * 1000
    for host, target in pages_of(web, Role.ARTICLE):
        url = f"http://{host}{target}"
        assert web.expected_body(url, 0) != web.expected_body(url, day)
        first, second = ask(web, (host, target)), ask(web, (host, target), now=10**12 + day)
        assert read_header(first, "etag") != read_header(second, "etag") or read_header(first, "last-modified")
        etag = read_header(first, "etag")
        if etag:
            assert ask(web, (host, target), now=10**12 + day, if_none_match=etag).status == 200


def test_lying_validators_lie() -> None:
    wire = WireMix(validators=1, lying=1, changing=1)
    web = SimulatedWeb(WebSpec(1, hosts=3, pages=200, wire=wire, timing=Timing(change_s=60)))
    day, stale = 24 * 3600 * 1000, 0
    for host, target in pages_of(web, Role.ARTICLE):
        etag = ask(web, (host, target)).head.partition(b"ETag: ")[2].partition(b"\r\n")[0].decode()
        stale += bool(etag) and ask(web, (host, target), now=day, if_none_match=etag).status == 304
    assert stale > 10


@pytest.mark.parametrize(
    ("kind", "status", "needle"),
    [
        (RobotsKind.MISSING, 404, b""),
        (RobotsKind.OPEN, 200, b"User-agent: *\nDisallow:\n"),
        (RobotsKind.PARTS, 200, b"Disallow: /*.print$"),
        (RobotsKind.DELAY, 200, b"Crawl-delay: "),
        (RobotsKind.OURS, 200, b"User-agent: nephila"),
        (RobotsKind.BANNED, 200, b"User-agent: Nephila\nDisallow: /\n"),
        (RobotsKind.DENIED, 403, b""),
        (RobotsKind.BROKEN, 500, b""),
        (RobotsKind.BUSY, 503, b""),
        (RobotsKind.MOVED, 301, b""),
        (RobotsKind.BOM, 200, b"\xef\xbb\xbfUser-agent: *"),
        (RobotsKind.HUGE, 200, b"Disallow: /\n"),
        (RobotsKind.HTML, 200, b"<!doctype html>"),
        (RobotsKind.SLOW, 200, b"Disallow: /private/"),
        (RobotsKind.SIGNAL, 200, b"Content-Signal: "),
    ],
)
def test_robots_txt_of_every_kind(web: SimulatedWeb, kind: RobotsKind, status: int, needle: bytes) -> None:
    answer = web.answer(host_with(web, kind), "/robots.txt", {}, 0)
    assert answer.status == status
    assert needle in answer.payload


def test_the_huge_robots_txt_forbids_everything_only_past_the_cap(web: SimulatedWeb) -> None:
    body = web.answer(host_with(web, RobotsKind.HUGE), "/robots.txt", {}, 0).payload
    assert b"Disallow: /\n" not in body[: 500 * 1024]


def test_a_busy_robots_txt_recovers_and_a_slow_one_is_slow(web: SimulatedWeb) -> None:
    busy, slow = host_with(web, RobotsKind.BUSY), host_with(web, RobotsKind.SLOW)
    statuses = [web.answer(busy, "/robots.txt", {}, 0, tries).status for tries in range(4)]
    assert statuses == [503, 503, 200, 200]
    assert web.answer(slow, "/robots.txt", {}, 0).delay_s == web.spec.timing.slow_ms / 1000


def test_a_crawl_delay_is_known_to_the_auditor(web: SimulatedWeb) -> None:
    host = host_with(web, RobotsKind.DELAY)
    told = web.answer(host, "/robots.txt", {}, 0).payload.partition(b"Crawl-delay: ")[2]
    assert float(told) * 1000 == web.required_delay_ms(host) > 0


def test_a_moved_robots_txt_leads_to_another_host(web: SimulatedWeb, read_header: ReadHeader) -> None:
    host = host_with(web, RobotsKind.MOVED)
    location = read_header(web.answer(host, "/robots.txt", {}, 0), "location")
    assert location == f"http://{web.robots_source(host)}/robots.txt"
    assert web.robots_source(host) != host
    assert web.robots_borrowers(web.robots_source(host)) > 0


def test_unknown_targets_and_hosts_are_told_so(web: SimulatedWeb) -> None:
    assert web.answer("site0.test", "/no/such/thing", {}, 0).status == 404
    assert web.answer("elsewhere.test", "/", {}, 0).status == 421
    assert web.address_of("elsewhere.test") is None


def test_documents_are_what_they_say(web: SimulatedWeb, read_body: ReadBody, read_header: ReadHeader) -> None:
    pdf, png, data = (ask(web, pages_of(web, role)[0]) for role in (Role.PDF, Role.PNG, Role.JSON))
    assert read_header(pdf, "content-type") == "application/pdf"
    assert read_body(pdf).startswith(b"%PDF-")
    body = read_body(png)
    size = int.from_bytes(body[8:12])
    assert zlib.crc32(body[12 : 16 + size]) == int.from_bytes(body[16 + size : 20 + size])
    assert read_header(data, "content-type") == "application/json"


def test_the_port_is_part_of_every_link_but_not_of_the_web(web: SimulatedWeb) -> None:
    moved = web.at_port(8080)
    assert [host.name for host in moved.hosts] == [host.name for host in web.hosts]
    assert moved.seeds() == ["http://site0.test:8080/"]
    assert b"http://site1.test/" not in (moved.expected_body("http://site0.test:8080/") or b"")
    assert moved.spec == replace(web.spec, port=8080)
