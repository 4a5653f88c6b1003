# What native/*.c offers, for type checkers: the twin of each function says what it does.

from collections.abc import Callable, Mapping, Sequence

from typing_extensions import Buffer

from nephila.fetch.head import Head, Opening
from nephila.frontier.embedded.arrivals import Ledger, Page, Queued
from nephila.frontier.embedded.book import Book
from nephila.frontier.embedded.records import HostState
from nephila.model.page import Link
from nephila.model.task import Candidate, Level
from nephila.urls import Address
from nephila.urls.identity import UrlRefused

# arenas.c, which has no twin: nephila/node/memory.py does without

def share_arenas(count: int) -> bool: ...

# clock.c; twins in nephila/node/clock.py

def wall_ms() -> int: ...
def steady_ms() -> int: ...

# files.c; its twin in nephila/node/directory.py

def file_size(name: bytes) -> int: ...

# groups.c; its twin in nephila/frontier/redis/asking.py

def pack_group(
    host: str, candidates: Sequence[Candidate], seed: int, salt: int | None, grade: int
) -> tuple[bytes, bytes]: ...

# frontier.c; twins in nephila/frontier/embedded/links.py

def link_keys(
    candidates: Sequence[Candidate],
    host_keys: dict[str, bytes],
    find_host_key: Callable[[str], bytes],
    nearer: Callable[[Candidate, Candidate], Candidate],
) -> tuple[tuple[list[bytes], Sequence[Candidate]], list[bytes], dict[str, bytes]]: ...
def count_referrer(
    hosts: dict[str, bytes], own: bytes, bit: int, referred: dict[bytes, int], waiting: dict[bytes, int]
) -> list[bytes]: ...
def sort_links(
    keyed: tuple[list[bytes], Sequence[Candidate]],
    found: list[tuple[bytes, bytes]],
    source: bytes,
    inside: tuple[int, ...] | None,
    abroad: tuple[int, ...] | None,
    salt: int,
    later_cycle: bool,
    writes: list[tuple[bytes, bytes]],
) -> tuple[
    dict[str, tuple[dict[bytes, Candidate], tuple[int, Level | None, int, int] | None]],
    list[tuple[bytes, bytes, Candidate]],
]: ...
def xxh32(text: bytes, seed: int) -> int: ...

# rising.c; its twin in nephila/frontier/embedded/rising.py

def rise(
    again: list[tuple[bytes, bytes, Candidate]],
    ledger: Ledger,
    covered: dict[int, list[bytes]],
    own: bytes,
    inside: tuple[int, ...] | None,
    abroad: tuple[int, ...] | None,
    salt: int,
    writes: list[tuple[bytes, bytes]],
) -> tuple[list[tuple[bytes, bytes, Candidate, HostState, bytes, bool, int]], list[tuple[bytes, bytes, Candidate]]]: ...

# queueing.c; twins in nephila/frontier/embedded/links.py and nephila/frontier/embedded/arrivals.py

def pack_bundles(
    head: tuple[int, int, int, int, bytes],
    host: str,
    urls: dict[bytes, Candidate],
    most: int,
    seed: int,
    prefix: bytes,
    writes: list[tuple[bytes, bytes]],
) -> list[tuple[bytes, bytes, int]]: ...
def queue_new(
    book: Book,
    ledger: Ledger,
    page: Page,
    new: dict[str, tuple[dict[bytes, Candidate], tuple[int, Level | None, int, int] | None]],
    hosts: dict[str, bytes],
    queued: list[int],
    ages: list[int],
    writes: list[tuple[bytes, bytes]],
) -> Queued: ...

# head.c; twin in nephila/fetch/head.py

def open_answer(data: bytes, head: type[Head]) -> Opening | None: ...

# nouns.c; its twin is what a class does anyway (nephila/model/noun.py)

def quicken(cls: type, fields: tuple[tuple[str, int, object, bool], ...]) -> bool: ...

# bundles.c; twins in nephila/frontier/embedded/unpacking.py

def split_off(bundle: bytes, fingerprint: bytes, rank: int) -> tuple[bytes, bytes, int, bytes | None] | None: ...
def take_url(
    bundle: bytes, fingerprint: bytes, host_key: bytes
) -> tuple[str, int, int, int, bytes, bytes | None] | None: ...
def next_url(bundle: bytes, end: int, host_key: bytes) -> tuple[int, str, bytes, int, int, bytes] | None: ...

# near.c; twins in nephila/dedup/near_twin.py

def near_find(runs: Sequence[Buffer], simhash: int, distance: int) -> list[tuple[int, int]]: ...
def near_scan(entries: Buffer, simhash: int, distance: int) -> list[tuple[int, int]]: ...
def near_merge(out: Buffer, runs: Sequence[Buffer], entries: Buffer) -> None: ...

# signs.c; its twin in nephila/parse/signs.py

def visible_characters(body: bytes, enough: int) -> int: ...

# joining.c, paths.c, sieve.c; twins in nephila/parse/html.py, nephila/urls/identity.py, nephila/frontier/sifting.py

class Words: ...

def is_normal(url: str) -> bool: ...
def web_url(base: str, href: str, join: Callable[[str], str | None]) -> str | None: ...
def resolve_references(
    references: dict[str, tuple[str, str, str]],
    base: str,
    join: Callable[[str], str | None],
    outranked: Callable[[tuple[str, str, str], str, str], bool],
    link: type[Link],
) -> tuple[Link, ...]: ...
def identify(
    urls: Sequence[str],
    sites: Mapping[str, tuple[object, ...]],
    secret: int,
    max_length: int,
    max_segments: int,
    drop_slash: bool,
    address: type[Address],
    slow: Callable[[str], Address | UrlRefused],
) -> list[Address | UrlRefused]: ...
def word_table(words: Sequence[str]) -> Words: ...
def sift(
    links: Sequence[Link],
    known: dict[str, tuple[Address | None, tuple[str, str] | str | None, int]],
    learn: Callable[[str], tuple[Address | None, tuple[str, str] | str | None, int]],
    depth: int,
    candidate: type[Candidate],
    rels: tuple[dict[str, bool], Callable[[str], bool], dict[str, bool], Callable[[str], bool]],
    rules: tuple[object, ...] | None,
) -> tuple[Sequence[Link], Sequence[Candidate], list[tuple[Address | None, tuple[str, str] | str | None]]]: ...

# digests.c; twins in nephila/model/digests.py; None where the processor has no instructions for it

def answer_digests(body: bytes, head: bytes, payload: bytes) -> tuple[bytes, bytes, bytes] | None: ...
def sha1(data: bytes) -> bytes | None: ...

# sockets.c; its twin in nephila/fetch/arrivals.py

def readable(watched: int) -> list[int]: ...
def received(number: int) -> int: ...

# store.c; twins in nephila/store/warc.py and nephila/pipeline/outlinks.py

def base32(digest: bytes) -> str: ...
def outlinks(links: Sequence[Link]) -> Sequence[str]: ...

# scan.c; twin in nephila/parse/scan.py

def scan_page(
    body: bytes,
    images: bool,
    refresh_url: Callable[[str], str | None],
    srcset_urls: Callable[[str], list[str]],
) -> tuple[
    bool,
    tuple[
        dict[str, tuple[str, str, str]],
        list[tuple[str, str]],
        str | None,
        str | None,
        str,
        str,
        str | None,
        list[tuple[str, str]],
    ],
    tuple[bytes, bytes],
    tuple[int, bytes, int],
    str,
]: ...
def read_page(
    body: bytes,
    images: bool,
    refresh_url: Callable[[str], str | None],
    srcset_urls: Callable[[str], list[str]],
    base: str,
    join: Callable[[str], str | None],
    outranked: Callable[[tuple[str, str, str], str, str], bool],
    link: type[Link],
) -> tuple[
    bool,
    tuple[
        dict[str, tuple[str, str, str]],
        list[tuple[str, str]],
        str | None,
        str | None,
        str,
        str,
        str | None,
        list[tuple[str, str]],
    ],
    tuple[bytes, bytes],
    tuple[int, bytes, int],
    str,
    Sequence[Link] | None,
]: ...

# packed.c: sequences of links that make their nouns when they are asked for; twins are tuples

def outlink_lines(outlinks: Sequence[str]) -> bytes | None: ...

# ranking.c; twins in nephila/ranking/words.py, nephila/ranking/adjacency.py and nephila/ranking/power.py

def sort_unique(words: Buffer) -> int: ...
def find_words(names: Buffer, wanted: Buffer, places: Buffer) -> None: ...
def join_links(
    names: Buffer,
    standing: Buffer,
    links: Buffer,
    counts: Buffer,
    nodes: Buffer,
    targets: Buffer,
    degrees: Buffer,
    sizes: Buffer,
) -> int: ...
def rank_step(
    ranks: Buffer, degrees: Buffer, sizes: Buffer, targets: Buffer, jumps: Buffer, following: Buffer, damping: float
) -> float: ...
