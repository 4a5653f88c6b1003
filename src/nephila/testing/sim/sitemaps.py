"""Sitemaps of simulated hosts: lists of their own pages, which are admitted in batches before the list is settled.

That makes the one long way from a capture in the archive to its settle: whoever confirms, lists or dies in the middle
of it must not lose the list, nor take it for settled.
"""

from __future__ import annotations

import random

from nephila.testing.web import ServedAnswer, SimulatedWeb
from nephila.testing.web.atlas import Spot
from nephila.testing.web.wire import write_answer

TARGET = "/sitemap.xml"
MOST = 40
"""Pages that one of them names."""
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'


class Sitemaps:
    """Which hosts have one, and what it names."""

    def __init__(self, web: SimulatedWeb, draw: random.Random, share: float) -> None:
        """`share` of the hosts have one."""
        self._web = web
        self._named: dict[str, list[Spot]] = {}
        for host in web.hosts if share else ():
            if draw.random() < share and host.pages:
                pages = sorted(draw.sample(range(host.pages), min(host.pages, draw.randint(1, MOST))))
                self._named[host.name] = [Spot(host.number, page) for page in pages]

    def named(self, host: str) -> list[Spot]:
        """The pages that the list of a host names."""
        return self._named.get(host, [])

    def answer(self, host: str) -> ServedAnswer | None:
        """The list as it is sent; None where there is none."""
        if host not in self._named:
            return None
        entries = "".join(f"<url><loc>{self._web.atlas.identity(spot)}</loc></url>\n" for spot in self._named[host])
        return write_answer(200, [("Content-Type", "application/xml")], f"{_HEAD}{entries}</urlset>\n".encode())
