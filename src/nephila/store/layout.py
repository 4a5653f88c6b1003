"""Layouts (W1): which file a capture goes to, and how that file's name begins.

Captures that share a `SegmentKey` share a file, as long as it is open. Rolling is the layout in which all of them do;
`domain-hour` has a key for each registrable domain and hour; a key template (`key_template`) has whatever it names. The
archive knows of layouts what stands in the protocol, and nothing of any one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple, Protocol

from nephila.model.errors import UsageError
from nephila.model.record import Capture
from nephila.model.settings import ArchiveSettings
from nephila.model.task import PageTask
from nephila.urls import fingerprint, host_of

from .key_template import DOMAIN_HASH_DIGITS, MAX_HOST_IN_NAME, RESERVED, KeyTemplate
from .packing import packing_named
from .rotation import HOUR_MS, tail_of_name

DAY_MS = 24 * HOUR_MS

_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]")
_PREFIX = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=-]{0,99}")


class SegmentKey(NamedTuple):
    """What the captures of one file share."""

    stem: str = ""
    """The domain, or how the file's name begins."""
    period: int = 0
    """The hour or the day, counted from 1970, with which it is closed; 0 where it outlives them."""


ROLLING = SegmentKey()
"""Of every capture, where files are not by anything."""


class Layout(Protocol):
    """Where captures go."""

    period_ms: int
    """Files are closed when such a period of the wall clock ends; 0: they are not."""
    single: bool
    """Every capture has a file of its own."""

    def key_of(self, capture: Capture, wall_ms: int) -> SegmentKey:
        """The key of a capture that is written now."""

    def name_of(self, key: SegmentKey, at: int, serial: int, writer: int) -> str:
        """What a new file is called."""


class Rolling:
    """One file at a time."""

    period_ms = 0
    single = False

    def __init__(self, prefix: str, suffix: str) -> None:
        self._prefix = prefix
        self._suffix = suffix

    def key_of(self, capture: Capture, wall_ms: int) -> SegmentKey:
        """Always the same."""
        del capture, wall_ms
        return ROLLING

    def name_of(self, key: SegmentKey, at: int, serial: int, writer: int) -> str:
        """As the protocol: names sort by time."""
        del key
        return f"{self._prefix}{tail_of_name(at, serial, writer)}{self._suffix}"


class DomainHour:
    """One file for each registrable domain and hour."""

    period_ms = HOUR_MS
    single = False

    def __init__(self, prefix: str, suffix: str, domain_of: Callable[[str], str]) -> None:
        self._prefix = prefix
        self._suffix = suffix
        self._domain_of = domain_of

    def key_of(self, capture: Capture, wall_ms: int) -> SegmentKey:
        """As the protocol."""
        return SegmentKey(self._domain_of(host_of(capture.fetched.url)), wall_ms // HOUR_MS)

    def name_of(self, key: SegmentKey, at: int, serial: int, writer: int) -> str:
        """As the protocol; the time is that of the hour, whenever the file is begun in it."""
        del at
        tail = tail_of_name(key.period * HOUR_MS, serial, writer)
        return f"{self._prefix}{tail}-{in_a_name(key.stem)}{self._suffix}"


class Keyed:
    """Files by a template."""

    def __init__(self, template: KeyTemplate, suffix: str, secret: int, domain_of: Callable[[str], str]) -> None:
        """`secret` is the crawl's: the hash of a URL is the one that the catalogue has."""
        self._template = template
        self._suffix = suffix
        self._secret = secret
        self._domain_of = domain_of
        self.single = "url_hash" in template.fields
        self.period_ms = HOUR_MS if "hour" in template.fields else DAY_MS if "date" in template.fields else 0

    def key_of(self, capture: Capture, wall_ms: int) -> SegmentKey:
        """As the protocol. Date and hour are those in which it is written."""
        moment, host = datetime.fromtimestamp(wall_ms / 1000, UTC), host_of(capture.fetched.url)
        domain = self._domain_of(host)
        values = {
            "date": f"{moment:%Y-%m-%d}",
            "hour": f"{moment:%H}",
            "host": in_a_name(host),
            "domain": in_a_name(domain),
            "domain_hash": sha256(domain.encode()).hexdigest()[:DOMAIN_HASH_DIGITS],
            "url_hash": self._url_hash(capture) if self.single else "",
        }
        return SegmentKey(self._template.filled(values), wall_ms // self.period_ms if self.period_ms else 0)

    def _url_hash(self, capture: Capture) -> str:
        """Of a page its identity, by which the frontier and the catalogue know it; of others that of their URL."""
        if isinstance(capture.task, PageTask):
            return capture.task.fingerprint.hex()
        return fingerprint(capture.fetched.url, self._secret).hex()

    def name_of(self, key: SegmentKey, at: int, serial: int, writer: int) -> str:
        """As the protocol."""
        return f"{key.stem}{tail_of_name(at, serial, writer)}{self._suffix}"


def layout_of(settings: ArchiveSettings, secret: int, domain_of: Callable[[str], str]) -> Layout:
    """The layout that the settings ask for; raises `UsageError` as `check_layout` does."""
    check_layout(settings)
    suffix = packing_named(settings.compression).suffix
    if settings.layout == "key":
        return Keyed(KeyTemplate.parse(settings.key), suffix, secret, domain_of)
    if settings.layout == "domain-hour":
        return DomainHour(settings.prefix, suffix, domain_of)
    return Rolling(settings.prefix, suffix)


def check_layout(settings: ArchiveSettings) -> None:
    """Raise `UsageError` for a key that cannot be used, or that would not be, and for a prefix that is no word."""
    if not _PREFIX.fullmatch(settings.prefix):
        raise UsageError(
            f"the archive.prefix {settings.prefix!r} cannot begin the names of files",
            "letters, digits and . _ = - make one; folders are named by --warc-layout key and archive.key",
        )
    if settings.layout == "key":
        KeyTemplate.parse(settings.key)
    elif settings.key != ArchiveSettings().key:
        raise UsageError(
            f"archive.key is set, but the layout is {settings.layout}, which has no use for it",
            "add --warc-layout key (archive.layout), or leave archive.key as it was",
        )


def first_characters(settings: ArchiveSettings) -> str:
    """How the names of all files begin; empty where they begin differently."""
    return KeyTemplate.parse(settings.key).beginning if settings.layout == "key" else f"{settings.prefix}-"


def in_a_name(host: str) -> str:
    """A host or a domain as a part of a file's name: harmless, not empty, neither hidden nor a folder above."""
    name = _NOT_IN_NAMES.sub("_", host.lower())[: MAX_HOST_IN_NAME - 1].strip(".") or "unknown"
    return f"_{name}" if RESERVED.fullmatch(name) else name
