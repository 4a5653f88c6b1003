"""`nephila audit` as people and scripts see it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nephila.cli.audit_words import kind_sentence
from nephila.cli.backend import Backend
from nephila.cli.main import cli
from nephila.model.errors import CrawlDirectoryError, StorageError
from nephila.node.audit import Audit, Finding, FindingKind
from nephila.store.trail_check import Breach, TrailVerdict
from nephila.store.trail_line import Receipt

HEAD = "ab" * 32
AT = 1_767_225_600_123
CLEAN = Audit(
    requests=1234,
    hosts=12,
    pages=1200,
    robots=34,
    unanswered=5,
    first_at=AT,
    last_at=AT + 60_000,
    rules=9,
    judged=1200,
    gaps=1222,
    shortest_gap_ms=1001,
    shortest_host="www.example.org",
    delays_ms=[1000],
    trail=TrailVerdict(
        sealed=True,
        heads={"w0": HEAD},
        head_at="2026-01-01T00:01:00.000Z",
        lines=60,
        files=3,
        sealed_bytes=10**7,
        ended=True,
    ),
)


def invoke(found: Audit | Exception, *arguments: str) -> Result:
    def audit(_out: Path, _host: str, _expect: Sequence[str]) -> Audit:
        if isinstance(found, Exception):
            raise found
        return found

    backend = Backend(audit=audit)
    return CliRunner(env={"COLUMNS": "80"}).invoke(cli, ["audit", "crawl", *arguments], obj=backend)


def test_a_clean_crawl_is_said_to_be_clean() -> None:
    """K1, C4: verdict, figures, head, within 80 columns."""
    result = invoke(CLEAN)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "Audit of crawl: clean"
    assert max(map(len, lines)) <= 80
    assert "the shortest 1.001 s (www.example.org)" in " ".join(result.output.split())
    assert HEAD in result.output
    assert result.output.count("no violation") == 4


def wrong() -> Audit:
    found = replace(CLEAN, counts=type(CLEAN.counts)(), findings=[])
    for number, kind in enumerate(FindingKind):
        found.blame(
            Finding(
                kind, "a.test", f"http://a.test/\x1b{number}", AT, "490 ms after http://a.test/; 1,000 ms were promised"
            )
        )
    return found


def test_findings_are_told_with_time_url_and_reason() -> None:
    """K1, C4: exit code 1; what strangers wrote cannot harm a terminal."""
    result = invoke(wrong(), "--limit", "2")
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == f"Audit of crawl: {len(FindingKind)} VIOLATIONS"
    assert "2026-01-01 00:00:00.123 UTC  the host was asked while it was answering" in result.output
    assert "1,000 ms were promised" in result.output
    assert f"{len(FindingKind) - 2} more; --limit shows more" in result.output
    assert "\x1b" not in result.output
    assert "1 hurry" in result.output


def test_every_kind_has_words() -> None:
    """K1: nobody is shown a name of ours."""
    assert all(kind_sentence(kind) != kind for kind in FindingKind)


def test_tampering_is_told_with_its_file() -> None:
    """K1: exit code 1 without any violation; receipts and what is not sealed yet are told beside it."""
    trail = replace(
        CLEAN.trail,
        ended=False,
        unsealed_bytes=123,
        older_files=2,
        breaches=[Breach("warc/a.warc.gz", "the file is missing")] * 30,
        missing=[HEAD],
        receipts=[("2026-01-01T00:00:00.000Z", Receipt("warc/b.warc.gz", (2, "x"), (1, "y"), ["z"], "takedown"))],
        notes=["chain/w1.jsonl ends with 3 bytes of a line that was never finished."],
    )
    result = invoke(replace(CLEAN, trail=trail))
    assert result.exit_code == 1
    assert "31 SIGNS OF TAMPERING" in result.output
    for words in ("warc/a.warc.gz: the file is missing", "10 more", "takedown", "not sealed yet", "older than"):
        assert words in " ".join(result.output.split())


def test_many_files_that_were_rewritten_are_one_line() -> None:
    """K1, C4: retention over an archive of small files has a receipt for each; those of a takedown stay named."""
    why = {number: "takedown 000001" if number < 2 else "retention" for number in range(60)}
    receipts = [
        (
            f"2026-01-01T00:00:{number:02}.000Z",
            Receipt(f"warc/{number}.warc.gz", (2, "x"), (1, "y"), ["z"] * 2, why[number]),
        )
        for number in range(60)
    ]
    found = replace(CLEAN, hosts=1, trail=replace(CLEAN.trail, files=1, receipts=receipts))
    lines = invoke(found).output.splitlines()
    assert len([line for line in lines if line.startswith("rewritten")]) == 3
    text = " ".join(" ".join(lines).split())
    assert "58 files, 2026-01-01T00:00:02.000Z to 2026-01-01T00:00:59.000Z: 116 taken out (retention)" in text
    assert "warc/1.warc.gz at 2026-01-01T00:00:01.000Z: 2 taken out (takedown 000001)" in text
    assert "1,234 to 1 host," in text
    assert "seal 1 file," in text
    assert len(json.loads(invoke(found, "--json").stdout)["trail"]["receipts"]) == 60


def test_a_crawl_without_chains_says_so() -> None:
    """K1: and is clean all the same."""
    result = invoke(replace(CLEAN, trail=TrailVerdict()))
    assert result.exit_code == 0
    assert "not sealed" in result.output


def test_it_is_one_json_object() -> None:
    """K1, C4: for scripts."""
    document = json.loads(invoke(wrong(), "--json").output)
    assert document["clean"] is False
    assert document["violations"] == len(FindingKind)
    assert document["counts"]["hurry"] == 1
    assert document["findings"][0]["kind"] == "overlap"
    assert document["head"] == HEAD


@pytest.mark.parametrize(
    ("arguments", "raised", "code"),
    [
        (("--expect", "abc"), CLEAN, 2),
        ((), CrawlDirectoryError("there is no crawl", hint="x"), 2),
        ((), StorageError("it cannot be read"), 1),
    ],
)
def test_what_makes_no_sense_gets_one_sentence(
    arguments: tuple[str, ...], raised: Audit | Exception, code: int
) -> None:
    """K1, C4: 2 for a command that makes no sense."""
    result = invoke(raised, *arguments)
    assert result.exception is not None
    assert getattr(result.exception, "exit_code", 1) == code
