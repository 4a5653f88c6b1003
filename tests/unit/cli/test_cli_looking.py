from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from nephila.cli.check import run_tests
from nephila.cli.looking import host_named, labelled
from nephila.cli.status import status_lines
from nephila.config import write_stored
from nephila.config.reference import reference
from nephila.fetch.proxy import read_proxy
from nephila.model.errors import CrawlDirectoryError, UsageError
from nephila.model.settings import FetchSettings, Settings

from .conftest import STATUS, FakeNode

Invoke = Callable[..., Result]


def test_pages_are_listed_with_their_whole_url(invoke: Invoke, node: FakeNode) -> None:
    """W3, C4: filters are handed on; titles of strangers cannot act on the terminal."""
    result = invoke("pages", "d", "--host", "example.org", "--status", "200", "--like", "a", "--limit", "5")
    assert node.asked == [("open", Path("d")), ("pages", "example.org", 200, "a", 5)]
    assert result.stdout.startswith("200   31.2 kB  2023-11-14 22:13:20  https://example.org/a  A")
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout


@pytest.mark.parametrize(
    ("named", "known"),
    [
        ("M\u00dcNCHEN.example.", "xn--mnchen-3ya.example"),
        ("https://Example.org:8443/a", "example.org"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("::1", "[::1]"),
        ("a_b.example", "a_b.example"),
    ],
)
def test_a_host_is_meant_however_it_is_spelled(invoke: Invoke, node: FakeNode, named: str, known: str) -> None:
    """C4, U2: as in `policy`, `block` and `audit`; a list that is empty for its spelling would mislead."""
    invoke("pages", "d", "--host", named)
    assert node.asked[-1] == ("pages", known, None, "", 100)
    assert host_named(named) == known


def test_what_can_be_no_host_is_told(invoke: Invoke) -> None:
    """C4: and not looked for."""
    for command in (("pages", "d", "--host"), ("traps", "d"), ("export", "d", "--to", "x.jsonl", "--host")):
        assert isinstance(invoke(*command, "exa mple").exception, UsageError)
    assert host_named("") == ""


def test_pages_as_json(invoke: Invoke) -> None:
    """C4: one object."""
    document = json.loads(invoke("pages", "d", "--json", "--limit", "1").stdout)
    assert document["count"] == 1
    assert document["pages"][0]["url"] == "https://example.org/a"


def test_a_list_that_was_cut_says_so(invoke: Invoke) -> None:
    """C4: on standard error, where it does not disturb a pipe."""
    assert "--limit shows more" in invoke("pages", "d", "--limit", "1").stderr
    assert invoke("pages", "d", "--limit", "2").stderr == ""


def test_why_tells_the_story(invoke: Invoke, node: FakeNode) -> None:
    """T8, C4: labels and texts, exit code 1 for a URL that was never met."""
    result = invoke("why", "d", "https://example.org/a")
    assert result.exit_code == 0
    assert result.stdout.startswith("state     completed\nfound on  https://example.org/")
    assert "\x1b" not in result.stdout
    node.found = False
    assert invoke("why", "d", "https://example.org/b").exit_code == 1


def test_why_as_json(invoke: Invoke) -> None:
    """T8, C4: the same for scripts."""
    assert json.loads(invoke("why", "d", "https://example.org/a", "--json").stdout) == {
        "url": "https://example.org/a",
        "found": True,
        "state": "completed",
        "fingerprint": "01",
    }


def test_dead_letters_are_listed_with_their_reason(invoke: Invoke) -> None:
    """F9, C4: what failed, when, of what."""
    result = invoke("dead", "d")
    assert result.stdout.startswith("2023-11-14 22:14:20  timeout       https://example.org/x (no answer ")
    assert "\x1b" not in result.stdout
    document = json.loads(invoke("dead", "d", "--json").stdout)
    assert document["dead"][0]["fingerprint"] == "01ff"
    assert document["dead"][0]["level"] == "high"


def test_dead_letters_are_put_back(invoke: Invoke, node: FakeNode) -> None:
    """F9, C4: one, several or all of them."""
    result = invoke("dead", "d", "--retry", "https://example.org/x")
    assert ("revive", ("https://example.org/x",)) in node.asked
    assert "1 put back. To fetch: nephila crawl --out d" in result.stdout
    assert json.loads(invoke("dead", "d", "--retry-all", "--json").stdout) == {"revived": 2}
    assert ("revive", None) in node.asked
    assert isinstance(invoke("dead", "d", "--retry-all", "--retry", "x").exception, UsageError)


def test_a_directory_without_a_crawl_is_told(invoke: Invoke, node: FakeNode) -> None:
    """C4: the node's word goes up."""
    node.raises = CrawlDirectoryError("There is no crawl in d.")
    for arguments in (
        ["status", "d"],
        ["pages", "d"],
        ["dead", "d"],
        ["why", "d", "x"],
        ["traps", "d"],
        ["aliases", "d"],
        ["policy", "d"],
    ):
        assert isinstance(invoke(*arguments).exception, CrawlDirectoryError)


def test_config_show_tells_what_is_in_force_and_where_from(invoke: Invoke, node: FakeNode, tmp_path: Path) -> None:
    """C4: as TOML that can be used again."""
    write_stored(tmp_path, Settings(fetch=FetchSettings(max_hops=4)))
    (tmp_path / "c.toml").write_text("[dns]\ntries = 2\n")
    node.environ["NEPHILA_ROBOTS_OBEY"] = "no"
    result = invoke("config", "show", str(tmp_path), "--config", "c.toml", "--set", "scope.mode=host", "--changed")
    assert result.stdout.splitlines() == [
        "[scope]",
        'mode = "host"  # --set',
        "",
        "[robots]",
        "obey = false  # environment NEPHILA_ROBOTS_OBEY",
        "",
        "[fetch]",
        "max_hops = 4  # crawl directory",
        "",
        "[dns]",
        "tries = 2  # file c.toml line 2",
    ]
    assert "timeout_s = 30.0  # default" in invoke("config", "show").stdout


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_config_show_keeps_passwords_to_itself(invoke: Invoke, form: list[str]) -> None:
    """C4, K4: what people copy into a ticket holds none, wherever a URL may have one."""
    given = (
        "fetch.proxy=http://me:open sesame@h:1",
        "fleet.servers=valkey://me:sesame@h",
        "catalogue.url=x://:sesame@h",
    )
    result = invoke("config", "show", *form, *(word for one in given for word in ("--set", one.replace(" ", "%20"))))
    assert "sesame" not in result.stdout
    assert result.stdout.count(":***@h") == 3


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    "login", ["me@corp.test:sesame", "me:a@sesame", 'me:a"sesame', "m:e@x:a:sesame", '"me":sesame']
)
def test_a_login_may_have_any_character(invoke: Invoke, form: list[str], login: str) -> None:
    """C4, K4: a name at a domain, an @ in the password, quotes: a proxy takes them, and none is shown."""
    assert read_proxy(f"http://{login}@h:1") is not None
    result = invoke("config", "show", *form, "--set", f"fetch.proxy=http://{login}@h:1")
    assert result.exit_code == 0
    assert "sesame" not in result.stdout
    assert result.stdout.count(":***@h:1") == 1


def test_config_show_as_json(invoke: Invoke) -> None:
    """C4: for scripts; endless is a word there."""
    document = json.loads(invoke("config", "show", "--changed", "--set", "limits.max_wait_s=inf", "--json").stdout)
    assert document == {"limits.max_wait_s": {"value": "inf", "source": "--set", "default": 120.0}}


def test_config_of_a_directory_without_a_crawl_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    """C4: no crawl, no configuration of it."""
    assert isinstance(invoke("config", "show", str(tmp_path)).exception, CrawlDirectoryError)


def test_config_reference_prints_the_settings_page(invoke: Invoke) -> None:
    """C4: the page in the documentation is made with it."""
    assert invoke("config", "reference").stdout == reference()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_us_back(invoke: Invoke, shell: str) -> None:
    """C4: shell completion."""
    result = invoke("completion", shell)
    assert result.exit_code == 0
    assert f"_NEPHILA_COMPLETE={shell}_complete" in result.stdout


def test_demo_crawls_and_lets_the_auditor_speak(invoke: Invoke, node: FakeNode, tmp_path: Path) -> None:
    """C4, P5: a temporary directory unless one is named; a bad verdict is a failure."""
    result = invoke("demo", "--out", "d", "--pages", "50")
    assert node.asked[-1] == ("demo", Path("d"), 50)
    assert "violations  0" in result.stdout
    assert "nephila why d http://site1.test/" in result.stdout
    assert result.exit_code == 0
    node.found = False
    failed = invoke("demo", "--out", "d", "--json")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["audit"] == {"violations": "0"}


def test_the_tests_are_run_where_there_is_a_checkout(tmp_path: Path) -> None:
    """C4: arguments and exit code are handed on; without a checkout it is said."""
    with pytest.raises(UsageError, match="not part of the installed package"):
        run_tests(tmp_path, ())
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "run_tests.py").write_text("import sys\nsys.exit(len(sys.argv))\n")
    assert run_tests(tmp_path, ("--ids", "x")) == 3


def test_long_texts_are_wrapped_below_themselves_and_addresses_stay_whole() -> None:
    """C4: sensible at any width."""
    url = "https://example.org/" + "x" * 60
    assert list(labelled([("a", "one two three four five six seven"), ("long label", url), ("none", "")], 42)) == [
        "a           one two three four five six",
        "            seven",
        f"long label  {url}",
        "none",
    ]


def test_the_status_tells_how_plugins_do() -> None:
    """E1: calls, failures, losses and whether one is off, for each by its name."""
    counts = {"hangs": {"calls": 7, "failures": 3, "overruns": 2, "lost": 5, "off": 1}, "fine": {"calls": 1, "off": 0}}
    lines = [" ".join(line.split()) for line in status_lines(replace(STATUS, plugins=counts), 120)]
    told = "plugin hangs 7 calls; 3 failures, 2 of them too late; 5 records or events did not reach it; switched off"
    assert told in lines
    assert "plugin fine 1 call" in lines


@pytest.mark.parametrize("name", ["ab", "abcde", "abcdef", "abcdefg", "FilterRaise", "a" * 60])
def test_the_name_of_a_plugin_stands_apart_from_its_figures(name: str) -> None:
    """C4, E1: however long it is."""
    lines = list(status_lines(replace(STATUS, plugins={name: {"calls": 5}}), 80))
    (told,) = [line for line in lines if "plugin" in line]
    assert told.split()[:3] == ["plugin", name[:33], "5"]
