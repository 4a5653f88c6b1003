"""The endless sites of the simulated web, and the server's own count of what was wasted on them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from nephila.parse import parse_html
from nephila.testing.web import (
    Calendar,
    EndlessPath,
    RandomLinks,
    SessionMaze,
    Shop,
    SimulatedWeb,
    TrapHost,
    TrapSite,
    WebServer,
    WebSpec,
)
from nephila.testing.web.trap_hosts import TrapWitness

SITES: tuple[TrapSite, ...] = (Calendar(), SessionMaze(), RandomLinks(), EndlessPath(), Shop())
WEB = SimulatedWeb(WebSpec(3, hosts=2, pages=10, traps=SITES))
HOSTS = {host.site.label: host for host in WEB.traps}


def links(host: TrapHost, target: str) -> list[str]:
    answer = WEB.answer(host.name, target, {}, 0)
    assert answer.status == 200
    page = parse_html(answer.payload, f"http://{host.name}{target}", "text/html", agent="x")
    return ["/" + link.url.split("/", 3)[3] for link in page.links]


def wander(host: TrapHost, steps: int) -> tuple[set[str], TrapWitness]:
    """Breadth first, everything."""
    witness, queue = TrapWitness(WEB.traps), ["/"]
    for target in queue:
        witness.asked(host, target)
        queue += [link for link in links(host, target) if link not in queue]
        if (steps := steps - 1) == 0:
            break
    return set(queue), witness


@pytest.mark.parametrize("label", ["calendar", "maze", "random", "deep"])
def test_a_trap_never_ends(label: str) -> None:
    """T2: every step leads to more than it took."""
    known, witness = wander(HOSTS[label], 400)
    figures = witness.figures()[HOSTS[label].name]
    assert len(known) > 500
    assert figures.requests == 400
    assert figures.found == figures.real_pages
    assert figures.wasted == 400 - figures.found


def test_the_maze_serves_the_same_pages_under_ever_new_sessions() -> None:
    """T2, T3: the text is the same, no link is."""
    host = HOSTS["maze"]
    first, second = (WEB.traps.page(host, f"/item/12?visit={visit}") for visit in "ab")
    assert first is not None
    assert second is not None
    assert (first.text, first.real) == (second.text, second.real)
    assert not set(first.links) & set(second.links)


def test_a_shop_has_as_many_different_products_as_it_says() -> None:
    """T2: nothing is made before it is asked for, and nothing is there twice."""
    host = HOSTS["shop"]
    pages = [WEB.traps.page(host, f"/product/{number}") for number in (1, 2, 77_777, 100_000)]
    assert len({page.text for page in pages if page}) == 4
    assert WEB.traps.page(host, "/product/100001") is None
    assert len(links(host, "/list?page=1000")) == 101
    assert WEB.answer(host.name, "/list?page=1001", {}, 0).status == 404
    assert host.site.real_pages == 101_001


def test_an_endless_path_nests_by_relative_links() -> None:
    """T1: one part repeats itself, the other varies."""
    host = HOSTS["deep"]
    assert "/loop/part/loop/part/" in links(host, "/loop/part/")
    deeper = links(host, "/amber/")
    assert all(link.startswith("/amber/") for link in deeper)
    assert len(deeper) > 2


def test_a_web_without_traps_stays_as_it_was() -> None:
    """P5: the numbered hosts and their answers do not know of them."""
    plain = SimulatedWeb(replace(WEB.spec, traps=()))
    assert plain.trap_seeds() == []
    assert list(plain.hosts) == list(WEB.hosts)
    url = plain.seeds()[0]
    assert plain.seeds() == WEB.seeds()
    assert plain.expected_body(url) == WEB.expected_body(url)
    assert plain.address_of("calendar-0.test") is None


def test_traps_are_served_over_sockets_and_counted_there() -> None:
    """T2: at an address of their own, robots.txt not counted."""

    async def ask(target: str, server: WebServer) -> bytes:
        host = next(iter(server.web.traps))
        reader, writer = await asyncio.open_connection(host.address, server.port)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {host.name}:{server.port}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    async def run() -> None:
        async with WebServer(SimulatedWeb(WEB.spec)) as server:
            assert server.web.trap_seeds()[0] == f"http://calendar-0.test:{server.port}/"
            assert server.web.address_of("calendar-0.test") == "127.150.1.1"
            assert b"Disallow:" in await ask("/robots.txt", server)
            for target in ("/", "/calendar/2031/07", "/nothing"):
                answer = await ask(target, server)
                assert answer.startswith(b"HTTP/1.1 404" if target == "/nothing" else b"HTTP/1.1 200")
            figures = server.trap_figures()["calendar-0.test"]
            assert (figures.requests, figures.wasted, figures.found) == (3, 2, 1)

    asyncio.run(run())
