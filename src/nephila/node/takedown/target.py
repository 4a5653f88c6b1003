"""What a takedown means: pages by their fingerprint, hosts by their name with all below it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from nephila.frontier.blocklist import EXACTLY, check_pattern
from nephila.model.errors import UsageError
from nephila.model.policy import Block
from nephila.model.settings import Settings
from nephila.urls import Address, mask_secrets

from .record import Order

MOST = 1000
"""URLs and domains of one takedown."""

Identify = Callable[[str], Address | None]


def refuse_objects(settings: Settings, _order: Order | None = None) -> None:
    """Raise `UsageError` for a crawl directory whose archive is in a store: a fleet alone may rewrite what is there."""
    if settings.archive.url:
        raise UsageError(
            f"the archive of this crawl is in {settings.archive.url}, where a crawl never overwrites objects",
            hint="`nephila block` keeps it from being fetched; what is stored there is yours to delete",
        )


def check_order(order: Order, identify: Identify) -> Order:
    """The order as it is kept; raises `UsageError` for one that makes no sense, before anything is done."""
    reason = " ".join(order.reason.split())
    if not reason:
        raise UsageError("a takedown needs a reason", "it is kept in the record and told by `why`")
    if not order.urls and not order.domains:
        raise UsageError("a takedown needs a URL or a domain", "give at least one")
    if len(order.urls) + len(order.domains) > MOST:
        raise UsageError(f"a takedown may name {MOST} URLs and domains", "order several")
    urls = []
    for url in order.urls:
        address = identify(url) if "://" in url else None
        if address is None:
            raise UsageError(f"{url!r} is no URL that could be taken down", "write it like https://example.org/page")
        urls.append(address.url)
    domains = []
    for domain in order.domains:
        if "://" in domain:
            raise UsageError(f"{domain!r} is a URL, not a domain", "write it like example.org, or give it as a URL")
        domains.append(check_pattern(domain))
    return Order(tuple(dict.fromkeys(urls)), tuple(dict.fromkeys(domains)), reason, order.who)


class Target:
    """Ready to be asked."""

    def __init__(self, order: Order, identify: Identify) -> None:
        self._identify = identify
        self.order = order
        self.pages: dict[bytes, Address] = {}
        for url in order.urls:
            if (address := identify(url)) is not None:
                self.pages[address.fingerprint] = address
        self._masked = {mask_secrets(address.url) for address in self.pages.values()}
        self._hosts = {address.host for address in self.pages.values()}

    def blocks(self, at: int) -> list[Block]:
        """What keeps it from being fetched again."""
        reason = self.order.reason
        exact = [Block(one.url + EXACTLY, reason, at, one.fingerprint) for one in self.pages.values()]
        return [*exact, *(Block(name, reason, at) for name in self.order.domains)]

    def is_page(self, host: str, fingerprint: bytes) -> bool:
        """Whether a capture is one of those that go."""
        return fingerprint in self.pages or self.is_host(host)

    def is_host(self, host: str) -> bool:
        """Whether a whole host goes."""
        return any(host == name or host.endswith(f".{name}") for name in self.order.domains)

    def names(self, url: str) -> bool:
        """Whether a URL, perhaps with its secrets masked, is one of those that go."""
        if not url:
            return False
        host = _host_of(url)
        if self.is_host(host) or url in self._masked:
            return True
        if host not in self._hosts:
            return False
        address = self._identify(url)
        return address is not None and address.fingerprint in self.pages

    def may_be_in(self, line: bytes) -> bool:
        """Whether a line could name it: all others need not be taken apart."""
        return any(name.encode() in line for name in (*self._hosts, *self.order.domains))


def _host_of(url: str) -> str:
    """The host of a URL as captures are listed under it: an IPv6 address in brackets, no dot at the end of a name."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host else host.rstrip(".")
