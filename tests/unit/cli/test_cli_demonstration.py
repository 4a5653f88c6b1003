from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from dnslib import DNSRecord

from nephila.cli.demonstration import Demonstration, demonstrate, served_web
from nephila.config import Configured, write_stored
from nephila.model.errors import NephilaError, UsageError
from nephila.model.settings import Settings
from nephila.model.summary import CrawlSummary
from nephila.testing.web import AuditReport, Violation, ViolationKind

from .conftest import SUMMARY


def test_the_demonstration_serves_a_web_that_the_crawl_can_reach(tmp_path: Path) -> None:
    """C4, P5: a name server and hosts on loopback for the time of the crawl, the auditor's report afterwards."""
    seen: dict[str, Any] = {}

    def crawl(out: Path, configured: Configured, seeds: Sequence[Any], **_rest: object) -> CrawlSummary:
        seen["settings"] = configured.settings
        seen["seeds"] = [seed.text for source in seeds for seed in source]
        url = urlsplit(seen["seeds"][0])
        resolver, port = configured.settings.dns.resolvers[0].rsplit(":", 1)
        answer = DNSRecord.parse(DNSRecord.question(str(url.hostname)).send(resolver, int(port), timeout=5))
        seen["address"] = (str(answer.rr[0].rdata), url.port)
        socket.create_connection(seen["address"], 5).close()
        return SUMMARY

    result = demonstrate(tmp_path / "out", crawl, pages=12)
    assert seen["settings"].limits.max_pages == 12
    assert seen["settings"].fetch.allow_addresses == ("127.0.0.0/8",)
    assert result.summary is SUMMARY
    assert result.passed
    assert result.example == seen["seeds"][0]
    assert ("violations", "0") in result.verdict
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(seen["address"], 5)


def test_the_web_is_ended_when_the_crawl_fails(tmp_path: Path) -> None:
    """C4: no process is left behind."""
    with pytest.raises(ZeroDivisionError), served_web(tmp_path, tmp_path / "audit.json") as web:
        raise ZeroDivisionError
    with pytest.raises(ProcessLookupError):
        os.kill(web["pid"], 0)


def test_a_web_that_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C4: a sentence, not a traceback."""
    monkeypatch.setattr("nephila.engines.interpreter.sys.executable", "/bin/false")
    with pytest.raises(NephilaError, match="did not start"), served_web(tmp_path, tmp_path / "audit.json"):
        pass


def test_a_directory_with_a_crawl_is_not_used_again(tmp_path: Path) -> None:
    """C4: every demonstration web is a new one."""
    write_stored(tmp_path, Settings())
    with pytest.raises(UsageError, match="holds a crawl already"):
        demonstrate(tmp_path, lambda *_args, **_more: SUMMARY, pages=0)


def test_a_broken_rule_fails_the_demonstration() -> None:
    """P5: the auditor's word counts."""
    violation = Violation(ViolationKind.HURRY, "a.test", "/", 1.0, "too early")
    result = Demonstration(SUMMARY, AuditReport(5, {}, (violation,), {}, {}), "http://a.test/")
    assert not result.passed
    assert ("violations", "1 (hurry 1)") in result.verdict
