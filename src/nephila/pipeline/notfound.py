"""Pages that are not there although the server says so: soft 404 (T4).

A host that answers 200 for what it does not have is found out by asking it, once, for something that cannot exist: the
*probe*. It is asked only when there is a reason: two paths of it brought the same text, a title speaks of a page that
was not found, or several paths redirect to one place. The probe's path is made from the crawl's secret and the origin,
so it is known again when its answer comes, also after a restart, and nobody else can lay a page there.

Afterwards a page with the very text of the probe's answer is missing, whatever its status says. Not so

- the home page, ever;
- any page of a host whose home page says the same as the probe's answer: an application that is drawn by scripts has
  one shell for everything, and equal texts prove nothing. Where the home page was not seen, some others must have been;
- any page of a host whose answer to the probe is such a shell, unless its title speaks of a missing page: the home page
  may be the only one that is not drawn by scripts.

Texts that differ in numbers only are taken for the same where the title speaks of a missing page too.

What must stay true: `verdict`, `moved` and `invited` decide from what is known and change nothing; only `learn` does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from xxhash import xxh3_64_digest

from nephila.interfaces.missing import Absences
from nephila.interfaces.sieve import Sifted
from nephila.model.exchange import Fetched
from nephila.model.missing import OTHERS, Absence, HostAbsence
from nephila.model.page import Page
from nephila.model.rendering import Sign
from nephila.model.task import PageTask
from nephila.urls import Address, origin_of

SOFT_404 = "soft_404"
"""The kind under which a page that stands for a missing one is counted as an error."""
PROBE = "not_found_probe"
"""The reason of an answer that is no page because we asked for something that cannot exist."""
PROBE_MARK = "/nephila404probe"
PROBED_FOR_MS = 30 * 86_400_000
"""How long the answer to a probe is believed."""
HOSTS = 4_096
TEXTS = 64
"""Texts remembered of a host, and hosts: what comes again and again is met within these."""
REDIRECTED = 3
"""Different paths that lead to one place before we ask whether missing ones do."""
_HASH = 8
_ENTRY = _HASH * (1 + REDIRECTED)
_NO_PATH = bytes(_HASH)
"""What is remembered of a host is of fixed length, as there are many: 2 KB each."""

_PHRASES = (
    *("not found", "does not exist", "doesn't exist", "doesn\u2019t exist", "no longer available", "cannot be found"),
    *("nicht gefunden", "existiert nicht"),  # German
    *("introuvable", "non trouv", "existe pas"),  # French
    *("no encontrad", "no existe"),  # Spanish
    *("não encontrad", "não existe"),  # Portuguese
    *("non trovat", "non esiste"),  # Italian
    *("niet gevonden", "bestaat niet"),  # Dutch
    *("nie znaleziono", "nie została znaleziona", "nie istnieje"),  # Polish
    *("не найден", "не существует"),  # Russian
    *("не знайден", "не існує"),  # Ukrainian
    *("nenalezen", "nebyla nalezena", "neexistuje"),  # Czech
    *("hittades inte", "finns inte"),  # Swedish
    *("ikke fundet", "ikke funnet", "findes ikke", "finnes ikke"),  # Danish, Norwegian
    *("ei löyd", "ei löyty"),  # Finnish
    "bulunamad",  # Turkish, up to its dotless i
    "nem található",  # Hungarian
    *("nu a fost găsit", "nu există"),  # Romanian
    "δεν βρέθηκε",  # Greek
    *("見つかりません", "存在しません"),  # Japanese
    *("找不到", "未找到", "不存在"),  # Chinese
    "찾을 수 없",  # Korean
    "غير موجود",  # Arabic
    "לא נמצא",  # Hebrew
    "không tìm thấy",  # Vietnamese
    "tidak ditemukan",  # Indonesian
)
"""Looked for one by one, in lower case: a tenth of the time that one regular expression takes."""
_ASCII_PHRASES = tuple(phrase for phrase in _PHRASES if phrase.isascii())
"""Those that a title of ASCII may hold: half of them."""
_number = re.compile(r"\b404\b").search
_NOTHING = HostAbsence()
_NO_WORDS = xxh3_64_digest(b"")
"""The shape of a text in which every word holds a digit."""


class _Judged(Protocol):
    """What `learn` reads of a judgement."""

    @property
    def page(self) -> Page | None:
        """What was read."""

    @property
    def error(self) -> str:
        """What kind of error it is, if it is one."""

    @property
    def sifted(self) -> Sifted:
        """What it leads to."""


def speaks_of_missing(title: str) -> bool:
    """Whether a title tells people, in one of some twenty languages, that there is no such page."""
    if "404" in title and _number(title):
        return True
    low = title.lower()
    for phrase in _ASCII_PHRASES if low.isascii() else _PHRASES:  # noqa: SIM110 - every page of a host that was not probed: any() takes twice as long
        if phrase in low:
            return True
    return False


def stands_for_missing(known: HostAbsence, page: Page) -> bool:
    """Whether a page of a host is the one that it sends for everything it does not have."""
    if known.absence is not Absence.SOFT or not known.tells or not page.text_hash:
        return False
    if page.text_hash == known.text:
        return True
    return page.shape_hash == known.shape != _NO_WORDS and speaks_of_missing(page.title)


class MissingPages:
    """Knows how hosts answer for missing pages, and finds out."""

    def __init__(
        self,
        absences: Absences,
        secret: int,
        identify: Callable[[str], Address | None],
        wall_ms: Callable[[], int],
        sign_of: Callable[[bytes, int], Sign] = lambda _body, _words: Sign.NONE,
    ) -> None:
        """`sign_of` tells of a body and its number of words what says that scripts make the page."""
        self._absences = absences
        self._sign_of = sign_of
        self._key = secret.to_bytes(16, "big")
        self._identify = identify
        self._wall_ms = wall_ms
        self._met: dict[str, bytes] = {}
        """By host: what was found, and at which paths, the first few (`_paths_of`)."""
        self._asked: set[str] = set()
        """Hosts that this process has invited."""

    def probe(self, origin: str) -> str:
        """The URL of an origin that surely does not exist."""
        name = hashlib.blake2b(origin.encode(), key=self._key, digest_size=10).hexdigest()
        return f"{origin}{PROBE_MARK}{name}"

    def is_probe(self, url: str) -> bool:
        """Whether a URL is a probe of ours, a slash at its end notwithstanding."""
        return PROBE_MARK in url and url.rstrip("/") == self.probe(origin_of(url))

    def verdict(self, task: PageTask, page: Page) -> str:
        """Why a page counts as missing; empty when it does not."""
        address = self._identify(task.url)
        known = self._absences.of(address.host) if address is not None else None
        if address is None or known is None or not stands_for_missing(known, page) or is_home(address):
            return ""
        return f"{address.host} sends the same page for a URL that cannot exist"

    def moved(self, task: PageTask, target: Address) -> str:
        """Why a redirect counts as a missing page; empty when it does not."""
        address = self._identify(task.url)
        known = self._absences.of(address.host) if address is not None and not is_home(address) else None
        if address is None or known is None or not known.tells or known.absence is not Absence.MOVED:
            return ""
        if known.location != target.key:
            return ""
        return f"{address.host} redirects to {target.url} for a URL that cannot exist"

    def invited(self, task: PageTask, page: Page | None, target: Address | None = None) -> list[Address]:
        """What to ask for beside the links because an answer is suspicious: the probe, and the home page if unseen."""
        address = self._identify(task.url)
        if address is None or (page is not None and not page.text_hash):
            return []
        known = self._absences.of(address.host) or _NOTHING
        if address.host in self._asked or self._was_probed(known):
            return []
        if not self._suspicious(address, page, target):
            return []
        origin = origin_of(task.url)
        wanted = [self.probe(origin)] + ([] if known.home else [f"{origin}/"])
        return [found for found in map(self._identify, wanted) if found is not None]

    def _was_probed(self, known: HostAbsence) -> bool:
        return known.absence is not Absence.UNKNOWN and self._wall_ms() - known.probed_at < PROBED_FOR_MS

    def _suspicious(self, address: Address, page: Page | None, target: Address | None) -> bool:
        if page is not None and speaks_of_missing(page.title):
            return True
        name = _found(page, target)
        others = _paths_of(self._met.get(address.host, b""), name) if name else []
        return bool(others) and len({_path(address), *others}) >= (2 if page is not None else REDIRECTED)

    def learn(self, task: PageTask, answer: Fetched, judged: _Judged, location: str) -> None:
        """Remember what an answer shows of its host."""
        address = self._identify(task.url)
        if address is None:
            return
        target = self._identify(location) if location else None
        for one in judged.sifted.candidates[-2:]:  # they come last
            if PROBE_MARK in one.address.url:
                self._note_asked(address.host)
        if judged.error == PROBE:
            self._learn_probe(address, answer, judged.page, target)
        elif judged.error or answer.unwanted:
            return
        elif is_home(address):
            self._learn_home(address.host, judged.page)
        else:
            known = self._absences.of(address.host) or _NOTHING
            self._learn_other(address.host, known, judged.page)
            if (name := _found(judged.page, target)) and not self._was_probed(known):
                self._remember(address, name)

    def _note_asked(self, host: str) -> None:
        if len(self._asked) >= HOSTS:
            self._asked.clear()
        self._asked.add(host)

    def _learn_other(self, host: str, known: HostAbsence, page: Page | None) -> None:
        """A page that says something else than the probe's answer: not everything is alike there."""
        if known.absence is Absence.UNKNOWN or known.home or known.others >= OTHERS or page is None:
            return
        if page.text_hash and page.text_hash != known.text and page.shape_hash != known.shape:
            self._absences.keep(host, replace(known, others=known.others + 1))

    def _learn_probe(self, address: Address, answer: Fetched, page: Page | None, target: Address | None) -> None:
        known = self._absences.of(address.host) or HostAbsence()
        absence, text, shape, location = Absence.HONEST, b"", b"", ""
        if 200 <= answer.status < 300:
            absence = Absence.SOFT
            if page is not None and (speaks_of_missing(page.title) or not self._sign_of(answer.body, page.words)):
                text, shape = page.text_hash, page.shape_hash
        elif target is not None and PROBE_MARK not in target.key:  # else it leads on to the same path: nothing is told
            absence, location = Absence.MOVED, target.key
        now = self._wall_ms()
        found = HostAbsence(absence, now, text, shape, location, known.home, known.home_shape)
        self._absences.keep(address.host, found)
        self._met.pop(address.host, None)

    def _learn_home(self, host: str, page: Page | None) -> None:
        if page is None or not page.text_hash:
            return
        known = self._absences.of(host) or HostAbsence()
        if (known.home, known.home_shape) != (page.text_hash, page.shape_hash):
            self._absences.keep(host, replace(known, home=page.text_hash, home_shape=page.shape_hash))

    def _remember(self, address: Address, name: bytes) -> None:
        """Remember that this was found there, while the host was not probed."""
        met = self._met.get(address.host, b"")
        if not met and len(self._met) >= HOSTS:
            del self._met[next(iter(self._met))]
        paths, path = _paths_of(met, name), _path(address)
        if len(paths) >= REDIRECTED or path in paths:
            return
        entry = b"".join((name, *paths, path)).ljust(_ENTRY, b"\0")
        if paths:
            at = _place_in(met, name)
            self._met[address.host] = met[:at] + entry + met[at + _ENTRY :]
        else:
            self._met[address.host] = met[-(TEXTS - 1) * _ENTRY :] + entry


def is_home(address: Address) -> bool:
    """Whether an address is that of its origin's home page, whatever it is spelled like."""
    return address.key == f"{origin_of(address.key)}/"


def _path(address: Address) -> bytes:
    return xxh3_64_digest(address.key.partition("?")[0].encode())


def _found(page: Page | None, target: Address | None) -> bytes:
    """A name for what was found: a text, or where it leads; empty for nothing."""
    if page is not None:
        return page.text_hash
    return xxh3_64_digest(b"to" + target.key.encode()) if target is not None else b""


def _place_in(met: bytes, name: bytes) -> int:
    """Where the entry of a name begins in what was met on a host; -1 where there is none."""
    at = met.find(name)
    while at > 0 and at % _ENTRY:
        at = met.find(name, at + 1)
    return at


def _paths_of(met: bytes, name: bytes) -> list[bytes]:
    """At which paths something was found. An entry is its name, then paths, then zeros: eight bytes each."""
    at = _place_in(met, name)
    if at < 0:
        return []
    paths = [met[place : place + _HASH] for place in range(at + _HASH, at + _ENTRY, _HASH)]
    return [path for path in paths if path != _NO_PATH]
