# What native/*.c offers, for type checkers: the twin of each function says what it does.

from collections.abc import Callable, Sequence

from nephila.model.task import Candidate, Level

# frontier.c; twins in nephila/frontier/embedded/links.py

def link_keys(
    candidates: Sequence[Candidate],
    host_keys: dict[str, bytes],
    find_host_key: Callable[[str], bytes],
    nearer: Callable[[Candidate, Candidate], Candidate],
) -> tuple[dict[bytes, Candidate], dict[str, bytes]]: ...
def sort_links(
    keyed: dict[bytes, Candidate],
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
def pack_bundles(
    head: bytes, host: str, urls: dict[bytes, Candidate], room: int, seed: int
) -> list[tuple[bytes, bytes, int]]: ...
def xxh32(text: bytes, seed: int) -> int: ...

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
