"""A small site on loopback with one of each thing that an export has to decide about, crawled in two cycles."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from served import run

PROSE = "Orb weavers build wheels of silk between two stems, take them down at dawn, and build them anew at dusk. " * 6

ROBOTS = "User-agent: *\nContent-Signal: search=yes, ai-train=no\nDisallow: /forbidden\n"


def page(title: str, body: str, head: str = "") -> str:
    """A document."""
    return f"<!doctype html><html lang=en><head><title>{title}</title>{head}</head><body>{body}</body></html>"


ARTICLE = page(
    "Silk & stems",
    "<nav><a href='/'>Home</a></nav><main><h1>Silk</h1>"
    f"<p>{PROSE}</p><ul><li>one</li><li>two <a href='same?b=2&amp;a=1' rel=nofollow>the other</a></li></ul>"
    "<pre><code class='language-python'>def weave():\n    return 'silk'</code></pre>"
    "<table><tr><th>part</th><th>mm</th></tr><tr><td>leg</td><td>30</td></tr></table></main>"
    "<script>alert('never text')</script><footer>Imprint</footer>",
)


@dataclass
class Site:
    """What is served; a test may change it between two cycles."""

    pages: dict[str, tuple[int, str, dict[str, str]]] = field(default_factory=dict)
    port: int = 0

    @property
    def url(self) -> str:
        """Of the home page."""
        return f"http://127.0.0.1:{self.port}/"

    def put(self, path: str, text: str, status: int = 200, **headers: str) -> None:
        """Serve a page from now on."""
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (status, text, {"Content-Type": "text/html; charset=utf-8", **told})

    def get(self, path: str) -> tuple[int, str, dict[str, str]]:
        """What is answered."""
        return self.pages.get(path, (404, page("Not here", "<p>No such page.</p>"), {"Content-Type": "text/html"}))


def full_site() -> Site:
    """One of each."""
    site = Site()
    links = (
        *("article", "copy", "same?b=2&a=1", "Upper", "upper", "noindex", "noarchive", "gone", "moved", "missing"),
        *("changing", "%2e%2e/%2fetc%2fpasswd", "con", "a%00b", "x" * 300, "deep/" * 14, "latin", "%E6%B0%B4"),
    )
    anchors = "".join(f'<a href="/{path}">to {number}</a> ' for number, path in enumerate(links))
    site.put("/", page("Home", f"<p>{anchors}</p>"))
    site.put("/robots.txt", ROBOTS, Content_Type="text/plain")
    site.put("/article", ARTICLE, ETag='"a1"')
    site.put("/copy", ARTICLE)
    site.put("/noindex", page("Private", f"<p>{PROSE}</p>", '<meta name=robots content="noindex">'))
    site.put("/noarchive", page("No copy", f"<p>{PROSE} Never.</p>"), X_Robots_Tag="noarchive")
    site.put("/moved", "", 301, Location="/article")
    site.put("/latin", page("Caf\u00e9", f"<p>Caf\u00e9 {PROSE}</p>"), Content_Type="text/html; charset=iso-8859-1")
    for path in (
        "/same?b=2&a=1",
        "/Upper",
        "/upper",
        "/gone",
        "/changing",
        "/con",
        "/a%00b",
        "/%E6%B0%B4",
        f"/{'x' * 300}",
    ):
        site.put(path, page(f"Page {path[:20]}", f"<h1>{path[:20]}</h1><p>{PROSE} {path}</p>"))
    return site


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """Serve it on a port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, text, headers = site.get(self.path)
            etag = headers.get("ETag")
            if etag is not None and self.headers.get("If-None-Match") == etag:
                status, text = 304, ""
            body = text.encode("latin-1" if "8859" in headers["Content-Type"] else "utf-8")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody listens."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    site.port = server.server_address[1]
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


FLAGS = (
    *("--allow-address", "127.0.0.1/32", "--delay", "0.01", "--max-wait", "5", "--quiet"),
    *("--set", "fetch.verify_unchanged_every=0"),  # else one page in 32 of an unchanged site is asked for in full
)


def crawl_twice(site: Site, out: Path, *more: str) -> None:
    """Crawl it; let a page change and another one go; crawl it once more."""
    run("crawl", site.url, "--out", out, *FLAGS, *more)
    site.put("/changing", page("Changed", f"<p>It says something else now. {PROSE}</p>"))
    del site.pages["/gone"]
    run("crawl", "--out", out, "--new-cycle", "--quiet")
