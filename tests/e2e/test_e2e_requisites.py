"""What pages are shown with, over real sockets: an archive that can be replayed as the site looked."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from served import run, stored_pages

OPTIONS = ("--allow-address", "127.0.0.0/8", "--delay", "0", "--quiet", "--no-guess-sitemap", "--max-wait", "1")
KINDS = {"css": "text/css", "js": "text/javascript", "png": "image/png", "woff2": "font/woff2", "txt": "text/plain"}


class Site:
    """A site at one address that is shown with what is kept at another, as sites and their CDNs are."""

    def __init__(self, hold: ExitStack) -> None:
        self.texts: dict[str, str] = {}
        self.moved: dict[str, str] = {}
        self.site, self.cdn = (hold.enter_context(self._serving(host)) for host in ("127.0.0.1", "127.0.0.2"))
        site, cdn = self.site, self.cdn
        self.texts = {
            f"{site}/": f"""<title>Home</title><link rel=stylesheet href={cdn}/login/style.css><img src=/logo.png>
                <a href=/deeper>deeper</a><a href={cdn}/elsewhere>elsewhere</a><iframe src={cdn}/frame></iframe>""",
            f"{site}/deeper": f"<title>Deeper</title><script src={cdn}/moved.js></script><img src={cdn}/ads/a.png>",
            f"{site}/logo.png": "logo",
            f"{cdn}/login/style.css": "@import 'more.css'; body { background: url(../paper.png) }",
            f"{cdn}/login/more.css": "@font-face { src: url('/face.woff2') }",
            f"{cdn}/paper.png": "paper",
            f"{cdn}/face.woff2": "face",
            f"{cdn}/frame": "<title>Frame</title><img src=/framed.png><iframe src=/inner></iframe><a href=x>x</a>",
            f"{cdn}/framed.png": "framed",
            f"{cdn}/inner": "<title>Inner</title>",
            f"{cdn}/elsewhere": "<title>Elsewhere</title>",
            f"{cdn}/ads/a.png": "advert",
            f"{cdn}/kept/app.js": "app",
            f"{cdn}/robots.txt": "User-agent: *\nDisallow: /framed.png",
        }
        self.moved[f"{cdn}/moved.js"] = "/kept/app.js"

    def _serving(self, host: str) -> _Served:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = f"http://{host}:{self.server.server_address[1]}{self.path}"
                kind = KINDS.get(self.path.rpartition(".")[2], "text/html")
                body = site.texts.get(url, "").encode()
                self.send_response(301 if url in site.moved else 200 if body else 404)
                self.send_header("Location", site.moved.get(url, ""))
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing is said."""

        return _Served(ThreadingHTTPServer((host, 0), Handler))


class _Served:
    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.05,))

    def __enter__(self) -> str:
        self._thread.start()
        host, port, *_ = self._server.server_address
        return f"http://{host!s}:{port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with ExitStack() as hold:
        yield Site(hold)


def test_an_archive_has_what_its_pages_are_shown_with(site: Site, tmp_path: Path) -> None:
    """X1, S2, P1: wherever it is and as far as its robots.txt lets us; ordinary links still end at the scope."""
    out = tmp_path / "crawl"
    run("crawl", f"{site.site}/", "--out", out, *OPTIONS, "--page-requisites", "--exclude", "/ads/")
    wanted = {f"{site.site}{path}" for path in ("/", "/deeper", "/logo.png")}
    wanted |= {f"{site.cdn}{path}" for path in ("/login/style.css", "/login/more.css", "/paper.png", "/face.woff2")}
    wanted |= {f"{site.cdn}{path}" for path in ("/frame", "/kept/app.js")}
    assert set(stored_pages(out)) == wanted
    why = {path: run("why", out, f"{site.cdn}{path}").stdout for path in ("/ads/a.png", "/elsewhere", "/framed.png")}
    assert "exclude" in why["/ads/a.png"]
    assert "scope" in why["/elsewhere"]
    assert "robots" in why["/framed.png"]
    package = tmp_path / "site.wacz"
    run("export", out, "--format", "wacz", "--to", package)
    with zipfile.ZipFile(package) as opened:
        pages = [json.loads(line) for line in opened.read("pages/pages.jsonl").decode().splitlines()[1:]]
    assert {page["url"] for page in pages} == {f"{site.site}/", f"{site.site}/deeper", f"{site.cdn}/frame"}
    assert {page["title"] for page in pages} == {"Home", "Deeper", "Frame"}


def test_nothing_of_it_is_fetched_unless_asked(site: Site, tmp_path: Path) -> None:
    """X1, S2: a crawl brings pages."""
    out = tmp_path / "crawl"
    run("crawl", f"{site.site}/", "--out", out, *OPTIONS)
    assert set(stored_pages(out)) == {f"{site.site}/", f"{site.site}/deeper"}


def test_the_seeds_alone_are_stored_whole(site: Site, tmp_path: Path) -> None:
    """S3: one page as it looks, for whoever wants no more than that."""
    out = tmp_path / "crawl"
    run("crawl", f"{site.site}/", "--out", out, *OPTIONS, "--page-requisites", "--max-depth", "0")
    stored = set(stored_pages(out))
    assert f"{site.site}/deeper" not in stored
    assert {f"{site.site}/logo.png", f"{site.cdn}/login/style.css", f"{site.cdn}/face.woff2"} <= stored
