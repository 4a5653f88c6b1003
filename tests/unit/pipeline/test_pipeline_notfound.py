"""Which pages stand for missing ones, and which hosts are asked whether theirs do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from nephila.dedup import MemoryAbsences
from nephila.interfaces.sieve import Sifted
from nephila.model.exchange import Fetched
from nephila.model.missing import Absence, HostAbsence
from nephila.model.page import Directives, Page
from nephila.model.task import Candidate, Level, PageTask
from nephila.parse import sign_of
from nephila.pipeline.notfound import (
    PROBE,
    PROBE_MARK,
    PROBED_FOR_MS,
    MissingPages,
    speaks_of_missing,
    stands_for_missing,
)
from nephila.testing.contracts.aliases import identify

HOST = "a.example"
SOFT = HostAbsence(Absence.SOFT, 1, b"gone....", b"goneshap", "", b"home....", b"homeshap")


@dataclass
class Judged:
    page: Page | None = None
    error: str = ""
    sifted: Sifted = field(default_factory=Sifted)


class World:
    """Missing pages with a memory and a clock."""

    def __init__(self) -> None:
        self.now = 10**12
        self.absences = MemoryAbsences()
        self.missing = MissingPages(self.absences, 7, identify, lambda: self.now)

    def met(self, path: str, page: Page | None, location: str = "", error: str = "", status: int = 200) -> None:
        url = f"http://{HOST}{path}"
        self.missing.learn(task(path), answer(url, status), Judged(page, error), location)

    def invited(self, path: str, page: Page | None, location: str = "") -> list[str]:
        target = identify(location) if location else None
        return [address.url for address in self.missing.invited(task(path), page, target)]


def task(path: str) -> PageTask:
    address = identify(f"http://{HOST}{path}")
    assert address is not None
    return PageTask(address.fingerprint, address.url, 1, Level.MEDIUM)


def answer(url: str, status: int = 200) -> Fetched:
    return Fetched(url, b"", b"", b"", status, (), b"", "127.0.0.1", 0, 1, 1)


def page(text: bytes, title: str = "Spiders", shape: bytes = b"") -> Page:
    return Page("http://a.example/", "", "utf-8", title, (), Directives(), text_hash=text, shape_hash=shape or text)


@pytest.mark.parametrize(
    "title",
    [
        "404",
        "Error 404 - Spiders",
        "Page Not Found",
        "Seite nicht gefunden",
        "Page introuvable",
        "Página no encontrada",
        "Página não encontrada",
        "Pagina non trovata",
        "Pagina niet gevonden",
        "Nie znaleziono strony",
        "Страница не найдена",
        "Сторінку не знайдено",
        "Stránka nenalezena",
        "Sidan hittades inte",
        "Siden blev ikke fundet",
        "Sivua ei löytynyt",
        "Sayfa bulunamad\u0131",
        "Az oldal nem található",
        "Pagina nu a fost găsită",
        "404: δεν βρέθηκε",
        "ページが見つかりません",
        "找不到页面",
        "페이지를 찾을 수 없습니다",
        "الصفحة غير موجودة",
    ],
)
def test_titles_of_missing_pages_are_known_in_many_languages(title: str) -> None:
    """T4: whoever writes so is asked."""
    assert speaks_of_missing(title)


@pytest.mark.parametrize("title", ["Peugeot 4045", "Lost and found", "Found", "Room 1404", "Welcome", ""])
def test_other_titles_are_not(title: str) -> None:
    """T4: a reason to ask must be one."""
    assert not speaks_of_missing(title)


def test_the_text_of_the_probe_is_a_missing_page() -> None:
    """T4: the very text; or, with a title that says so, the same but for numbers."""
    assert stands_for_missing(SOFT, page(b"gone...."))
    assert stands_for_missing(SOFT, page(b"other...", "Not found", b"goneshap"))
    assert not stands_for_missing(SOFT, page(b"other...", "Spiders", b"goneshap"))
    assert not stands_for_missing(SOFT, page(b"other..."))


@pytest.mark.parametrize(
    "known",
    [
        HostAbsence(),
        replace(SOFT, absence=Absence.HONEST),
        replace(SOFT, home=b""),
        replace(SOFT, home=b"gone...."),
        replace(SOFT, home_shape=b"goneshap"),
        replace(SOFT, text=b"", shape=b""),
    ],
    ids=["unknown", "honest", "home unseen", "home the same", "home but for numbers", "no text"],
)
def test_where_likeness_proves_nothing_nothing_is_judged(known: HostAbsence) -> None:
    """T4: an application's shell, a host that was not asked, a home page that nobody has seen."""
    assert not stands_for_missing(known, page(b"gone....", "Not found"))
    assert not stands_for_missing(known, page(b"", "Not found"))


def test_the_home_page_is_never_missing() -> None:
    """T4: whatever it says, and however it is spelled."""
    world = World()
    world.absences.keep(HOST, SOFT)
    assert world.missing.verdict(task("/x"), page(b"gone...."))
    for spelling in ("/", "/?utm_source=x"):
        assert world.missing.verdict(task(spelling), page(b"gone....")) == ""


def test_the_probe_is_a_secret_and_known_again() -> None:
    """T4: nobody else can lay a page there."""
    world, other = World(), MissingPages(MemoryAbsences(), 8, identify, lambda: 0)
    probe = world.missing.probe(f"http://{HOST}")
    assert probe.startswith(f"http://{HOST}{PROBE_MARK}")
    assert world.missing.is_probe(probe)
    assert world.missing.is_probe(probe + "/")
    assert not other.is_probe(probe)
    assert not world.missing.is_probe(probe.replace("a.example", "b.example"))
    assert world.missing.probe(f"https://{HOST}").rpartition("/")[2] != probe.rpartition("/")[2]


def test_a_host_is_asked_when_two_paths_say_the_same() -> None:
    """T4: not for one path under two queries, and not for two texts."""
    world = World()
    assert world.invited("/a", page(b"same....")) == []
    world.met("/a", page(b"same...."))
    assert world.invited("/a?x=1", page(b"same....")) == []
    assert world.invited("/b", page(b"other...")) == []
    probe = world.missing.probe(f"http://{HOST}")
    assert world.invited("/b", page(b"same....")) == [probe, f"http://{HOST}/"]
    world.met("/", page(b"home...."))
    assert world.invited("/b", page(b"same....")) == [probe]


def test_a_title_or_redirects_to_one_place_are_a_reason_too() -> None:
    """T4: one title, three redirects."""
    world = World()
    assert world.invited("/a", page(b"one.....", "404"))
    goal = f"http://{HOST}/start"
    for path in ("/a", "/b"):
        assert world.invited(path, None, goal) == []
        world.met(path, None, goal, status=302)
    assert world.invited("/b", None, goal) == []
    assert world.invited("/c", None, goal)


def test_a_host_is_asked_again_after_a_month() -> None:
    """T4: sites change."""
    world = World()
    world.met("/", page(b"home...."))
    assert world.invited("/a", page(b"one.....", "404"))
    world.met(PROBE_MARK, None, error=PROBE, status=404)
    assert world.invited("/a", page(b"one.....", "404")) == []
    world.now += PROBED_FOR_MS
    assert world.invited("/a", page(b"one.....", "404"))


@pytest.mark.parametrize(
    ("status", "location", "found"),
    [
        (404, "", Absence.HONEST),
        (410, "", Absence.HONEST),
        (200, "", Absence.SOFT),
        (302, f"http://{HOST}/start", Absence.MOVED),
        (301, f"https://{HOST}{PROBE_MARK}abc", Absence.HONEST),
    ],
)
def test_what_a_probe_shows(status: int, location: str, found: Absence) -> None:
    """T4: an error, a page, a redirect to one place; a redirect to the same path shows nothing."""
    world = World()
    world.met("/", page(b"home...."))
    body = page(b"gone....") if status == 200 else None
    world.met(PROBE_MARK, body, location, PROBE, status)
    known = world.absences.of(HOST)
    assert known is not None
    assert (known.absence, known.home, known.probed_at) == (found, b"home....", world.now)
    goal = identify(f"http://{HOST}/start")
    assert goal is not None
    assert bool(world.missing.verdict(task("/x"), page(b"gone...."))) is (found is Absence.SOFT)
    assert bool(world.missing.moved(task("/x"), goal)) is (found is Absence.MOVED)


SHELL = f"<title>App</title><div id=root></div><script>{'x' * 6000}</script>".encode()


@pytest.mark.parametrize(
    ("body", "title", "missing"),
    [
        (SHELL, "App", False),
        (SHELL, "404: This page could not be found", True),
        (b"<title>Spiders</title><p>Nothing is here, and nothing will be.", "Spiders", True),
    ],
)
def test_a_shell_that_scripts_fill_stands_for_no_missing_page(body: bytes, title: str, missing: bool) -> None:
    """T4, J1: an application whose home page alone is not drawn by scripts; its not-found page says so in its title."""
    absences = MemoryAbsences()
    pages = MissingPages(absences, 7, identify, lambda: 10**12, sign_of)
    pages.learn(task("/"), answer(f"http://{HOST}/"), Judged(page(b"home....")), "")
    probed = replace(answer(f"http://{HOST}{PROBE_MARK}"), body=body)
    pages.learn(task(PROBE_MARK), probed, Judged(page(b"shell...", title), PROBE), "")
    assert bool(pages.verdict(task("/x"), page(b"shell...", title))) is missing
    known = absences.of(HOST)
    assert known is not None
    assert known.absence is Absence.SOFT  # not asked again


def test_where_the_home_page_was_never_seen_some_others_will_do() -> None:
    """T4, F10: robots.txt may forbid it, and a crash may take what was known of it."""
    world = World()
    world.met(PROBE_MARK, page(b"gone...."), error=PROBE)
    for number in range(3):
        assert world.missing.verdict(task("/x"), page(b"gone....")) == ""
        world.met(f"/{number}", page(b"gone...."))
        world.met(f"/{number}", page(number.to_bytes(8, "big")))
    assert world.missing.verdict(task("/x"), page(b"gone...."))


def test_a_process_invites_a_host_once() -> None:
    """T4: the probe is wanted at once, which asks again for what is known; a second process may have to."""
    world = World()
    suspicious = page(b"one.....", "404")
    (probe, home) = world.missing.invited(task("/a"), suspicious)
    judged = Judged(suspicious, sifted=Sifted([Candidate(probe, 1), Candidate(home, 1)]))
    world.missing.learn(task("/a"), answer("http://a.example/a"), judged, "")
    assert world.invited("/b", suspicious) == []
    again = MissingPages(world.absences, 7, identify, lambda: world.now)
    assert again.invited(task("/b"), suspicious)


def test_memory_of_texts_is_bounded() -> None:
    """T4, F8: what is met again and again is met within the last texts."""
    world = World()
    for number in range(1000):
        world.met(f"/{number}", page(number.to_bytes(8, "big")))
    assert world.invited("/x", page((5).to_bytes(8, "big"))) == []
    assert world.invited("/x", page((999).to_bytes(8, "big")))
