"""What `crawl` was asked for, read from its arguments before anything is touched.

Here stands what is not a setting: where seeds come from, which directory, how to speak. Everything that can be wrong
with it is found here and told as a `UsageError`.
"""

from __future__ import annotations

import io
import ipaddress
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from nephila.config import Given
from nephila.model.errors import UsageError

if TYPE_CHECKING:
    from nephila.seeds import SeedSource
    from nephila.seeds.lines import NumberedLines

STANDARD_INPUT = "-"
_URL = re.compile(r"https?://", re.IGNORECASE)
LOCAL_NAMES = (".localhost", ".test", ".invalid", ".internal")
"""Never public: RFC 6761, and ICANN's reservation of the last one."""


@dataclass(frozen=True, slots=True)
class Order:
    """The arguments of `crawl`."""

    seeds: tuple[str, ...]
    seed_files: tuple[str, ...]
    domain_files: tuple[str, ...]
    out: Path | None
    config: Path | None
    assignments: tuple[str, ...]
    flags: tuple[Given, ...]
    new_cycle: bool
    as_json: bool
    verbose: int
    quiet: bool
    serve_port: int | None = None
    serve_host: str = ""
    token_file: Path | None = None

    @property
    def has_seeds(self) -> bool:
        """Whether any source of seeds was named."""
        return bool(self.seeds or self.seed_files or self.domain_files)


def crawl_directory(order: Order) -> Path:
    """The directory that was asked for, else one named after the first seed's host or the first file of seeds."""
    if order.out is not None:
        return order.out
    if order.seeds:
        return Path(f"crawl-{_slug(host_of(order.seeds[0]))}")
    files = [*order.seed_files, *order.domain_files]
    if not files:
        raise UsageError(
            "There is nothing to crawl.",
            "Give a seed, as in `nephila crawl example.org`, or --out DIR to go on with a crawl.",
        )
    return Path(
        "crawl-"
        + (
            "stdin"
            if files[0] == STANDARD_INPUT
            else _slug(host_of(files[0]) if _URL.match(files[0]) else Path(files[0]).stem)
        )
    )


def host_of(seed: str) -> str:
    """The host name that a seed names, as it is written; empty when there is none."""
    text = seed.strip()
    try:
        return urlsplit(text if "://" in text else f"//{text}").hostname or ""
    except ValueError:  # brackets that hold no address
        return ""


def seed_sources(order: Order) -> list[SeedSource]:
    """The sources in the order: arguments, lists, CSV files of domains."""
    from nephila.seeds import ArgumentSeeds, DomainSeeds  # noqa: PLC0415 - `crawl --help` needs no seeds

    if [*order.seed_files, *order.domain_files].count(STANDARD_INPUT) > 1:
        raise UsageError("Standard input can be read once only.", "Name one of the lists as a file.")
    sources: list[SeedSource] = [ArgumentSeeds(order.seeds)] if order.seeds else []
    sources += [_listed(name) for name in order.seed_files]
    sources += [DomainSeeds(_lines(name)) for name in order.domain_files]
    return sources


def named_seeds(order: Order) -> dict[str, object]:
    """What the log of changes says of the seeds: those of the command line, and where others stand."""
    from nephila.node.noting import noted  # noqa: PLC0415 - as above
    from nephila.urls import mask_secrets  # noqa: PLC0415 - as above

    lists = [mask_secrets(name) for name in (*order.seed_files, *order.domain_files)]
    return {**noted(order.seeds), "lists": lists}


def _listed(name: str) -> SeedSource:
    """What a file, standard input or a URL lists."""
    from nephila.node.seedlists import StreamSeeds, UrlSeeds, seeds_in  # noqa: PLC0415 - as above

    if name == STANDARD_INPUT:
        return StreamSeeds("standard input", _standard_input)
    return UrlSeeds(name) if _URL.match(name) else seeds_in(Path(name))


def _lines(name: str) -> NumberedLines:
    from nephila.seeds import FileLines, StreamLines  # noqa: PLC0415 - as above

    if name == STANDARD_INPUT:
        return StreamLines(_standard_input())
    if _URL.match(name):
        raise UsageError(
            f"--domains reads files and standard input, not {name}.",
            "Download it first; sitemaps, feeds and lists of URLs may be given as --seeds URL.",
        )
    return FileLines(Path(name))


def _standard_input() -> io.BufferedReader:
    stream = sys.stdin.buffer
    if isinstance(stream, io.BufferedReader):
        # A stream of its own: a reader that is stuck in it when the process ends must not hold that of Python.
        return os.fdopen(os.dup(stream.fileno()), "rb")
    # A replaced standard input may be any binary stream; the sources want one that can be peeked into.
    return io.BufferedReader(cast("io.RawIOBase", stream))


def _slug(name: str) -> str:
    """A file name that is safe anywhere."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:100] or "seeds"


def reaches_public(seeds: Sequence[str]) -> bool:
    """Whether any of these seeds is not plainly on this machine or in a private network."""
    return not all(_is_local(host_of(seed)) for seed in seeds)


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(LOCAL_NAMES):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:  # a name
        return False
