"""The site that the benches crawl: the same every time, closed in itself, counted exactly."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from local_site.pages import Plan, Site
from local_site.running import SERVER, RunningSite, Service, served
from local_site.templates import LINKS, load_templates, template_of
from nephila.parse import parse_html

SMALL = Plan(pages=120, kilobytes=3, hosts=4)
PORT = 8080


def pages_of(site: Site) -> list[tuple[int, int]]:
    return [(host, number) for number in range(site.per_host) for host in range(site.plan.hosts)]


def links_of(site: Site, host: int, number: int) -> list[str]:
    page = parse_html(site.body(host, number), site.url(host, number), "text/html; charset=utf-8", agent="test")
    return [link.url for link in page.links]


def get(url: str, *more: str) -> bytes:
    """An answer, byte for byte, over a connection of its own."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port or 80)) as wire:
        head = [f"GET {parts.path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close", *more]
        wire.sendall("\r\n".join([*head, "", ""]).encode())
        return b"".join(iter(lambda: wire.recv(65_536), b""))


def test_the_same_seed_gives_the_same_pages_and_another_seed_others() -> None:
    one, again = Site(SMALL, "http", PORT), Site(SMALL, "http", PORT)
    other = Site(Plan(pages=120, kilobytes=3, hosts=4, seed=2), "http", PORT)
    bodies = [one.body(*place) for place in pages_of(one)]
    assert bodies == [again.body(*place) for place in pages_of(again)]
    assert not set(bodies) & {other.body(*place) for place in pages_of(other)}


def test_no_two_pages_are_alike() -> None:
    site = Site(SMALL, "http", PORT)
    parsed = [
        parse_html(site.body(*place), site.url(*place), "text/html", agent="test").text_hash for place in pages_of(site)
    ]
    assert len(set(parsed)) == len(parsed)


@pytest.mark.parametrize("kilobytes", [3, 30, 100])
def test_every_link_stays_on_the_site(kilobytes: int) -> None:
    site = Site(Plan(pages=20_000, kilobytes=kilobytes), "http", PORT)
    assets = re.compile(r"/static/\d+\.(?:css|png)")
    counts = []
    for host, number in pages_of(site)[::671]:
        links = [urlsplit(link) for link in links_of(site, host, number)]
        assert {link.scheme for link in links} == {"http"}
        assert all(link.hostname in site.plan.addresses and link.port == PORT for link in links)
        pages = [link.path for link in links if not assets.fullmatch(link.path)]
        assert all(site.find(path) is not None for path in pages)
        counts.append(len(pages))
    assert LINKS[kilobytes] / 2 < sum(counts) / len(counts) < LINKS[kilobytes] * 1.5


def test_nothing_in_a_page_names_another_host() -> None:
    """Also for crawlers that look for URLs in scripts and comments."""
    site = Site(Plan(pages=400, kilobytes=100), "http", PORT)
    for host, number in pages_of(site)[::13]:
        text = site.body(host, number).decode()
        assert not re.findall(r"(?i)https?:(?:\\*/){2}(?!127\.0\.0\.\d+:8080/)[\w-]+", text)


def test_all_pages_are_reachable_from_the_first_front_page() -> None:
    site = Site(SMALL, "http", PORT)
    known, waiting = {site.seeds[0]}, deque([(0, 0)])
    while waiting:
        for link in links_of(site, *waiting.popleft()):
            parts = urlsplit(link)
            number = site.find(parts.path)
            if link not in known and number is not None:
                known.add(link)
                waiting.append((site.plan.addresses.index(str(parts.hostname)), number))
    assert known == {site.url(*place) for place in pages_of(site)}


def test_pages_without_material_have_the_size_and_the_links(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEPHILA_MATERIAL", str(tmp_path))
    templates = load_templates(30)
    assert all(template.links == LINKS[30] for template in templates)
    body = Site(Plan(pages=100), "http", PORT).body(0, 0)
    assert 24_000 < len(body) < 36_000


def test_a_mould_keeps_markup_and_gives_up_links_and_sentences() -> None:
    text = (
        "<html><head><base href='https://a.example/'><link rel=canonical href=https://a.example/x></head><body>"
        '<script>var a = "https://cdn.example/x.js";</script><a rel=nofollow href="https://b.example/y">go</a>'
        "<a href='#top'>top</a><img src=//img.example/p.png><p>A sentence that is longer than any label would be.</p>"
    )
    template = template_of(text, 1)
    kept = "".join(piece or "|" for piece in template.pieces)
    assert template.links == 1
    assert "example" not in kept
    assert "nofollow" not in kept
    assert "sentence" not in kept
    assert "base" not in kept
    assert "<a href='#top'>top</a>" in kept
    assert "<script>" in kept


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> RunningSite:
    with served(Service(SMALL, per_connection=0, core=-1), tmp_path_factory.mktemp("site")) as site:
        yield site  # type: ignore[misc]  # a fixture that ends


def test_the_server_counts_different_pages_and_all_answers(running: RunningSite) -> None:
    running.reset()
    site = running.site
    for url in [*site.seeds, site.seeds[0], site.url(1, 5), site.seeds[0] + "robots.txt", site.seeds[0] + "nothing"]:
        get(url)
    counts = running.counts()
    expected = {"pages": 5, "page_answers": 6, "answers": 8, "robots": 1, "missing": 1, "connections": 8}
    assert {name: counts[name] for name in expected} == expected
    running.reset()
    assert running.counts()["answers"] == 0


def test_the_server_packs_a_page_only_when_asked_to(running: RunningSite) -> None:
    url = running.site.url(2, 3)
    plain, packed = get(url), get(url, "Accept-Encoding: gzip")
    assert plain.partition(b"\r\n\r\n")[2] == running.site.body(2, 3)
    assert b"Content-Encoding: gzip\r\n" in packed
    assert len(packed) < len(plain)


def test_the_server_closes_after_as_many_answers_as_it_was_told(tmp_path: Path) -> None:
    with served(Service(SMALL, per_connection=2, core=-1), tmp_path) as running:
        parts = urlsplit(running.site.seeds[0])
        with socket.create_connection((parts.hostname, parts.port)) as wire:
            wire.sendall(b"GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
            answers = b"".join(iter(lambda: wire.recv(65_536), b""))
        assert answers.count(b"HTTP/1.1 200 OK") == 2
        assert answers.count(b"Connection: close") == 1


def test_the_server_listens_on_loopback_only() -> None:
    command = [sys.executable, str(SERVER), "--pages", "10", "--hosts", "2", "--base", "10.0.0.0"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert done.stderr == "The site is served on loopback only, and 10.0.0.1 is not a loopback address.\n"
