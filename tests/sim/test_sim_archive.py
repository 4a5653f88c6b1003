"""What is in the archive is what was on the wire, byte for byte."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from served import records
from simulation import Simulated, simulate, standard_web


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """A crawl of a web whose every answer was logged as it left."""
    return simulate(standard_web(11), tmp_path_factory.mktemp("wire") / "crawl")


def blocks_of(out: Path) -> dict[str, list[bytes]]:
    """Response blocks by URL path and host, in the order of the archive."""
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for _, record, block in records(out):
        if record.rec_type == "response":
            found[record.rec_headers["WARC-Target-URI"]].append(block)
    return found


def test_a_stored_response_equals_what_the_server_sent(crawled: Simulated, say: Callable[[str], None]) -> None:
    """W1, H1: plain, chunked, gzip, br, zstd and truncated answers, head and payload."""
    sent: defaultdict[str, list[bytes]] = defaultdict(list)
    for answer in crawled.sent:
        sent[f"http://{answer.host}{answer.target}"].append(answer.wire)
    codings: Counter[str] = Counter()
    compared = 0
    for url, blocks in blocks_of(crawled.out).items():
        for block in blocks:
            head, _, payload = block.partition(b"\r\n\r\n")
            fields = [line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:]]
            names = {name.decode(): value.strip().decode() for name, value in fields}
            codings[names.get("content-encoding", "identity")] += 1
            codings["chunked"] += names.get("transfer-encoding") == "chunked"
            wanted = [wire for wire in sent[url] if wire.startswith(block) or block == wire]
            assert wanted, f"{url}: the archive holds {len(block)} bytes that were never sent"
            codings["cut"] += block not in sent[url] and bool(payload)
            compared += 1
    say(f"{compared} answers compared: {dict(codings)}")
    assert {"identity", "gzip", "br", "zstd", "chunked", "cut"} <= {name for name, count in codings.items() if count}


def test_whole_answers_are_stored_whole(crawled: Simulated) -> None:
    """W1: every complete HTML answer is there to its last byte, as a response or as a revisit of the same bytes."""
    blocks = blocks_of(crawled.out)
    payloads = {block.partition(b"\r\n\r\n")[2] for found in blocks.values() for block in found}
    missing = 0
    for answer in crawled.sent:
        head, _, payload = answer.wire.partition(b"\r\n\r\n")
        if answer.complete and answer.status == 200 and b"text/html" in head.lower() and answer.target != "/robots.txt":
            missing += payload not in payloads
    assert missing == 0
