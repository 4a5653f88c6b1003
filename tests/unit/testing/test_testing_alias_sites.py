"""Sites with many URLs for few pages, and sites that never say 404, know what is real on them."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest

from nephila.testing.web import (
    Decorated,
    Meaningful,
    Moved,
    MovedMissing,
    OneShell,
    Referring,
    SimulatedWeb,
    SoftMissing,
    TrapSite,
    WebSpec,
)

SITES: tuple[TrapSite, ...] = (
    Decorated(),
    Decorated(bare=True, canonical=True, label="bare"),
    Meaningful(),
    SoftMissing(),
    SoftMissing(counted=True, label="counted"),
    MovedMissing(),
    OneShell(),
    Referring("http://old.test", ("/a", "/b"), pages=3),
)


def walked(web: SimulatedWeb, name: str) -> dict[str, str]:
    """Every target that its links lead to, and what is real there."""
    host = web.traps.find(name)
    assert host is not None
    found: dict[str, str] = {}
    queue = ["/"]
    while queue:
        target = queue.pop()
        page = web.traps.page(host, target)
        if target in found or page is None:
            continue
        found[target] = page.real
        links = [page.location] if page.location else page.links
        joined = [urljoin(f"http://{name}{target}", link) for link in links]
        queue += [url.partition(name)[2] for url in joined if url.startswith(f"http://{name}/")]
    return found


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.label)
def test_all_that_is_real_can_be_reached_and_counted(site: TrapSite) -> None:
    """D4, T4: the truth by which a crawler is judged."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(site,)))
    found = walked(web, f"{site.label}-0.test")
    assert len({real for real in found.values() if real}) == site.real_pages
    assert found == walked(SimulatedWeb(web.spec), f"{site.label}-0.test")


def test_what_is_decorated_is_the_same_page_and_what_is_meaningful_is_not() -> None:
    """D4: byte for byte but for the links."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(Decorated(), Meaningful())))
    shop, book = web.traps
    pages = [web.traps.page(shop, f"/item/1{query}") for query in ("", "?from=list1", "?from=item2")]
    assert pages[0] is not None
    assert pages == [pages[0]] * 3
    assert web.traps.page(shop, "/list?page=1") != web.traps.page(shop, "/list?page=2")
    assert web.traps.page(book, "/part/1?from=1") != web.traps.page(book, "/part/1?from=2")
    assert web.traps.page(book, "/part/1") is None


def test_a_moved_host_redirects_every_path_and_may_bear_a_whole_name() -> None:
    """D4: to the same path of the other one."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(Moved("http://shop.test", label="www.shop.test"),)))
    (host,) = web.traps
    assert (host.name, web.address_of("www.shop.test")) == ("www.shop.test", host.address)
    answer = web.traps.answer(host, "/a?b=c")
    assert answer.status == 301
    assert b"Location: http://shop.test/a?b=c\r\n" in answer.head
    assert web.traps.answer(host, "/robots.txt").status == 200
