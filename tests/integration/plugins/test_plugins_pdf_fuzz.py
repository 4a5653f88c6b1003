"""Damaged PDFs by the thousand, through the very process that reads them in a crawl: no crash, no hang, no flood."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pdf_writer import PdfPage, PdfShape, Security, make_pdf
from simulation import Recorder

from nephila.model.events import EventKind
from nephila.model.exchange import Fetched
from nephila.model.plugin import Extract
from nephila.model.settings import Settings
from nephila.node.clock import SystemClock
from nephila.node.extending import extensions_of

WORDS = (b"obj", b"endobj", b"stream", b"endstream", b"/Length", b"/Kids", b"/Count", b"/Filter", b"xref", b"trailer")
NUMBERS = (b"0", b"-1", b"4294967296", b"99999999999", b"2147483647", b"1e99", b"65536")


def originals() -> list[bytes]:
    """One PDF of every structure."""
    pages = [
        PdfPage(
            [f"https://example.org/{page}/{n}" for n in range(4)], ["see http://t.example.org/x now"] * 5, ["a.pdf"]
        )
        for page in range(3)
    ]
    return [
        make_pdf(pages, PdfShape(compressed, packed, security, base="http://b.test/", info_title="T"))
        for compressed in (False, True)
        for packed in (False, True)
        for security in Security
    ]


def damaged(chance: random.Random, sources: list[bytes]) -> bytes:  # noqa: C901, PLR0912 - a list of nine kinds
    """A PDF with one to twenty things wrong."""
    data = bytearray(chance.choice(sources))
    for _ in range(chance.choice((1, 1, 2, 3, 5, 20))):
        at = chance.randrange(len(data)) if data else 0
        match chance.randrange(9):
            case 0:
                data[at : at + 1] = bytes((chance.randrange(256),))
            case 1:
                del data[at : at + chance.randrange(1, 200)]
            case 2:
                data[at:at] = chance.randbytes(chance.randrange(1, 50))
            case 3:
                data = data[:at]
            case 4:
                source = chance.choice(sources)
                start = chance.randrange(len(source))
                data[at:at] = source[start : start + chance.randrange(1, 2000)]
            case 5:
                word = chance.choice(WORDS)
                found = data.find(word, at)
                if found >= 0:
                    data[found : found + len(word)] = chance.choice(WORDS)
            case 6:
                digits = next((n for n in range(at, len(data)) if 48 <= data[n] <= 57), -1)
                if digits >= 0:
                    data[digits : digits + 1] = chance.choice(NUMBERS)
            case 7:  # references that lead in a circle
                found = data.find(b" 0 R", at)
                if found > 0:
                    data[found - 1 : found] = b"%d" % chance.randrange(30)
            case _:
                data[at:at] = chance.choice((b"[" * 2000, b"<<" * 2000, b"(" * 2000, b"/Next 1 0 R "))
    return bytes(data)


def answers(count: int, seed: int) -> Iterator[Fetched]:
    chance, sources = random.Random(seed), originals()
    for number in range(count):
        body = b"%PDF-1.7\n" + damaged(chance, sources)
        url = f"https://fuzz.example.org/{number}.pdf"
        headers = (("content-type", "application/pdf"),)
        yield Fetched(url, b"", b"", body, 200, headers, body, "", 0, 0, 0)


async def read_all(count: int, seed: int, recorder: Recorder) -> tuple[list[Extract], float, int]:
    """All extracts, the longest that one took, and how often the process was started."""
    settings = Settings()
    settings = replace(settings, pdf=replace(settings.pdf, links=True))
    extensions = extensions_of(settings, (), SystemClock(), threaded=True)
    assert extensions is not None
    extensions.tell(recorder)
    found, longest = [], 0.0
    try:
        for fetched in answers(count, seed):
            started = time.monotonic()
            [(_, extract)] = await extensions.extract(fetched)
            longest = max(longest, time.monotonic() - started)
            found.append(extract)
    finally:
        await extensions.end()
    return found, longest, extensions.plugins[0].failures


def fuzz(count: int, seed: int, say: Callable[[str], None]) -> None:
    recorder = Recorder()
    found, longest, failures = asyncio.run(read_all(count, seed, recorder))
    kinds = Counter(extract.detail or "whole" for extract in found)
    some = sum(bool(extract.links) for extract in found)
    say(f"{count} damaged PDFs: {dict(kinds)}; links in {some}; longest {longest:.2f} s; {failures} failures")
    assert len(found) == count
    assert some > count // 4, "the damage leaves something to be found"
    assert longest < 10
    assert failures == len(recorder.urls(EventKind.PLUGIN_FAILED)) == 0


def test_damaged_pdfs_neither_crash_nor_hang(say: Callable[[str], None]) -> None:
    """X4, Q5, E1: hundreds of them, in the process that a crawl gives them to."""
    fuzz(400, 1, say)


@pytest.mark.long
def test_ten_thousand_damaged_pdfs_neither_crash_nor_hang(say: Callable[[str], None]) -> None:
    """X4, Q5, E1: the same, more of them."""
    fuzz(10_000, 2, say)
