"""URLs: the standard's own cases, real links, pairs that must share a key, the Public Suffix List's tests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nephila.urls import Address, Base, Identifier, NormalRules, UrlLimits, registrable_domain, resolve

Tell = Callable[[str, int, int], None]


@pytest.fixture(scope="module")
def derived(material: Path) -> Path:
    return material / "01-url" / "derived"


@pytest.fixture(scope="module")
def identifier() -> Identifier:
    return Identifier(1, NormalRules(), UrlLimits(10**9, 10**9))


def key(identifier: Identifier, url: str) -> str:
    """The key, or why there is none: two spellings of nothing are the same nothing."""
    address = identifier.identify(url)
    return address.key if isinstance(address, Address) else address.reason


def lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from file


def standard_cases(material: Path, name: str) -> list[dict[str, Any]]:
    cases = json.loads((material / "01-url" / name).read_text(encoding="utf-8"))
    return [case for case in cases if isinstance(case, dict)]


def test_cases_of_the_standard_that_a_crawler_meets(derived: Path, tell: Tell) -> None:
    """U1: every one of the http cases of the WHATWG suite."""
    cases = json.loads((derived / "whatwg_http_subset.json").read_text(encoding="utf-8"))
    wrong = [case for case in cases if resolve(case["base"], case["input"]) != case.get("href")]
    tell("WHATWG http cases", len(cases) - len(wrong), len(cases))
    assert not wrong


@pytest.mark.parametrize("name", ["wpt/urltestdata.json", "ada-extra/ada_extra_urltestdata.json"])
def test_cases_of_the_whole_standard(material: Path, tell: Tell, name: str) -> None:
    """U1: no case of any scheme is taken for another web address than the standard's, or for one where it has none."""
    cases = [case for case in standard_cases(material, name) if "input" in case]
    wrong = [case for case in cases if web(resolve(case.get("base"), case["input"])) != web(case.get("href"))]
    tell(f"WHATWG {name.rpartition('/')[2]}", len(cases) - len(wrong), len(cases))
    assert not wrong


def web(url: str | None) -> str | None:
    """Of the other schemes a crawler knows only that it does not want them."""
    return url if url is not None and url.startswith("http") else None


@pytest.mark.parametrize("name", ["wpt/toascii.json", "wpt/IdnaTestV2.json"])
def test_names_become_ascii(material: Path, tell: Tell, name: str) -> None:
    """U1: IDNA as the standard has it today."""
    cases = [case for case in standard_cases(material, name) if case["input"]]
    wrong = []
    for case in cases:
        expected = None if case["output"] is None else f"https://{case['output']}/x"
        if resolve(None, f"https://{case['input']}/x") != expected:
            wrong.append(case)
    tell(f"IDNA {name.rpartition('/')[2]}", len(cases) - len(wrong), len(cases))
    assert not wrong


def test_messy_links_of_real_pages(derived: Path, tell: Tell) -> None:
    """U1: what pages really hold, with a browser's answer; in one sweep the same as one by one."""
    cases = [json.loads(line) for line in lines(derived / "messy_hrefs_dev.jsonl.gz")]
    right = sum(resolve(case["base"], case["raw"]) == case["href"] for case in cases)
    tell("messy real links", right, len(cases))
    assert right >= 0.999 * len(cases)
    for url in {case["base"] for case in cases}:
        hrefs = [case["raw"] for case in cases if case["base"] == url]
        base = Base.parse(url)
        assert base is not None
        assert base.join_all(hrefs) == [base.join(href) for href in hrefs]


@pytest.mark.parametrize(("kind", "least"), [("syntactic", 1.0), ("policy", 0.85)])
def test_pairs_that_mean_the_same_share_a_key(
    derived: Path, identifier: Identifier, tell: Tell, kind: str, least: float
) -> None:
    """U2: all that differ in syntax alone, and most that other crawlers' policies put together."""
    pairs = json.loads((derived / "equivalence_dev.json").read_text(encoding="utf-8"))
    pairs = [pair for pair in pairs if pair["changed"] and pair["kind"] == kind]
    shared = sum(key(identifier, pair["a"]) == key(identifier, pair["b"]) for pair in pairs)
    tell(f"equivalent pairs, {kind}", shared, len(pairs))
    assert shared >= least * len(pairs)


def test_keys_of_real_urls_are_their_own_keys(derived: Path, identifier: Identifier, tell: Tell) -> None:
    """U2: idempotent on thirty thousand real URLs, without an exception."""
    keys = [key(identifier, line.split("\t")[0]) for line in lines(derived / "real_urls_dev.tsv.gz")]
    web = [spelling for spelling in keys if spelling.startswith("http")]
    same = sum(key(identifier, spelling) == spelling for spelling in web)
    tell("real URLs, idempotent", same, len(web))
    assert same == len(web)


def test_registrable_domains_of_the_public_suffix_list(material: Path, tell: Tell) -> None:
    """S4: the list's own tests; where it says that there is none, a host stands for itself."""
    text = (material / "08-graph-hosts" / "psl" / "tests" / "tests.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("//")]
    cases = [(host.lower(), domain) for host, domain in rows if host != "null"]
    right = sum(registrable_domain(host) == (host if domain == "null" else domain) for host, domain in cases)
    tell("Public Suffix List", right, len(cases))
    assert right == len(cases)
