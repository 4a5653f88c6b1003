"""Raw answers and content codings that others collected; libcurl as the oracle where it is installed.

libcurl's verdict is one of: an answer, an answer that ended early, no answer at all, an error. Ours must be the same
on every raw answer of the material, body included; `DIFFERENCES` would name the exceptions with their reasons, and is
empty. One rule of reading the verdicts: when the connection ends inside the header block libcurl gives an answer
without a sign of the cut (or, depending on which line was last, with one); we always mark it, so both count as the
same.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pycurl
import pytest

from nephila.fetch.answer import AnswerReader, Limits
from nephila.fetch.coding import Decoded, Undecodable, decode
from nephila.fetch.head import find_end
from nephila.model.exchange import FailureKind, Truncation

Tell = Callable[[str, int, int], None]

LIMITS = Limits(header_bytes=65_536, body_bytes=10_000_000)
DECODED_LIMIT = 2_000_000
CUT = (DECODED_LIMIT, True)

DIFFERENCES: dict[str, str] = {}
"""Case to the reason why our verdict is another than libcurl's."""


class Verdict(NamedTuple):
    """What a client makes of a raw answer."""

    kind: str
    """answer, early, empty or error."""
    status: int = 0
    body: bytes = b""


def raw_answers(material: Path) -> dict[str, bytes]:
    folder = material / "05-charset-http"
    cases = {}
    for case in json.loads((folder / "llhttp" / "responses.json").read_text()):
        cases[case["id"]] = base64.b64decode(case["raw_b64"])
    for case in json.loads((folder / "wpt-fetch" / "h1_expectations.json").read_text()):
        cases[case["file"]] = base64.b64decode(case["raw_b64"])
    lengths = folder / "wpt-fetch" / "content-length" / "resources" / "content-lengths.json"
    for number, case in enumerate(json.loads(lengths.read_text())):
        head = b"HTTP/1.1 200 OK\r\n" + case["input"].encode() + b"\r\n\r\n"
        cases[f"content-length-{number}"] = head + b"x" * 42
    return cases


def read(raw: bytes, step: int) -> AnswerReader:
    reader = AnswerReader(LIMITS)
    for at in range(0, len(raw), step):
        if reader.feed(raw[at : at + step]):
            return reader
    reader.end()
    return reader


def our_verdict(raw: bytes, step: int = 1 << 20) -> Verdict:
    reader = read(raw, step)
    if reader.kind is FailureKind.RESET:
        return Verdict("empty")
    if reader.kind is not None or reader.head is None:
        return Verdict("error")
    early = reader.truncated is Truncation.DISCONNECT and find_end(reader.head_bytes) >= 0
    return Verdict("early" if early else "answer", reader.head.status, reader.content())


@contextmanager
def raw_server() -> Iterator[tuple[int, list[bytes]]]:
    """Answers each connection with whatever bytes the list holds last, then closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    answers: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65_536)
                    connection.sendall(answers[-1])
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65_536):
                        pass
                except OSError:
                    continue

    thread = threading.Thread(target=serve, name="raw answers")
    thread.start()
    try:
        yield listener.getsockname()[1], answers
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def libcurl_verdict(pycurl: Any, port: int) -> Verdict:
    body = io.BytesIO()
    handle = pycurl.Curl()
    handle.setopt(pycurl.URL, f"http://127.0.0.1:{port}/")
    handle.setopt(pycurl.NOPROXY, "*")
    handle.setopt(pycurl.WRITEDATA, body)
    handle.setopt(pycurl.TIMEOUT, 10)
    handle.setopt(pycurl.FORBID_REUSE, 1)
    try:
        handle.perform()
        return Verdict("answer", handle.getinfo(pycurl.RESPONSE_CODE), body.getvalue())
    except pycurl.error as error:
        match error.args[0]:
            case pycurl.E_PARTIAL_FILE:
                return Verdict("early", handle.getinfo(pycurl.RESPONSE_CODE), body.getvalue())
            case pycurl.E_GOT_NOTHING:
                return Verdict("empty")
            case _:
                return Verdict("error")
    finally:
        handle.close()


def test_every_raw_answer_gets_libcurls_verdict(material: Path, tell: Tell) -> None:
    """H1, H5: same verdict, status and body wherever libcurl has one."""
    cases = raw_answers(material)
    different = {}
    with raw_server() as (port, answers):
        for name, raw in cases.items():
            answers.append(raw)
            theirs, ours = libcurl_verdict(pycurl, port), our_verdict(raw)
            if theirs != ours:
                different[name] = (theirs, ours)
    tell("raw answers with libcurl's verdict", len(cases) - len(different), len(cases))
    assert different.keys() == DIFFERENCES.keys(), different


@pytest.mark.parametrize("step", [1, 7])
def test_no_raw_answer_depends_on_how_it_arrives(material: Path, tell: Tell, step: int) -> None:
    """H1, Q5: byte by byte as in one piece; nothing raises, nothing waits for more after the end."""
    cases = raw_answers(material)
    same = [name for name, raw in cases.items() if our_verdict(raw, step) == our_verdict(raw)]
    tell(f"raw answers read alike in pieces of {step}", len(same), len(cases))
    assert set(same) == set(cases)


def test_expectations_of_browsers_are_met_where_framing_decides(material: Path, tell: Tell) -> None:
    """H1: answers that the web platform tests let through are let through."""
    folder = material / "05-charset-http" / "wpt-fetch"
    cases = json.loads((folder / "h1_expectations.json").read_text())
    good = [case for case in cases if case["framing"] != "Network Error"]
    read_well = [case for case in good if our_verdict(base64.b64decode(case["raw_b64"])).kind == "answer"]
    tell("answers that browsers accept", len(read_well), len(good))
    assert read_well == good


CODED = {
    "html-gzip.bin": ["gzip"],
    "html-zlibdeflate.bin": ["deflate"],
    "html-rawdeflate.bin": ["deflate"],
    "html-br.bin": ["br"],
    "html-gzip-deflate.bin": ["gzip", "deflate"],
    "html-gzip-deflate-gzip.bin": ["gzip", "deflate", "gzip"],
    "html-zstd-static-content-size.bin": ["zstd"],
    "html-zstd-static-no-content-size.bin": ["zstd"],
    "html-zstd-streaming-no-content-size.bin": ["zstd"],
}


def test_every_coding_of_a_page_gives_the_same_page(material: Path, tell: Tell) -> None:
    """H1: gzip, deflate with and without its header, br, zstd in three shapes, and stacks of them."""
    folder = material / "05-charset-http" / "scrapy-compressed"
    page = gzip.decompress((folder / "html-gzip.bin").read_bytes())
    later_page = zlib.decompress((folder / "html-zlibdeflate.bin").read_bytes())
    pages = {name: later_page if codings == ["deflate"] else page for name, codings in CODED.items()}
    good = [name for name, codings in CODED.items() if _body(codings, folder / name) == pages[name]]
    tell("coded pages", len(good), len(CODED))
    assert good == list(CODED)
    feed = (folder / "feed-sample1.xml").read_bytes()
    assert _body(["gzip"], folder / "feed-sample1.xml.gz") == feed


def test_damaged_gzip_gives_what_there_is(material: Path) -> None:
    """H1, Q5: early ends, the last byte of the page missing or more."""
    folder = material / "05-charset-http" / "scrapy-compressed"
    assert _body(["gzip"], folder / "truncated-crc-error.gz").endswith(b"</html")
    assert _body(["gzip"], folder / "truncated-crc-error-short.gz").endswith(b"</html>")
    expected = (folder / "unexpected-eof-output.txt").read_bytes().decode()
    assert _body(["gzip"], folder / "unexpected-eof.gz").decode("latin-1") == expected


BOMBS = {"bomb-gzip.bin": "gzip", "bomb-deflate.bin": "deflate", "bomb-br.bin": "br", "bomb-zstd.bin": "zstd"}


def test_bombs_are_cut(material: Path, tell: Tell) -> None:
    """H2, Q5: four codings, one limit."""
    folder = material / "05-charset-http" / "scrapy-compressed"
    decoded = {name: decode([coding], (folder / name).read_bytes(), DECODED_LIMIT) for name, coding in BOMBS.items()}
    cut = [name for name, one in decoded.items() if isinstance(one, Decoded) and (len(one.body), one.cut) == CUT]
    tell("bombs cut", len(cut), len(BOMBS))
    assert cut == list(BOMBS)


def test_codings_of_the_web_platform_tests_are_undone(material: Path, tell: Tell) -> None:
    """H1, Q5: br, gzip and zstd; a zstd window over 8 MB is refused as browsers refuse it."""
    folder = material / "05-charset-http" / "wpt-fetch" / "content-encoding"
    files = sorted(path for path in folder.glob("*/resources/*") if path.suffix in {".br", ".gz", ".zst"})
    good = []
    for path in files:
        coding = {".br": "br", ".gz": "gzip", ".zst": "zstd"}[path.suffix]
        decoded = decode([coding], path.read_bytes(), 50_000_000)
        if isinstance(decoded, Undecodable) == (path.name == "big.window.zst"):
            good.append(path)
    tell("coded files of the web platform tests", len(good), len(files))
    assert good == files


def _body(codings: list[str], path: Path) -> bytes:
    decoded = decode(codings, path.read_bytes(), DECODED_LIMIT)
    assert isinstance(decoded, Decoded), f"{path.name}: {decoded}"
    return decoded.body
