"""Nothing outside the public internet is ever connected to, whichever way a page, a name or a proxy leads there.

The crawls run in a network namespace that has loopback and nothing else; the addresses that must not be connected to
belong to that loopback, each with a listener that counts. Here stands only what they must have come to.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from bait import BAIT, MIXED, PUBLIC, PUBLIC_6, SILENT, TURN_PAGES, TURNS, Case, literals, names, robots_redirects
from baited_crawls import METADATA_SEED, OPEN, OPENED, STILL_SHUT, scenarios
from namespace import run_alone, way_out

SUPPORT = Path(__file__).parents[1] / "support"
SHUT = ("direct", "http proxy", "socks5 proxy", "no robots")
PROXIES = ("http proxy", "socks5 proxy")
NAMED = ("direct", *PROXIES)

Crawl = Mapping[str, Any]


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What the crawls came to, each run once."""
    folder = tmp_path_factory.mktemp("bait")
    result = run_alone([SUPPORT / "baited_crawls.py", folder])
    assert (result.returncode, result.stderr) == (0, "")
    told: dict[str, Any] = json.loads((folder / "evidence.json").read_text())
    return told


@pytest.fixture
def crawl(evidence: Mapping[str, Any], request: pytest.FixtureRequest) -> Crawl:
    """The crawl that a test is parametrised with."""
    found: Crawl = evidence["crawls"][request.param]
    return found


def cases(name: str) -> list[Case]:
    """What must be refused in a crawl, but for what depends on the turn that a name takes."""
    scenario = next(one for one in scenarios() if one.name == name)
    links = [*literals(), *names()] if name in NAMED else literals()
    return [*links, *(case for case in scenario.redirects if case.reason)]


def not_refused(crawl: Crawl, wanted: Iterable[Case]) -> list[tuple[Case, Any]]:
    """Cases whose story is another one than a refusal for its address, with the right words."""
    wrong = []
    for case in wanted:
        story = crawl["why"][case.url]
        told = (story["state"], story["reason"], case.reason in story["detail"])
        if told != ("dropped", "address", True):
            wrong.append((case, story))
    return wrong


def events(crawl: Crawl) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for path in sorted((Path(crawl["out"]) / "events").glob("*.jsonl")):
        lines += [json.loads(line) for line in path.read_text().splitlines()]
    return lines


def rows(crawl: Crawl, query: str) -> set[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{crawl['out']}/catalogue.sqlite?mode=ro", uri=True)
    try:
        return set(connection.execute(query))
    finally:
        connection.close()


# -- nothing is connected to ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crawl", SHUT, indirect=True)
def test_no_listener_on_a_refused_address_is_ever_connected_to(crawl: Crawl, say: Callable[[str], None]) -> None:
    """H6: by link, name, redirect, robots.txt, a name that changes its answer; directly and behind proxies."""
    say(f"{len(crawl['why'])} URLs, {crawl['summary']['refused']['address']} refused, {crawl['summary']['seconds']} s")
    assert crawl["accepted"] == {}


def test_the_listeners_would_have_told(evidence: Mapping[str, Any]) -> None:
    """H6: each of them counts when it is connected to from the same namespace."""
    assert evidence["knocked"] == dict.fromkeys(BAIT, 1)


@pytest.mark.parametrize("crawl", PROXIES, indirect=True)
def test_a_proxy_is_asked_for_public_addresses_only_and_never_for_a_name(crawl: Crawl) -> None:
    """H6: it would go wherever it is told, and has a resolver of its own; plain http is no exception."""
    assert crawl["proxied"].keys() == {PUBLIC, PUBLIC_6, SILENT}


@pytest.mark.parametrize("crawl", NAMED, indirect=True)
def test_public_addresses_are_crawled_as_ever(crawl: Crawl) -> None:
    """H6: the site itself, over IPv4 and IPv6, by name and by address."""
    for url in ("http://site.test/", "http://six.test/", "http://mixed.test/", f"http://[{PUBLIC_6}]/page"):
        assert crawl["why"][url]["state"] == "completed"


# -- and each refusal says why ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHUT)
def test_every_refusal_is_explained_by_why(evidence: Mapping[str, Any], name: str, say: Callable[[str], None]) -> None:
    """H6, T8: dropped, because of its address, and which kind of address it is."""
    wanted = cases(name)
    say(f"{len(wanted)} refusals explained")
    assert len(wanted) > 100
    assert not_refused(evidence["crawls"][name], wanted) == []


@pytest.mark.parametrize("name", SHUT)
def test_every_refusal_is_in_the_catalogue_and_in_the_events(evidence: Mapping[str, Any], name: str) -> None:
    """H6, O1, W3: kind and reason `address`."""
    crawl = evidence["crawls"][name]
    refused = {crawl["why"][case.url]["address"] for case in cases(name)}
    assert refused <= {url for (url,) in rows(crawl, "SELECT url FROM errors WHERE kind = 'address'")}
    told = [event for event in events(crawl) if event["event"] == "excluded_by_rule"]
    assert refused <= {event["url"] for event in told if event["reason"] == "address" and event["detail"]}
    captured = {url for (url,) in rows(crawl, "SELECT url FROM captures")}
    assert not captured & refused


def test_a_refused_seed_is_explained_too(evidence: Mapping[str, Any]) -> None:
    """H6, T8: whoever names an address as a seed has not opened it by that."""
    assert not_refused(evidence["crawls"]["direct"], [METADATA_SEED]) == []


@pytest.mark.parametrize("crawl", ["no robots"], indirect=True)
def test_names_of_the_machine_itself_are_judged_like_others(crawl: Crawl) -> None:
    """H6: localhost by the system's own files, where no resolver is given."""
    local = [Case(f"http://{host}/name", "loopback") for host in ("localhost", "deep.localhost")]
    assert not_refused(crawl, local) == []


@pytest.mark.parametrize("crawl", NAMED, indirect=True)
def test_a_robots_txt_that_redirects_there_is_not_followed(crawl: Crawl) -> None:
    """H6, P1: the hop is refused for its address, and without rules no page of that host is asked for."""
    failed = {(event["url"], event["reason"]) for event in events(crawl) if event["event"] == "error"}
    for host, case in robots_redirects().items():
        story = crawl["why"][f"http://{host}/page"]
        assert story["state"] != "completed"
        assert not story["robots"]["allowed"]
        assert case.reason in story["robots"]["rule"]
    hops = {event["detail"] for event in events(crawl) if event["event"] == "robots_fetched" and "detail" in event}
    followed = {url for url, reason in failed if reason == "address" and url.endswith("/robots.txt")}
    assert len({hop for hop in hops if hop.endswith("/robots.txt")} & followed) == len(robots_redirects())


@pytest.mark.parametrize("crawl", NAMED, indirect=True)
def test_a_name_that_changes_its_answer_gains_nothing(crawl: Crawl, say: Callable[[str], None]) -> None:
    """H6: the address that was judged is the one that is connected to, or refused, at each connection anew."""
    told = []
    for name, answers in TURNS.items():
        stories = [crawl["why"][f"http://{name}/page/{number}"] for number in range(TURN_PAGES)]
        done = [story for story in stories if story["state"] == "completed"]
        dropped = [story for story in stories if (story["state"], story["reason"]) == ("dropped", "address")]
        told.append(f"{name} {len(done)} fetched, {len(dropped)} refused")
        assert len(done) + len(dropped) == TURN_PAGES
        assert dropped
        assert bool(done) == (answers[0][0] in {PUBLIC, PUBLIC_6})
    say("; ".join(told))


@pytest.mark.parametrize("crawl", NAMED, indirect=True)
def test_of_a_name_with_public_and_other_addresses_only_the_public_ones_are_tried(crawl: Crawl) -> None:
    """H6: even where the public one does not answer."""
    assert MIXED["mixed-silent.test"][0] == SILENT
    story = crawl["why"]["http://mixed-silent.test/"]
    assert story["reason"] == "robots_unavailable"
    assert "refused" in story["robots"]["rule"] or "proxy" in story["robots"]["rule"]


# -- the allow-list ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crawl", ["opened"], indirect=True)
def test_the_allow_list_opens_exactly_its_ranges(crawl: Crawl) -> None:
    """H6: --allow-address 10.0.0.0/24 lets in 10.0.0.5 and 10.0.0.77, and not 10.0.1.1; IPv6 likewise."""
    assert OPENED == ("10.0.0.0/24", "fd12::/64")
    assert crawl["accepted"].keys() == {"10.0.0.5", "10.0.0.77", "fd12::1"}
    for url in (*OPEN, "http://10.0.0.5/redirected"):
        assert crawl["why"][url]["state"] == "completed"
    assert not_refused(crawl, [*STILL_SHUT, Case("http://10.0.1.1/redirected", "private")]) == []


# -- the namespace ----------------------------------------------------------------------------------------------------

ROUTES = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
NOWHERE_6 = f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} ffffffff 00000001 00000000 00200200       lo\n"


@pytest.mark.parametrize(
    ("interfaces", "routes", "routes_6", "words"),
    [
        (["lo"], ROUTES, NOWHERE_6, ""),
        (["lo", "eth0"], ROUTES, NOWHERE_6, "other interfaces than loopback: eth0"),
        (["lo"], ROUTES + "lo\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n", "", "a default route over lo"),
        (["lo"], ROUTES, NOWHERE_6.replace("00200200", "00000001"), "a default route for IPv6 over lo"),
        (["lo"], ROUTES + "lo\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n", NOWHERE_6, ""),
    ],
)
def test_bait_is_laid_out_only_where_there_is_no_way_out(
    interfaces: list[str], routes: str, routes_6: str, words: str
) -> None:
    found = way_out(interfaces, routes, routes_6)
    assert words in found
    assert bool(found) == bool(words)


def test_the_baited_program_ends_where_there_is_a_default_route() -> None:
    result = run_alone(["-c", "import namespace as n; n.bring_up(); n.add_default_route(); n.enter([]); print('in')"])
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("refused to start: there is a default route over lo")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "not installed"),
        ("#!/bin/sh\necho no luck >&2\nexit 1\n", "allows no network namespace (no luck)"),
    ],
)
def test_a_machine_without_namespaces_fails_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    if script:
        (tmp_path / "unshare").write_text(script)
        (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssertionError) as caught:
        run_alone(["-c", ""])
    assert words in str(caught.value)
