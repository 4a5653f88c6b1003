"""A crawler that a child could check: no politeness, no threads, no clock, straight from the standards.

It asks `SimulatedWeb.answer` and reads what comes back with tools that are neither the model's nor the crawler's (but
for the WHATWG join of links). That what it finds equals the model's truth is what makes the truth worth trusting.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import brotlicffi as brotli
import can_ada
import pytest
import zstandard
from selectolax.lexbor import LexborHTMLParser

from nephila.testing.web import Fault, ServedAnswer, SimulatedWeb

DECODERS = {
    "": lambda body: body,
    "gzip": lambda body: zlib.decompress(body, wbits=31),
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
}


def header(answer: ServedAnswer, name: str) -> str:
    found = re.search(rb"(?i)\r\n" + name.encode() + rb": ([^\r]*)\r\n", answer.head)
    return found[1].decode() if found else ""


def decoded(answer: ServedAnswer) -> bytes:
    """The body without transfer and content coding, by the head alone."""
    body = answer.payload
    if header(answer, "transfer-encoding") == "chunked":
        whole, rest = b"", body
        while True:
            size, _, rest = rest.partition(b"\r\n")
            if int(size, 16) == 0:
                break
            whole, rest = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        body = whole
    elif header(answer, "content-length"):
        assert len(body) == int(header(answer, "content-length"))
    return DECODERS[header(answer, "content-encoding")](body)


class RobotsReader:
    """RFC 9309 in the plainest words: merged groups, longest match, Allow wins a tie."""

    def __init__(self, text: bytes, agent: str) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        agents: list[str] = []
        in_rules = False
        for line in text[: 500 * 1024].decode("utf-8-sig", "replace").splitlines():
            name, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
            if name.lower() == "user-agent":
                agents = [] if in_rules else agents
                in_rules = False
                agents.append(value.lower())
                groups.setdefault(value.lower(), [])
            elif name.lower() in ("allow", "disallow") and colon:
                in_rules = True
                for each in agents:
                    groups[each].append((name.lower(), value))
        self.rules = groups.get(agent.lower(), groups.get("*", []))

    def allows(self, target: str) -> bool:
        best = (0, True)
        for verb, pattern in self.rules:
            expression = "".join(".*" if char == "*" else re.escape(char) for char in pattern.removesuffix("$"))
            if pattern and re.match(expression + ("$" if pattern.endswith("$") else ""), target):
                best = max(best, (len(pattern), verb == "allow"))
        return best[1]


@dataclass
class Found:
    """What one page came to."""

    statuses: list[int]
    body: bytes | None
    fault: Fault | None


@dataclass
class NaiveCrawler:
    """Breadth first, every link, four tries."""

    web: SimulatedWeb
    agent: str = "Nephila"
    pages: dict[str, Found] = field(default_factory=dict)
    robots: dict[str, RobotsReader | None] = field(default_factory=dict)
    accept: str = "gzip, deflate, br, zstd"

    def crawl(self, seeds: list[str]) -> dict[str, Found]:
        queue = deque((seed, 0) for seed in seeds)
        while queue:
            url, hops = queue.popleft()
            identity = self.web.identify(url)
            if identity in self.pages or not self.wanted(url) or hops > 10:
                continue
            assert identity is not None, f"{url} leads nowhere"
            found, answer = self.fetch(url)
            location = header(answer, "location")
            if location and self.web.identify(str(can_ada.parse(url) + location)) == identity:
                respelled = str(can_ada.parse(url) + location)
                if respelled != url:
                    found, answer = self.fetch(respelled)
                    url, location = respelled, header(answer, "location")
            self.pages[identity] = found
            if location:
                queue.appendleft((str(can_ada.parse(url) + location), hops + 1))
            elif found.body is not None and header(answer, "content-type").startswith("text/html"):
                queue.extend((link, 0) for link in self.links(url, found.body, answer))
        return self.pages

    def fetch(self, url: str) -> tuple[Found, ServedAnswer]:
        parts = urlsplit(url)
        target = parts.path + ("?" + parts.query if url.partition("?")[1] else "")
        statuses = []
        for tries in range(4):
            answer = self.web.answer(parts.hostname or "", target, {"accept-encoding": self.accept}, 0, tries)
            statuses.append(answer.status)
            if answer.fault is None and answer.status < 500 and answer.status != 429:
                break
        good = answer.fault is None and answer.status == 200
        return Found(statuses, decoded(answer) if good else None, answer.fault), answer

    def wanted(self, url: str) -> bool:
        parts = urlsplit(url)
        if re.match(r"/(login|admin|cart)(/|$)", parts.path) or parts.path.endswith((".png", ".pdf")):
            return False
        host = self.web.hosts.find(parts.hostname or "")
        if host is None or host.door != "open":
            return False
        rules = self.rules_of(f"http://{parts.netloc}")
        return rules is not None and rules.allows(unquote(parts.path) + ("?" + parts.query if parts.query else ""))

    def rules_of(self, origin: str) -> RobotsReader | None:
        if origin not in self.robots:
            found, answer = self.fetch(origin + "/robots.txt")
            while header(answer, "location"):
                found, answer = self.fetch(header(answer, "location"))
            if answer.status >= 500:
                self.robots[origin] = None
            else:
                self.robots[origin] = RobotsReader(found.body or b"", self.agent)
        return self.robots[origin]

    def links(self, url: str, body: bytes, answer: ServedAnswer) -> list[str]:
        told = re.search(r"charset=([\w-]+)", header(answer, "content-type"))
        meta = re.search(rb'<meta charset="([\w-]+)"', body[:1024])
        charset = told[1] if told else meta[1].decode() if meta else "utf-8-sig"
        tree = LexborHTMLParser(body.decode(charset))
        if tree.css('meta[name="robots"][content*="nofollow"]'):
            return []
        base = can_ada.parse(url)
        for element in tree.css("base[href]"):
            base = can_ada.parse(str(base + (element.attributes["href"] or "")))
        hrefs = [
            attributes.get("href") or attributes.get("src") or ""
            for element in tree.css("a[href], area[href], link[href], iframe[src]")
            if "nofollow" not in ((attributes := element.attributes).get("rel") or "")
        ]
        joined = [str(base + href) for href in hrefs]
        return [re.sub(r"#.*", "", link).replace("reader@", "") for link in joined if link.startswith("http")]


@pytest.fixture(scope="session")
def naive_crawler() -> type[NaiveCrawler]:
    return NaiveCrawler


@pytest.fixture(scope="session")
def read_header() -> object:
    return header


@pytest.fixture(scope="session")
def read_body() -> object:
    return decoded
