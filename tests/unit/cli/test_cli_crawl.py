from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from nephila.config import declarations, write_stored
from nephila.model.errors import StorageError, UsageError
from nephila.model.settings import LimitSettings, Settings
from nephila.model.summary import CrawlSummary, StoppedBy
from nephila.observe import LogSink

from .conftest import SUMMARY, FakeNode

Invoke = Callable[..., Result]


def test_seeds_come_from_arguments_lists_standard_input_and_csv(invoke: Invoke, node: FakeNode, tmp_path: Path) -> None:
    """S1, C4: every source that is named is handed to the crawl, in order."""
    (tmp_path / "list.txt").write_text("https://b.org/\n# no\nc.org\n")
    (tmp_path / "top.csv").write_text("1,d.org\n2,e.org\n")
    result = invoke(
        "crawl", "a.org", "--seeds", "list.txt", "--seeds", "-", "--domains", "top.csv", "--out", "o", stdin="f.org\n"
    )
    assert result.exit_code == 0, result.output
    texts = [seed.text for seed in node.ran[0].seeds]
    assert texts == ["a.org", "https://b.org/", "c.org", "f.org", "d.org", "e.org"]


def test_the_alias_of_domains_reads_the_same_file(invoke: Invoke, node: FakeNode, tmp_path: Path) -> None:
    """C4: --domain-seeds-csv is --domains."""
    (tmp_path / "top.csv").write_text("rank,domain\n1,d.org\n")
    assert invoke("crawl", "--domain-seeds-csv", "top.csv").exit_code == 0
    assert [seed.text for seed in node.ran[0].seeds] == ["d.org"]
    assert node.ran[0].out == Path("crawl-top")


@pytest.mark.parametrize(
    ("seed", "directory"),
    [
        ("https://Example.org:8080/a?b", "crawl-example.org"),
        ("example.org/path", "crawl-example.org"),
        ("http://[::1]/", "crawl-1"),
        ("http://[broken/", "crawl-seeds"),
        ("https://../../etc", "crawl-seeds"),
    ],
)
def test_without_out_the_directory_is_named_after_the_first_seed(
    invoke: Invoke, node: FakeNode, seed: str, directory: str
) -> None:
    """C4: and it is said on the screen."""
    result = invoke("crawl", seed)
    assert node.ran[0].out == Path(directory)
    assert f"Crawling into {directory}" in result.stdout


def test_nothing_to_crawl_is_a_usage_error(invoke: Invoke, node: FakeNode, tmp_path: Path) -> None:
    """C4: neither seeds nor a crawl to go on with."""
    for args in (("crawl",), ("crawl", "--out", str(tmp_path / "new"))):
        result = invoke(*args)
        assert isinstance(result.exception, UsageError)
    assert not node.ran


def test_going_on_takes_up_the_stored_settings(invoke: Invoke, node: FakeNode, tmp_path: Path) -> None:
    """F10, C4: the directory alone is enough, and flags override what it remembers."""
    write_stored(tmp_path, Settings(limits=LimitSettings(max_pages=5, max_depth=3)))
    result = invoke("crawl", "--out", str(tmp_path), "--max-depth", "4", "--new-cycle")
    ran = node.ran[0]
    assert "Going on with" in result.stdout
    assert (ran.configured.settings.limits.max_pages, ran.configured.settings.limits.max_depth) == (5, 4)
    assert ran.configured.sources["limits.max_pages"] == "crawl directory"
    assert ran.configured.sources["limits.max_depth"] == "--max-depth"
    assert ran.new_cycle


SAMPLES = {
    "render.enabled": ("never", "never"),
    "scope.mode": ("host", "host"),
    "scope.domains": ("a.org", ("a.org",)),
    "scope.include": ("a,b", ("a,b",)),
    "scope.exclude": ("c{1,2}", ("c{1,2}",)),
    "limits.max_total_bytes": ("2GB", 2_000_000_000),
    "limits.max_time_s": ("5m", 300.0),
    "archive.layout": ("domain-hour", "domain-hour"),
    "archive.compression": ("zstd", "zstd"),
    "archive.key": ("{host}/{date}.warc.gz", "{host}/{date}.warc.gz"),
    "fetch.user_agent": ("Bot/1 (+https://b.org)", "Bot/1 (+https://b.org)"),
    "fetch.http2": ("prefer", "prefer"),
    "fetch.proxy": ("socks5://p:1", "socks5://p:1"),
    "fetch.allow_addresses": ("127.0.0.0/8", ("127.0.0.0/8",)),
    "fetch.types": ("*/*", ("*/*",)),
    "dns.resolvers": ("127.0.0.1:53", ("127.0.0.1:53",)),
    "plugins.enabled": ("articles", ("articles",)),
    "plugins.options": ("articles.pattern=/a,b/", ("articles.pattern=/a,b/",)),
}


@pytest.mark.parametrize("key", [key for key, one in declarations().items() if one.flag])
def test_every_setting_with_a_flag_is_set_by_it(invoke: Invoke, node: FakeNode, key: str) -> None:
    """C4: flags are made from the declarations, each with its source remembered."""
    one = declarations()[key]
    if one.type is bool:
        arguments, value = [f"--no-{one.flag}" if one.default else f"--{one.flag}"], not one.default
    else:
        text, value = SAMPLES.get(key, ("7", one.type(7)))
        arguments = [f"--{one.flag}", text]
    result = invoke("crawl", "a.org", *arguments)
    assert result.exit_code == 0, result.output
    settings = node.ran[0].configured.settings
    holder = getattr(settings, one.group) if one.group else settings
    assert getattr(holder, one.name) == value
    assert node.ran[0].configured.sources[key] == f"--{one.flag}"
    others = {source for name, source in node.ran[0].configured.sources.items() if name != key}
    assert others == {"default"}


@pytest.mark.parametrize(
    ("arguments", "key", "value", "source"),
    [
        (["--workers", "9"], "fetch.concurrency", 9, "--concurrency"),
        (["--include-pattern", "x"], "scope.include", ("x",), "--include"),
        (["--exclude-pattern", "x", "--exclude", "y"], "scope.exclude", ("x", "y"), "--exclude"),
        (["--cooldown-sec", "60"], "frontier.cooldown_s", 60.0, "--cooldown"),
        (["--target-unique-domains", "60"], "limits.target_domains", 60, "--target-domains"),
        (["--politeness-ms", "1500"], "politeness.delay_s", 1.5, "--politeness-ms"),
        (["--forever"], "limits.max_wait_s", float("inf"), "--forever"),
        (["--set", "fetch.max_hops=3"], "fetch.max_hops", 3, "--set"),
    ],
)
def test_aliases_set_what_they_stand_for(
    invoke: Invoke, node: FakeNode, arguments: list[str], key: str, value: object, source: str
) -> None:
    """C4: the second names of flags."""
    assert invoke("crawl", "a.org", *arguments).exit_code == 0
    group, name = key.split(".")
    configured = node.ran[0].configured
    assert getattr(getattr(configured.settings, group), name) == value
    assert configured.sources[key] == source


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.org", "--delay", "1", "--politeness-ms", "5"], "twice"),
        (["a.org", "--forever", "--max-wait", "5"], "twice"),
        (["a.org", "--politeness-ms", "-5"], "--politeness-ms must be at least 0"),
        (["a.org", "--max-bytes", "many"], "--max-bytes must be a size"),
        (["a.org", "--max-depth", "900"], "--max-depth must be at most 250"),
        (["a.org", "--set", "fetch.timeout=5"], "no setting 'fetch.timeout'"),
        (["a.org", "--config", "none.toml"], "none.toml cannot be read"),
        (["--seeds", "-", "--domains", "-"], "once only"),
        (["--domains", "https://a.org/top.csv"], "--domains reads files"),
        (["--seeds", "none.txt"], "none.txt cannot be read"),
    ],
)
def test_orders_that_make_no_sense_are_refused_in_a_sentence(
    invoke: Invoke, node: FakeNode, arguments: list[str], words: str
) -> None:
    """C4: before anything is touched."""
    result = invoke("crawl", *arguments)
    assert isinstance(result.exception, UsageError)
    assert words in str(result.exception)
    assert not node.ran


def test_the_environment_and_the_file_count_too(invoke: Invoke, node: FakeNode, tmp_path: Path) -> None:
    """C4: file below environment below flags."""
    (tmp_path / "c.toml").write_text("[limits]\nmax_pages = 1\nmax_depth = 1\n")
    node.environ["NEPHILA_LIMITS_MAX_PAGES"] = "2"
    invoke("crawl", "a.org", "--config", "c.toml")
    limits = node.ran[0].configured.settings.limits
    assert (limits.max_pages, limits.max_depth) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "warnings"),
    [
        (["a.org", "--user-agent", "B/1 (+https://b.org)"], []),
        (["a.org"], ["User-Agent"]),
        (["a.org", "--user-agent", "B/1"], ["User-Agent"]),
        (["a.org", "--user-agent", "B/1 (me@b.org)", "--delay", "0.2"], ["0.2 s"]),
        (["http://127.0.0.1:8000/", "x.localhost", "--delay", "0"], []),
        (["127.0.0.1", "--no-robots", "--bad-certificates"], ["robots.txt", "certificates"]),
        (["127.0.0.1", "b.org", "--delay", "0"], ["0 s", "User-Agent"]),
        (["127.0.0.1", "--keep-pdf", "--keep-office"], ["--pdf-links", "--office-links"]),
        (["127.0.0.1", "--keep-pdf", "--pdf-links", "--keep-office", "--office-links"], []),
        (["127.0.0.1", "--keep-pdf", "--keep-office", "--type", "text/*", "--type", "application/*"], []),
        (["127.0.0.1", "--images"], ["--type 'image/*'"]),
        (["127.0.0.1", "--images", "--type", "text/html", "--type", "image/png"], []),
        (["127.0.0.1", "--type", "application/pdf"], ["add --type text/html"]),
        (["127.0.0.1", "--type", "application/pdf", "--max-depth", "0"], []),
        (["127.0.0.1", "--images", "--keep-pdf", "--page-requisites"], []),
    ],
)
def test_cautions_are_told_on_standard_error(invoke: Invoke, arguments: list[str], warnings: list[str]) -> None:
    """P2, P6, C4: what is impolite towards public hosts warns; one's own machine may be treated as one likes.

    S2, X4: so does a flag that comes to nothing by itself, whoever is asked.
    """
    result = invoke("crawl", *arguments, "--quiet")
    told = [line for line in result.stderr.splitlines() if line.startswith("Warning: ")]
    assert len(told) == len(warnings)
    assert all(word in line for word, line in zip(warnings, told, strict=True))
    assert result.stdout == ""


def test_json_is_the_only_thing_on_standard_output(invoke: Invoke, node: FakeNode) -> None:
    """C4: one object with every figure of the summary."""
    result = invoke("crawl", "a.org", "--json")
    document = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert set(CrawlSummary.__slots__) <= set(document)
    assert document["pages"] == 1234
    assert document["statuses"] == {"404": 66, "200": 1234}
    assert document["stopped_by"] == "done"
    assert document["exit_code"] == 0
    assert document["seeds"] == {"added": 3, "known": 1, "refused": {"malformed": 1}, "examples": []}
    assert "Crawling into" in result.stderr


@pytest.mark.parametrize(
    ("stopped_by", "code"),
    [
        (StoppedBy.DONE, 0),
        (StoppedBy.MAX_PAGES, 3),
        (StoppedBy.MAX_DOMAINS, 3),
        (StoppedBy.MAX_BYTES, 3),
        (StoppedBy.MAX_TIME, 3),
        (StoppedBy.INTERRUPT, 130),
        (StoppedBy.STORAGE, 1),
        (StoppedBy.GONE, 1),
    ],
)
def test_the_exit_code_tells_what_ended_the_crawl(
    invoke: Invoke, node: FakeNode, stopped_by: StoppedBy, code: int
) -> None:
    """S3, C4: 0 done, 1 failed, 3 a limit, 130 interrupted; as the help documents."""
    node.summary = replace(SUMMARY, stopped_by=stopped_by)
    assert invoke("crawl", "a.org").exit_code == code
    assert f"\n    {code} " in invoke("crawl", "--help").stdout


def test_a_pipe_gets_plain_lines_and_the_summary(invoke: Invoke) -> None:
    """C4: no control characters in a pipe."""
    result = invoke("crawl", "a.org")
    assert "1:23: 1,234 pages (14.8/s)" in result.stdout
    assert "Done: nothing is left" in result.stdout
    assert "3 added, 1 already known, 1 refused" in result.stdout
    assert all(line.isprintable() for line in result.stdout.splitlines())


def test_quiet_says_nothing(invoke: Invoke) -> None:
    """C4: a script that wants silence gets it."""
    result = invoke("crawl", "a.org", "--quiet", "--user-agent", "B (+https://b.org)")
    assert (result.stdout, result.stderr) == ("", "")


def test_verbose_adds_a_log_to_the_listeners(invoke: Invoke, node: FakeNode) -> None:
    """C4: -v and -vv."""
    invoke("crawl", "a.org")
    invoke("crawl", "a.org", "-vv")
    assert not any(isinstance(listener, LogSink) for listener in node.ran[0].listeners)
    assert any(isinstance(listener, LogSink) for listener in node.ran[1].listeners)


def test_what_the_node_raises_goes_up_to_the_entry(invoke: Invoke, node: FakeNode) -> None:
    """C4: commands do not swallow our own failures."""
    node.raises = StorageError("The disk is full.")
    assert isinstance(invoke("crawl", "a.org").exception, StorageError)
