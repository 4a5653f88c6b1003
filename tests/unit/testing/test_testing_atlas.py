from __future__ import annotations

import pytest

from nephila.testing.web import PageMix, Role, SimulatedWeb, WebSpec
from nephila.testing.web.atlas import LANDED, SHADOW, Spot
from nephila.testing.web.robots import in_forbidden_part
from nephila.testing.web.words import WORDS

WEB = SimulatedWeb(WebSpec(11, hosts=8, pages=1600))
ATLAS = WEB.atlas


def all_spots() -> list[Spot]:
    steps = (0, 1, 2, LANDED, SHADOW)
    spots = [Spot(host.number, page, step) for host in WEB.hosts for page in range(host.pages) for step in steps]
    return [spot for spot in spots if ATLAS.exists(spot)]


def test_every_place_has_its_own_url_and_is_found_by_it() -> None:
    spots = all_spots()
    assert len({ATLAS.identity(spot) for spot in spots}) == len(spots) > 1600
    for spot in spots:
        located = ATLAS.locate_url(ATLAS.identity(spot))
        assert located == (spot, False, False)


@pytest.mark.parametrize(
    ("role", "shape"),
    [
        (Role.ARTICLE, "http://HOST/a?utm_source=x"),
        (Role.ARTICLE, "http://HOST/a#part"),
        (Role.ARTICLE, "HTTP://HOST/a"),
        (Role.ARTICLE, "http://HOST:80/a"),
        (Role.ARTICLE, "http://HOST/a?"),
    ],
)
def test_spellings_lead_to_the_same_place(role: Role, shape: str) -> None:
    host = WEB.hosts[0]
    for page in range(1, host.articles):
        target = ATLAS.target(Spot(0, page))
        if "?" in target:
            continue
        url = shape.replace("HOST", host.name).replace("/a", target)
        assert WEB.identify(url) == ATLAS.identity(Spot(0, page))


def test_parameters_may_come_in_any_order() -> None:
    host = WEB.hosts[0]
    target = next(t for page in range(1, host.articles) if "/item?" in (t := ATLAS.target(Spot(0, page))))
    path, _, query = target.partition("?")
    turned = f"{path}?{'&'.join(reversed(query.split('&')))}"
    assert turned != target
    assert ATLAS.locate(host, turned) == ATLAS.locate(host, target)


def test_a_folder_without_its_slash_is_told_and_a_file_with_one_is_nothing() -> None:
    host = WEB.hosts[0]
    targets = [ATLAS.target(Spot(0, page)) for page in range(1, host.articles)]
    folder = next(target for target in targets if target.endswith("/"))
    file = next(target for target in targets if target.endswith(".html"))
    located = ATLAS.locate(host, folder[:-1])
    assert located is not None
    assert located.slashless
    assert ATLAS.locate(host, file + "/") is None


@pytest.mark.parametrize(
    "url",
    [
        "http://site0.test/nowhere",
        "http://site0.test/amber/amber-amber-99999.html",
        "http://site0.test/go/0",
        "http://site0.test:81/",
        "https://site0.test/",
        "http://site99.test/",
        "ftp://site0.test/",
        "",
    ],
)
def test_what_is_not_there_is_not_found(url: str) -> None:
    assert WEB.identify(url) is None


def test_a_forbidden_page_lies_in_a_forbidden_part_and_no_other_does() -> None:
    for spot in all_spots():
        role = ATLAS.role(WEB.hosts[spot.host], spot.page)
        assert in_forbidden_part(ATLAS.target(spot)) == (role is Role.FORBIDDEN)


def test_no_word_has_a_meaning_in_paths() -> None:
    meant = {"landed", "shadow", "private", "open", "login", "admin", "cart", "go", "guide", "item", "search", "files"}
    assert not meant & set(WORDS)


def test_roles_have_their_shares() -> None:
    web = SimulatedWeb(WebSpec(2, hosts=40, pages=8000, page_mix=PageMix(near=0.03)))
    roles = [web.atlas.role(host, page) for host in web.hosts for page in range(host.pages)]
    mix = web.spec.page_mix
    for share, members in mix.shares():
        measured = sum(role in members for role in roles) / len(roles)
        assert measured == pytest.approx(share, rel=0.25)
        assert set(members) <= set(roles)
