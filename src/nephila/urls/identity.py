"""From a link in a page to the address it stands for, or the reason why it stands for none (U1-U4).

A page brings eighty links and half of the budget of a page could go here, so the work is done per page where it can
be and per origin where it must be: links are joined in one sweep, repeated ones once; one look at the whole page tells
whether any URL needs the rare rules; what an origin means (its host, its rules) is found once; and addresses of late
are remembered, because the pages of a site share most of their links. (Measured: that makes a link that is new a fourth
dearer, and one that is known ten times cheaper.)

What must stay true: an `Address` depends on nothing but the link, its base and what the `Identifier` was made with; the
memories only save work, are bounded, and hold no URL that was refused (those may be megabytes long). `native/sieve.c`
does the plain cases of `identify_new` and hands all others back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from xxhash import xxh3_128_digest

from nephila.native import AVAILABLE, native

from .address import Address, is_possible
from .domain import registrable_domain
from .fingerprint import SECRET_BITS
from .normal import NormalForm, NormalRules, holds_rare
from .parse import Base, resolve

RefusalReason = Literal["malformed", "scheme", "too_long", "too_many_segments", "no_host"]


class UrlRefused(NamedTuple):
    """A link that is no address for us (U4); counted by reason."""

    url: str
    """As far as it was understood: the link as written when malformed, else the absolute URL."""
    reason: RefusalReason
    detail: str
    """What exactly, for people."""


@dataclass(frozen=True, slots=True)
class UrlLimits:
    """How long a URL may be (U4)."""

    max_length: int = 2048
    """Characters of the serialisation. The longest that every browser of old took."""
    max_segments: int = 15
    """Path segments; a trailing slash makes none."""


class _Site(NamedTuple):
    """What all URLs of one origin share."""

    prefix: str
    """The origin, without userinfo, and the slash that begins the path."""
    host: str
    normal_form: Callable[[str, int, bool], str]
    """`NormalForm.of` under the rules of its domain."""


_MEMO_ADDRESSES = 8_192
"""Addresses remembered, about 3 MB: the links of some hundred pages."""
_MEMO_SITES = 16_384
"""Origins remembered, about 8 MB."""
_new_address: Callable[[tuple[str, str, str, bytes]], Address] = partial(tuple.__new__, Address)
"""`Address` without the detour through its keyword arguments: half the time, eighty times a page."""
_HOSTLESS = re.compile(r"\s*https?:[/\\]*(?:[?#]|\s*$)", re.IGNORECASE)
MOST_DOTS = 8
"""At the end of a name; one means something, more are a slip of somebody's."""
_SHOWN = 200
"""Characters of a refused link that its detail quotes."""


class Identifier:
    """Gives links their addresses under the rules of one crawl."""

    def __init__(self, secret: int, rules: NormalRules, limits: UrlLimits) -> None:
        if not 0 <= secret < 1 << SECRET_BITS:
            raise ValueError(f"the secret must be a number of {SECRET_BITS} bits")
        self._secret = secret
        self._limits = limits
        self._form = NormalForm(rules)
        self._drop_slash = rules.drop_trailing_slash
        self._forms = {domain: NormalForm(override) for domain, override in rules.overrides.items()}
        self._sites: dict[str, _Site] = {}
        self._known: dict[str, Address] = {}

    def identify(self, url: str, base: Base | None = None) -> Address | UrlRefused:
        """The address of one link on a page with that base; without a base it must be absolute."""
        whole = resolve(None, url) if base is None else base.join(url)
        return _malformed(url) if whole is None else self.identify_resolved((whole,))[0]

    def identify_links(self, base: Base | None, hrefs: Sequence[str]) -> list[Address | UrlRefused]:
        """The addresses of a page's links, each in the place of its link; a repeated link is worked on once."""
        once = list(dict.fromkeys(hrefs))
        wholes = [resolve(None, href) for href in once] if base is None else base.join_all(once)
        found = iter(self.identify_resolved([whole for whole in wholes if whole is not None]))
        by_href = {
            href: _malformed(href) if whole is None else next(found) for href, whole in zip(once, wholes, strict=True)
        }
        return [by_href[href] for href in hrefs]

    def identify_resolved(self, urls: Sequence[str]) -> list[Address | UrlRefused]:
        """The addresses of URLs that are WHATWG serialisations already, as `parse` hands them on: nothing is parsed."""
        known = self._known
        new = [url for url in urls if url not in known]
        found = self.identify_new(new)
        following = iter(found)
        answers = found if len(new) == len(urls) else [known.get(url) or next(following) for url in urls]
        if len(known) > _MEMO_ADDRESSES:
            known.clear()
        longest = self._limits.max_length
        for url, answer in zip(new, found, strict=True):
            if isinstance(answer, Address) and len(url) <= longest:
                known[url] = answer
        return answers

    def address_of(self, url: str) -> Address | None:
        """The address of one URL that is a WHATWG serialisation already; None for what is none."""
        known = self._known.get(url)
        if known is not None:
            return known
        (found,) = self.identify_new((url,))
        if isinstance(found, UrlRefused):
            return None
        if len(self._known) > _MEMO_ADDRESSES:
            self._known.clear()
        if len(url) <= self._limits.max_length:
            self._known[url] = found
        return found

    def identify_new(self, urls: Sequence[str]) -> list[Address | UrlRefused]:
        """As `identify_resolved`, without memory: for whoever remembers addresses himself."""
        if not AVAILABLE or self._forms:
            return self.identify_plainly(urls)
        limits = self._limits
        return native.identify(
            urls,
            self._sites,
            self._secret,
            limits.max_length,
            limits.max_segments,
            self._drop_slash,
            Address,
            self._identify_one,
        )

    @property
    def shared(self) -> tuple[dict[str, _Site], int, int, int, bool] | None:
        """What `native/sieve.c` identifies plain URLs by; None where domains have rules of their own."""
        if self._forms:
            return None
        return self._sites, self._secret, self._limits.max_length, self._limits.max_segments, self._drop_slash

    def _identify_one(self, url: str) -> Address | UrlRefused:
        return self.identify_plainly((url,))[0]

    def identify_plainly(self, urls: Sequence[str]) -> list[Address | UrlRefused]:
        """`identify_new` in Python: all the rules there are.

        Links of one origin mostly follow each other, so that what the last one's origin means is kept at hand.
        """
        rare = holds_rare("".join(urls))
        max_length, max_slashes, secret = self._limits.max_length, self._limits.max_segments + 2, self._secret
        normal_form: Callable[[str, int, bool], str] = self._form.of
        prefix, path_at, host = "\0", 0, ""
        answers: list[Address | UrlRefused] = []
        for whole in urls:
            url = whole.partition("#")[0] if "#" in whole else whole
            if not url.startswith(prefix):
                slash = url.find("/", 8)
                site = self._sites.get(url[:slash]) or self._site(url, slash)
                if isinstance(site, UrlRefused):
                    answers.append(site)
                    continue
                prefix, host, normal_form = site
                path_at = len(prefix) - 1
                if path_at != slash:
                    url = prefix + url[slash + 1 :]  # without userinfo
            if (len(url) > max_length or url.count("/") > max_slashes) and (refused := self._excess(url, path_at)):
                answers.append(refused)
                continue
            key = url
            if rare or url[-1] == "/" or "?" in url or "%" in url:
                key = normal_form(url, path_at, rare and holds_rare(url))
            # The last of them is `fingerprint(key, secret)`, written out.
            answers.append(_new_address((url, host, key, xxh3_128_digest(key.encode(), secret))))
        return answers

    def _excess(self, url: str, path_at: int) -> UrlRefused | None:
        limits = self._limits
        if len(url) > limits.max_length:
            return UrlRefused(url, "too_long", f"{len(url)} characters, {limits.max_length} are allowed")
        segments = url[path_at:].partition("?")[0].rstrip("/").count("/")
        if segments > limits.max_segments:
            return UrlRefused(url, "too_many_segments", f"{segments} segments, {limits.max_segments} are allowed")
        return None

    def _site(self, url: str, path_at: int) -> _Site | UrlRefused:
        scheme, slashes, authority = url[:path_at].partition("://")
        if not slashes or scheme not in ("http", "https"):
            scheme = url.partition(":")[0]
            return UrlRefused(url, "scheme", f"{scheme}: is not crawled")
        authority = authority.rpartition("@")[2]
        name = authority[: authority.index("]") + 1] if authority[0] == "[" else authority.partition(":")[0]
        host = name.rstrip(".")
        if not host:
            return UrlRefused(url, "no_host", "the host is nothing but dots")
        if not is_possible(host) or len(name) > len(host) + MOST_DOTS:
            return UrlRefused(url, "no_host", f"no server can be called {host[:_SHOWN]!r}: the name is too long")
        form = self._forms.get(registrable_domain(host), self._form) if self._forms else self._form
        site = _Site(f"{scheme}://{authority}/", host, form.of)
        if len(self._sites) >= _MEMO_SITES:
            self._sites.clear()
        self._sites[url[:path_at]] = site
        return site


def _malformed(href: str) -> UrlRefused:
    if _HOSTLESS.match(href):
        return UrlRefused(href, "no_host", f"no host in {href[:_SHOWN]!r}")
    return UrlRefused(href, "malformed", f"no URL: {href[:_SHOWN]!r}")
