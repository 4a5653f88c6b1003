"""A small site on loopback whose pages are others each time they are asked for; some never change, some are copies."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAGES = 12
STEADY = 3
"""Every so manieth page never changes, and says what the other steady ones say."""
PAGE_BYTES = 20_000


def is_steady(url: str) -> bool:
    """Whether a page of it never changes."""
    number = url.rpartition("/page-")[2]
    return number.isdecimal() and int(number) % STEADY == 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0

    def do_GET(self) -> None:
        known = {"/": 0, **{f"/page-{number}": number for number in range(1, PAGES)}}
        number = known.get(self.path)
        body = b"gone" if number is None else _page(number, self._count(number))
        self.send_response(404 if number is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _count(self, number: int) -> int:
        if is_steady(self.path):
            return 0
        type(self).asked += 1
        return self.asked

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


def _page(number: int, count: int) -> bytes:
    """A page that hardly anything can compress."""
    drawn = random.Random(f"{number if count else 0}/{count}")
    words = " ".join(f"{drawn.getrandbits(64):x}" for _ in range(PAGE_BYTES // 17))
    links = "".join(f'<a href="/page-{other}">{other}</a>' for other in range(1, PAGES)) if not number else ""
    return f"<html><head><title>A page</title></head><body>{links}<p>{words}</p></body></html>".encode()


@contextmanager
def changing_site() -> Iterator[str]:
    """Its first URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
