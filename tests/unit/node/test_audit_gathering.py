"""Archives and event files that are wrong in themselves: told, never thrown."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from nephila.model.errors import UsageError
from nephila.model.terms import Terms
from nephila.node.audit import Audit, FindingKind, audit
from nephila.node.directory import FORMAT

TERMS = Terms(user_agent="Nephila/0.1", allow_addresses=("127.0.0.0/8",)).to_json()
URL = "http://a.test/x"
HEAD = "HTTP/1.1 200 OK\r\n\r\n"
TIMES = {"sent-at": "1767225600000", "ended-at": "1767225600010", "fetchTimeMs": "10", "sent-steady-ms": "5000"}


def record(kind: str, block: str, url: str = URL, **fields: str) -> bytes:
    lines = [f"WARC-Type: {kind}", f"WARC-Target-URI: {url}", "WARC-IP-Address: 127.0.0.1"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    head = "\r\n".join(["WARC/1.1", *lines, f"Content-Length: {len(block.encode('latin-1'))}"])
    return f"{head}\r\n\r\n{block}\r\n\r\n".encode("latin-1")


def fields(values: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in values.items())


def capture(metadata: dict[str, str], *, head: str = HEAD, body: str = "", url: str = URL, rules: str = "") -> bytes:
    known = {"head-bytes": str(len(head)), **metadata}
    resource = record("resource", rules, url) if rules else b""
    request = record("request", "GET / HTTP/1.1\r\nUser-Agent: Nephila/0.1\r\n\r\n", url)
    return record("response", head + body, url) + resource + request + record("metadata", fields(known), url)


def robots(body: str, rules: str, sent_ms: int = 1000, **more: str) -> bytes:
    times = {**TIMES, "sent-steady-ms": str(sent_ms), "robots-origin": "http://a.test", **more}
    return capture(times, body=body, url="http://a.test/robots.txt", rules=rules)


INFO = record("warcinfo", fields({"terms": TERMS, "boot-id": "b", "steady-ms": "0"}))


def judged(root: Path, *records: bytes, finished: bool = True, events: list[dict[str, object]] | None = None) -> Audit:
    """The audit of a directory with one archive file."""
    (root / "warc").mkdir()
    (root / "nephila-crawl").write_text(FORMAT)
    (root / "warc" / "one.warc.gz").write_bytes(b"".join(records))
    if finished:
        (root / "warc" / "one.cdxj").write_text("")
    if events is not None:
        (root / "events").mkdir()
        text = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
        (root / "events" / "events-000001.jsonl").write_text(text)
    return audit(root)


ALLOW = "User-agent: *\nDisallow: /no\n"


def test_what_is_right_is_clean(tmp_path: Path) -> None:
    """K1: archives without gzip and without chains are read too."""
    found = judged(tmp_path, INFO, robots(ALLOW, ALLOW), capture(TIMES))
    assert found.is_clean, found.findings
    assert (found.requests, found.judged, found.untold) == (2, 1, 2)


def test_rules_that_are_not_the_servers_are_found(tmp_path: Path) -> None:
    """K1, P1: the resource record must be what the server sent, or the beginning of it."""
    found = judged(tmp_path, INFO, robots("User-agent: *\nDisallow: /\n", ALLOW), capture(TIMES))
    assert found.counts == {FindingKind.WRONG_RULES: 1}


@pytest.mark.parametrize("missing", ["sent-at", "ended-at", "fetchTimeMs"])
def test_a_request_without_times_is_found(tmp_path: Path, missing: str) -> None:
    """K1: nobody can judge it, and that is told."""
    times = {name: value for name, value in TIMES.items() if name != missing}
    assert judged(tmp_path, INFO, robots(ALLOW, ALLOW), capture(times)).counts == {FindingKind.UNDATED: 1}


def test_without_steady_times_the_wall_clock_is_all_there_is(tmp_path: Path) -> None:
    """K1: archives of an earlier version."""
    times = {name: value for name, value in TIMES.items() if name != "sent-steady-ms"}
    later = {**times, "sent-at": "1767225605000", "ended-at": "1767225605010"}
    asked = capture(
        {**times, "robots-origin": "http://a.test"}, body=ALLOW, url="http://a.test/robots.txt", rules=ALLOW
    )
    found = judged(tmp_path, asked, capture(later))
    assert found.counts.keys() <= {FindingKind.ADDRESS}, "what was opened is not on record"
    assert found.wall_only == 2


def test_a_finished_file_that_cannot_be_read_is_found_and_a_torn_one_told(tmp_path: Path) -> None:
    """K1: damage in a file that has its index; the end of one that is being written."""
    whole = (INFO, robots(ALLOW, ALLOW), capture(TIMES))
    (tmp_path / "torn").mkdir()
    (tmp_path / "damaged").mkdir()
    torn = judged(tmp_path / "torn", *whole, b"WARC/1.1\r\nWARC-Type: resp", finished=False)
    assert torn.is_clean
    assert "not whole" in torn.notes[0]
    assert judged(tmp_path / "damaged", *whole, b"nonsense").counts == {FindingKind.DAMAGED: 1}


def test_events_fill_what_the_archive_lacks(tmp_path: Path) -> None:
    """K1: a timeout within the delay is a violation like any other; a broken line is passed over."""
    terms = {"ts": "2026-01-01T00:00:00.000Z", "t_ms_from_start": 0, "event": "terms", "reason": "b", "detail": TERMS}
    failed = {
        "ts": "2026-01-01T00:00:01.500Z",
        "t_ms_from_start": 1500,
        "event": "error",
        "url": "http://a.test/hangs",
        "fingerprint": "00" * 16,
        "host": "a.test",
        "address": "127.0.0.1",
        "sent_ms": 1500,
        "elapsed_ms": 100,
    }
    found = judged(tmp_path, INFO, robots(ALLOW, ALLOW), events=[{**terms, "steady_ms": 0}, failed, {"event": "terms"}])
    assert found.counts == {FindingKind.HURRY: 1}
    assert (found.requests, found.unanswered) == (2, 1)


@pytest.mark.parametrize(
    "asked",
    [
        ("10",),
        ("9.5",),
        ("9,5",),
        ("2", "10", "nonsense"),
        ("Thu, 01 Jan 2026 00:00:10 GMT",),
        ("2026-01-01T00:00:10Z",),
        ("2026-01-01 00:00:10",),
    ],
)
def test_what_a_busy_server_asks_for_is_read_as_it_writes_it(tmp_path: Path, asked: tuple[str, ...]) -> None:
    """K1, P3: the longest of what its Retry-After headers say, decimals and odd dates included."""
    told = "".join(f"Retry-After: {value}\r\n" for value in asked)
    busy = capture({**TIMES, "sent-steady-ms": "3000"}, head=f"HTTP/1.1 503 x\r\n{told}\r\n")
    later = capture({**TIMES, "sent-steady-ms": "11000"})
    assert judged(tmp_path, INFO, robots(ALLOW, ALLOW), busy, later).counts == {FindingKind.RETRY_AFTER: 1}


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_written_there_nothing_is_thrown(tmp_path: Path, seed: int) -> None:
    """K1, Q5: numbers out of all range, bytes that are no text, heads that are no HTTP."""
    draw = random.Random(seed)
    values = ["", "-1", "9" * 30, "x", "\xb2", "1e9", "0", "253402300799999", "\xff\xfe", "1767225600000"]
    names = [*TIMES, "head-bytes", "hops", "robots-origin", "note-policyDelayMs", "note-robotsRules", "truncated"]
    heads = [
        "",
        "HTTP/1.1 \xb2\xb2\xb2 x\r\n\r\n",
        "HTTP/1.1 301 x\r\nLocation: //[\r\n\r\n",
        "HTTP/1.1 503\r\nRetry-After: \xb2\r\n\r\n",
    ]
    records = [INFO] if draw.random() < 0.7 else []
    for _ in range(20):
        metadata = {**TIMES, **{draw.choice(names): draw.choice(values) for _ in range(draw.randint(0, 3))}}
        url = draw.choice([URL, "", "http://[", "http://a.test:x/", "\xff"])
        records.append(capture(metadata, head=draw.choice([HEAD, *heads]), url=url, rules=draw.choice(["", ALLOW])))
    events = [
        {
            "ts": draw.choice(["2026-01-01T00:00:00.000Z", "x", "9999-12-31T23:59:59.999Z"]),
            "t_ms_from_start": 0,
            "event": draw.choice(["terms", "error", "fetch_ok", "robots_fetched"]),
            "detail": draw.choice([TERMS, "", "{}", '{"delay_ms":-1}']),
            "sent_ms": draw.choice([0, -1, 2**62, 2**70, 5]),
            "elapsed_ms": draw.choice([0, -5, 7]),
            "url": draw.choice([URL, "", "http://["]),
        }
        for _ in range(20)
    ]
    found = judged(tmp_path, *records, events=events)
    assert found.requests + found.counts[FindingKind.UNDATED] > 0


def test_a_name_with_a_dot_at_its_end_is_the_same_host(tmp_path: Path) -> None:
    """P2, K1: two spellings of one server do not hide that it was asked twice at once."""
    rules = robots("", "", fetchTimeMs="1")
    dotted = "http://a.test./robots.txt"
    others = {**TIMES, "sent-steady-ms": "1500", "robots-origin": "http://a.test."}
    first = capture({**TIMES, "sent-steady-ms": "5000"})
    second = capture({**TIMES, "sent-steady-ms": "5005"}, url="http://a.test./y")
    found = judged(tmp_path, INFO, rules, capture(others, url=dotted), first, second)
    assert found.hosts == 1
    assert FindingKind.OVERLAP in {finding.kind for finding in found.findings}


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("bücher.test", "http://xn--bcher-kva.test/x"),
        ("https://Bücher.test/shop", "http://xn--bcher-kva.test/x"),
        ("A.test.", "http://a.test/x"),
        ("a.test:8080", "http://a.test:8080/x"),
        ("[::1]", "http://[::1]:8080/x"),
        ("::1", "http://[::1]:8080/x"),
    ],
)
def test_a_host_is_found_however_it_is_written(tmp_path: Path, written: str, url: str) -> None:
    """K1: whoever asks for a site by its name must not be told that nothing was sent to it."""
    judged(tmp_path, INFO, capture(TIMES, url=url))
    assert audit(tmp_path, host=written).requests == 1
    assert audit(tmp_path, host="other.test").requests == 0


@pytest.mark.parametrize("written", ["a b", "http://", "exa%2Fmple", "."])
def test_what_is_no_host_is_refused(tmp_path: Path, written: str) -> None:
    """K1, C4: a clean verdict on nothing at all would mislead."""
    judged(tmp_path, INFO, capture(TIMES))
    with pytest.raises(UsageError, match="is no host"):
        audit(tmp_path, host=written)
