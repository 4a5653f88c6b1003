"""Documents over real sockets: what only they lead to is fetched, whatever their servers call them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from office_writer import docx, odf, xlsx
from pdf_writer import PdfPage, make_pdf
from served import records, run, stored_pages

OPEN_XML = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.fixture
def origin() -> Iterator[str]:
    """A site of documents, each of which leads to a page of its own."""
    site: dict[str, tuple[str, bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content_type, body = site.get(self.path, ("text/html", b""))
            self.send_response(200 if self.path in site else 404)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"

        def pdf(name: str) -> bytes:
            return make_pdf([PdfPage(annotations=(f"{url}/behind/{name}",))])

        names = ("a.docx", "b.xlsx", "c.odt", "d.docx", "e.pdf", "f.pdf", "g", "h.pdf")
        links = "".join(f'<a href="/{name}">{name}</a>' for name in names)
        site["/"] = ("text/html", f"<title>Documents</title>{links}".encode())
        site["/a.docx"] = (OPEN_XML, docx(f"{url}/behind/a"))
        site["/b.xlsx"] = ("application/zip", xlsx(formulas=(f"{url}/behind/b",)))
        site["/c.odt"] = ("application/octet-stream", odf("../behind/c"))
        site["/d.docx"] = (OPEN_XML, b"not a document at all")
        site["/e.pdf"] = ("application/octet-stream", pdf("e"))
        site["/f.pdf"] = ("text/html", pdf("f"))
        site["/g"] = ("application/octet-stream", pdf("g"))
        site["/h.pdf"] = ("text/html", f'<a href="{url}/behind/h">this is a page</a>'.encode())
        for name in "abcdefgh":
            site[f"/behind/{name}"] = ("text/html", f"<title>{name}</title>".encode())
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield url
        finally:
            server.shutdown()
            thread.join()


def behind(out: Path) -> str:
    return "".join(sorted(url.rpartition("/")[2] for url in stored_pages(out) if "/behind/" in url))


def test_documents_are_read_whatever_their_type(origin: str, tmp_path: Path) -> None:
    """X4, H7, O1: by the type, or by name and bytes together; a name or bytes alone are not enough."""
    out = tmp_path / "crawl"
    options = ("--allow-address", "127.0.0.0/8", "--delay", "0", "--quiet", "--no-guess-sitemap")
    run("crawl", f"{origin}/", "--out", out, *options, "--office-links", "--pdf-links")
    assert behind(out) == "abcefh", "g has no ending, d is no document"
    events = [json.loads(line) for path in (out / "events").iterdir() for line in path.read_text().splitlines()]
    told = {one["url"].rpartition("/")[2]: one for one in events if one["event"] == "office_links_extracted"}
    assert set(told) == {"a.docx", "b.xlsx", "c.odt", "d.docx"}
    assert (told["a.docx"]["links"], told["d.docx"]["links"], told["d.docx"]["detail"]) == (1, 0, "no package")
    bodies = {}
    for _, record, block in records(out):
        if record.rec_type == "response":
            bodies[record.rec_headers.get_header("WARC-Target-URI")] = block.partition(b"\r\n\r\n")[2]
    assert not bodies[f"{origin}/a.docx"], "their bodies are not kept"
    assert not bodies[f"{origin}/e.pdf"]
    assert bodies[f"{origin}/h.pdf"]


def test_none_is_fetched_unless_asked(origin: str, tmp_path: Path) -> None:
    """X4, S2: links to them are refused by their ending."""
    out = tmp_path / "crawl"
    run("crawl", f"{origin}/", "--out", out, "--allow-address", "127.0.0.0/8", "--delay", "0", "--quiet")
    assert behind(out) == ""
    kept = tmp_path / "kept"
    options = ("--allow-address", "127.0.0.0/8", "--delay", "0", "--quiet", "--office-links", "--keep-office")
    run("crawl", f"{origin}/", "--out", kept, *options)
    assert behind(kept) == "abc"
    stored = [block for _, record, block in records(kept) if record.rec_type == "response" and b"PK\x03\x04" in block]
    assert len(stored) == 3
