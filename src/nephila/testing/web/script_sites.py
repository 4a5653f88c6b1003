"""Sites whose pages are made by their scripts: links and text are there only when these have run (J1).

Every page of a `ScriptSite` is the same empty shell. Its one script asks for the page's data and makes the document of
it; real browsers run it, and `testing.renderer` does what it says. What a visit may ask for besides is told by the
site, so that an auditor knows visits: the script, shared by all pages, and the data of one page each. The data name a
part that robots.txt forbids and one on a host that nobody may reach, which no crawler may ask for.

With a `bundle`, its script lies on another host, a `BundleSite`, and loads a second one from there; with an `api`, its
data do. Neither belongs to a visit: their hosts are asked for them like for anything else.

`FramedSite` bears the mark of a framework and has everything in its HTML: a browser has nothing to add.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from .draw import Salt, draw
from .trap_sites import SitePage
from .wire import ServedAnswer, write_answer
from .words import SentenceBank, title

SCRIPT = "/static/app.js"
DATA = "/data"
LOADED = "/v1/loader.js"
"""The first of the two scripts of a bundle."""
FORBIDDEN_DATA = "/private/extra.json"
INNER_DATA = "http://10.1.2.3/inner.json"
"""An address that is not public: never to be asked."""

APP = """
async function show() {
  const path = location.pathname === "/" ? "/index" : location.pathname;
  const answer = await fetch((document.documentElement.dataset.api || "") + "/data" + path + ".json");
  const page = await answer.json();
  document.title = page.title;
  const root = document.getElementById("root");
  root.innerHTML = "<h1></h1><p></p><ul></ul>";
  root.querySelector("h1").textContent = page.title;
  root.querySelector("p").textContent = page.text;
  for (const href of page.links) {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = href;
    link.textContent = "on to " + href;
    item.append(link);
    root.querySelector("ul").append(item);
  }
  for (const extra of page.extras) fetch(extra).catch(() => {});
}
show();
"""

LOADER = """// loads: app.js
const more = document.createElement("script");
more.src = new URL("app.js", document.currentScript.src);
document.head.append(more);
"""
"""A script that does nothing but load another one: two steps, one behind the other."""

_PADDING = "/* " + "styles of a shell are long. " * 220 + " */"


@dataclass(frozen=True, slots=True)
class ScriptSite:
    """A site of empty shells."""

    pages: int = 20
    fanout: int = 4
    label: str = "script"
    bundle: str = ""
    """The name of the host that its script lies on, where that is not its own."""
    api: str = ""
    """The same of its data."""
    baited: bool = True
    """Its data name parts that nobody may ask for."""

    @property
    def real_pages(self) -> int:
        """The home page and all others."""
        return 1 + self.pages

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """What a target holds when its script has run."""
        number = self._number(target)
        if number is None:
            return None
        bits = draw(71, Salt.TEXT, 90_000 + number, len(self.label))
        first = number * self.fanout + 1
        links = [f"/view/{n}" for n in range(first, min(first + self.fanout, self.pages + 1))]
        return SitePage(title(bits), " ".join(bank.passages(bits, 900)), [*links, "/"], target)

    def serve(
        self, target: str, headers: Mapping[str, str], now: int, origin: str, bank: SentenceBank
    ) -> ServedAnswer | None:
        """What is sent for a target; None for a 404."""
        del headers, now
        if target == "/robots.txt":
            return write_answer(200, [("Content-Type", "text/plain")], b"User-agent: *\nDisallow: /private/\n")
        if target == SCRIPT and not self.bundle:
            return write_answer(200, [("Content-Type", "text/javascript")], APP.encode())
        data = re.fullmatch(r"/data(/.+)\.json", target)
        if data is not None:
            path = "/" if data[1] == "/index" else data[1]
            page = self.page(path, bank)
            if page is None:
                return None
            extras = [FORBIDDEN_DATA, INNER_DATA] if self.baited else []
            body = {"title": page.title, "text": page.text, "links": page.links, "extras": extras}
            return write_answer(200, [("Content-Type", "application/json")], json.dumps(body).encode())
        if self.page(target, bank) is None:
            return None
        port = origin.rpartition(":")[2]
        port = f":{port}" if port.isdigit() else ""
        script = f"http://{self.bundle}{port}{LOADED}" if self.bundle else SCRIPT
        api = f"http://{self.api}{port}" if self.api else ""
        return write_answer(200, [("Content-Type", "text/html; charset=utf-8")], shell(script, api).encode())

    def is_part(self, target: str) -> bool:
        """Whether a target is asked for by pages only, within visits."""
        return target == SCRIPT or target.startswith((f"{DATA}/", "/private/"))

    def _number(self, target: str) -> int | None:
        if target == "/":
            return 0
        match = re.fullmatch(r"/view/([1-9]\d*)", target)
        return int(match[1]) if match is not None and int(match[1]) <= self.pages else None


@dataclass(frozen=True, slots=True)
class BundleSite:
    """A host that holds the scripts of others, or their data, and has no page of its own."""

    label: str = "bundle"
    data_of: ScriptSite | None = None
    """Whose data it has."""
    forbids: bool = False
    """Its robots.txt lets nobody ask for anything."""
    is_dead: bool = False
    """It takes no connections."""
    lasting: str = "max-age=86400"
    """What it says of how long its answers last."""
    real_pages: int = 0

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """There is none."""
        del target, bank
        return None

    def serve(
        self, target: str, headers: Mapping[str, str], now: int, origin: str, bank: SentenceBank
    ) -> ServedAnswer | None:
        """What is sent for a target; None for a 404."""
        if target == "/robots.txt":
            rules = b"User-agent: *\nDisallow: /\n" if self.forbids else b"User-agent: *\nDisallow:\n"
            return write_answer(200, [("Content-Type", "text/plain")], rules)
        lasts = ("Cache-Control", self.lasting)
        if target == "/v1/moved.js":
            return write_answer(301, [("Location", LOADED), lasts], b"")
        if target in {LOADED, "/v1/app.js"}:
            script = LOADER if target == LOADED else APP
            return write_answer(200, [("Content-Type", "text/javascript"), lasts], script.encode())
        if self.data_of is not None and target.startswith(f"{DATA}/"):
            return self.data_of.serve(target, headers, now, origin, bank)
        return None

    def is_part(self, target: str) -> bool:
        """Nothing is: it is asked like any other host."""
        del target
        return False


@dataclass(frozen=True, slots=True)
class FramedSite:
    """A site whose pages bear a framework's mark, and say all they have to say without it."""

    pages: int = 40
    label: str = "framed"

    @property
    def real_pages(self) -> int:
        """The home page and all others."""
        return 1 + self.pages

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """What a target holds."""
        match = re.fullmatch(r"/post/([1-9]\d*)|/", target)
        number = int(match[1] or 0) if match is not None else self.pages + 1
        if number > self.pages:
            return None
        bits = draw(73, Salt.TEXT, 95_000 + number)
        following = [f"/post/{n}" for n in (2 * number + 1, 2 * number + 2) if n <= self.pages]
        return SitePage(title(bits), " ".join(bank.passages(bits, 1200)), following, target)

    def serve(
        self, target: str, headers: Mapping[str, str], now: int, origin: str, bank: SentenceBank
    ) -> ServedAnswer | None:
        """What is sent for a target; None for a 404."""
        del headers, now, origin
        if target == "/robots.txt":
            return write_answer(200, [("Content-Type", "text/plain")], b"User-agent: *\nDisallow:\n")
        page = self.page(target, bank)
        if page is None:
            return None
        links = "".join(f'<li><a href="{escape(href)}">on</a></li>' for href in page.links)
        html = (
            f'<!doctype html><html><head><title>{escape(page.title)}</title></head><body><div id="__next">'
            f"<h1>{escape(page.title)}</h1><p>{escape(page.text)}</p><ul>{links}</ul></div>"
            '<script id="__NEXT_DATA__" type="application/json">{}</script></body></html>'
        )
        return write_answer(200, [("Content-Type", "text/html; charset=utf-8")], html.encode())

    def is_part(self, target: str) -> bool:
        """Nothing is."""
        del target
        return False


def shell(script: str = SCRIPT, api: str = "") -> str:
    """The page that every page of a script site is before its script has run."""
    return (
        f'<!doctype html><html lang=en data-api="{api}"><head><title>Loading</title><style>{_PADDING}</style></head>'
        f'<body><noscript>Please switch on scripts.</noscript><div id="root"></div>'
        f'<script src="{script}"></script></body></html>'
    )
