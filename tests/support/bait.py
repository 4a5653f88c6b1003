"""The bait: every way that a page can name an address that is not public, and what the crawler must say of it.

Only data. It is served by `bait_servers` and crawled by `baited_crawls`, both inside a network namespace with nothing
but loopback (`namespace`).
"""

from __future__ import annotations

from typing import NamedTuple

PUBLIC = "93.184.216.34"
PUBLIC_6 = "2606:2800:220:1::34"
SILENT = "93.184.216.35"
"""Public, and nobody listens there."""
SITE = "http://site.test/"

BAIT: dict[str, str] = {
    "127.0.0.1": "loopback",
    "127.0.0.53": "loopback",
    "10.0.0.5": "private",
    "10.0.0.77": "private",
    "10.0.1.1": "private",
    "172.16.0.1": "private",
    "192.168.1.1": "private",
    "169.254.169.254": "metadata service",
    "169.254.1.1": "link-local",
    "100.64.0.1": "carrier-grade NAT",
    "100.100.100.200": "metadata service",
    "168.63.129.16": "metadata service",
    "192.0.0.192": "metadata service",
    "198.18.0.1": "benchmarking",
    "203.0.113.7": "documentation",
    "240.0.0.1": "reserved",
    "::1": "loopback",
    "::10.0.0.5": "not global unicast",
    "fd00:ec2::254": "metadata service",
    "fd12::1": "private",
    "fd12:0:0:1::1": "private",
    "fe80::1": "link-local",
    "fec0::1": "site-local",
    "100::1": "discard-only",
    "2001:db8::1": "documentation",
    "64:ff9b::a00:5": "NAT64 of private",
    "64:ff9b::a9fe:a9fe": "NAT64 of metadata service",
    "64:ff9b:1::a00:5": "local NAT64",
    "2002:a00:5::1": "6to4 of private",
    "2002:7f00:1::1": "6to4 of loopback",
    "2001:0:a00:5::1": "Teredo of private",
    "2001:0:5db8:d822::f5ff:fffa": "Teredo of private",
}
"""Addresses with a listener each, and why they are refused."""

ELSEWHERE: dict[str, str] = {
    "0.0.0.0": "unspecified",  # noqa: S104 - linked to, not bound to
    "::": "unspecified",
    "::ffff:10.0.0.5": "private",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:a9fe:a9fe": "metadata service",
    "224.0.0.1": "multicast",
    "ff02::1": "multicast",
    "255.255.255.255": "broadcast",
}
"""Addresses that end at a listener of `BAIT`, or where nobody can listen."""

SPELLINGS: dict[str, str] = {
    "2130706433": "loopback",
    "017700000001": "loopback",
    "0x7f000001": "loopback",
    "0177.0.0.1": "loopback",
    "0x7f.1": "loopback",
    "127.1": "loopback",
    "127.0.0.1.": "loopback",
    "%31%32%37.0.0.1": "loopback",
    "\uff11\uff12\uff17.0.0.1": "loopback",  # full-width digits
    "127\u30020\u30020\u30021": "loopback",  # ideographic full stops
    "someone:secret@127.0.0.1": "loopback",
    "127.0.0.1:3128": "loopback",  # the proxy itself
    "0": "unspecified",
    "10.5": "private",
    "167772165": "private",
    "0xa9fea9fe": "metadata service",
    "0251.0376.0251.0376": "metadata service",
    "[0:0:0:0:0:0:0:1]": "loopback",
    "[0000:0000:0000:0000:0000:ffff:7f00:0001]": "loopback",
    "[::FFFF:169.254.169.254]": "metadata service",
    "[64:FF9B::10.0.0.5]": "NAT64 of private",
}
"""Other ways to write some of them."""


class Case(NamedTuple):
    """A URL that must be refused, and the words that its refusal must hold."""

    url: str
    reason: str


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _name(number: int) -> str:
    return f"n{number}.bait.test"


def _numbered() -> list[tuple[int, str, str]]:
    return [(number, *item) for number, item in enumerate((BAIT | ELSEWHERE).items())]


def literals() -> list[Case]:
    """Linked by address, in every spelling. Each has a path of its own: most spellings are the same address."""
    hosts = [(_host(address), reason) for _, address, reason in _numbered()] + list(SPELLINGS.items())
    cases = [Case(f"http://{host}/literal/{number}", reason) for number, (host, reason) in enumerate(hosts)]
    return [*cases, *(Case(f"https://{host}/literal", reason) for host, reason in hosts[:20])]


def names() -> list[Case]:
    """Linked by a name whose answer is the address, directly or over an alias."""
    cases = [Case(f"http://{_name(number)}/name", reason) for number, _, reason in _numbered()]
    return [*cases, Case("http://alias.test/name", "private"), Case("http://localhost/name", "loopback")]


def redirected() -> list[Case]:
    """Linked by an innocent URL of the site that redirects there: to addresses, spellings and names."""
    targets = [(_host(address), reason) for _, address, reason in _numbered()] + list(SPELLINGS.items())
    targets += [(_name(number), reason) for number, _, reason in _numbered()]
    return [Case(f"http://{host}/redirected/{number}", reason) for number, (host, reason) in enumerate(targets)]


def robots_redirects() -> dict[str, Case]:
    """Hosts that are public themselves, and the bait that their robots.txt redirects to."""
    return {
        f"robots{number}.test": Case(f"http://{_host(address)}/robots.txt", reason)
        for number, address, reason in _numbered()
    }


TURNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "turns-good-first.test": ((PUBLIC,), ("10.0.0.5",)),
    "turns-bad-first.test": (("10.0.0.5",), (PUBLIC,)),
    "turns-metadata.test": ((PUBLIC,), ("169.254.169.254",), ("::1",)),
    "turns-6.test": ((PUBLIC_6,), ("64:ff9b::a00:5",), ("2002:7f00:1::1",)),
}
"""Names that change their answer with every question (rebinding)."""
TURN_PAGES = 6

MIXED = {"mixed.test": (PUBLIC, "10.0.0.5", "::1"), "mixed-silent.test": (SILENT, "10.0.0.5", "fd12::1")}
"""Names with public and other addresses at once; of the second one, the public address does not answer."""


def zone() -> dict[str, tuple[tuple[str, ...], ...]]:
    """What the name server says: for each name its answers in turn."""
    fixed = {_name(number): ((address,),) for number, address, _ in _numbered()}
    public = dict.fromkeys(("site.test", *robots_redirects()), ((PUBLIC,),))
    mixed = {name: (addresses,) for name, addresses in MIXED.items()}
    local = {"six.test": ((PUBLIC_6,),), "localhost": (("127.0.0.1", "::1"),), "inner.test": (("10.0.0.5",),)}
    return {**fixed, **public, **mixed, **local, **TURNS}


ALIASES = {"alias.test": "inner.test"}
"""CNAME records."""
