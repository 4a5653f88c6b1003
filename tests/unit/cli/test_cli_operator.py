"""What an operator sees and decides: `status`, `traps`, `aliases`, `policy`, `block`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from click.testing import Result

from nephila.cli.backend import Backend
from nephila.cli.engines import sum_of
from nephila.cli.main import run
from nephila.cli.needs import Operator
from nephila.cli.status import status_lines
from nephila.config import Configured
from nephila.model.alias import AliasKind
from nephila.model.errors import UsageError
from nephila.model.policy import Block, DomainPolicy, Tier
from nephila.node.fleet.findings import bad, doubtful, good

from .conftest import ALIAS, STATUS, TRAP, FakeNode, FakeOperator

Invoke = Callable[..., Result]

# status


def test_status_shows_the_queue_by_class_and_age() -> None:
    """F1, F4, F7, C4: a table of class against supply and age within 80 columns, with its sums."""
    lines = list(status_lines(STATUS, 80))
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == "my crawl: running, cycle 2"
    start = next(number for number, line in enumerate(lines) if line.startswith("  queue"))
    assert [line.split() for line in lines[start : start + 6]] == [
        ["queue", "new", "again", "<", "4", "h", "<", "1", "d", "<", "7", "d", "<", "30", "d", "longer"],
        ["immediate", "1", "-", "1", "-", "-", "-", "-"],
        ["high", "1.20", "M", "34,567", "567", "4,000", "30,000", "200", "k", "1.00", "M"],
        ["medium", "20", "-", "-", "20", "-", "-", "-"],
        ["low", "-", "3", "-", "-", "-", "-", "3"],
        ["all", "1.20", "M", "34,570", "568", "4,020", "30,000", "200", "k", "1.00", "M"],
    ]


def test_status_tells_what_else_there_is() -> None:
    """F2, F5, R2, R5, T2, S4: stored, parked by reason, planned, gone, traps, starving, paused, and where to look."""
    said = "\n".join(status_lines(STATUS, 80))
    for fact in (
        "1,234 pages from 45 of 100 wanted domains; 1,300 captures, 31.2",
        "2,000,000 URLs; 1,234 completed, 2 dead",
        "120; 3 ready, 100 waiting, 5 leased",
        "3 URLs for a time of their own",
        "12 queued URLs with their hosts",
        "12  paused              somebody paused the domain",
        "1,233 URLs known and kept",
        "1,203  over_budget         more than host or domain has earned",
        "1,234 visits to pages",
        "5 pages proven gone",
        "3 patterns slowed or quarantined (nephila traps 'my crawl')",
        "40 of 1,300 choices for hosts that had waited too long",
        "22 domains by hand: a.org, b.org and 20 more",
        "1 (nephila block 'my crawl')",
    ):
        assert fact in said


def test_status_leaves_out_what_there_is_not(invoke: Invoke, node: FakeNode) -> None:
    """C4: no empty rows; the table stays, because an empty queue is an answer too."""
    node.standing = replace(
        STATUS, waiting_for_a_time={}, hosts_put_off={}, parked={}, planned=0, gone=0, traps=0, starving=0, paused=0,
        policies=0, blocks=0, target_domains=0,
    )  # fmt: skip
    said = invoke("status", "d").stdout
    assert "queue" in said
    for word in ("parked", "planned", "gone", "traps", "starving", "paused", "blocks", "wanted"):
        assert word not in said


def test_status_as_json_has_every_figure(invoke: Invoke) -> None:
    """C4: the same for scripts."""
    document = json.loads(invoke("status", "d", "--json").stdout)
    assert document["ages"]["high"]["under_7d"] == 30_000
    assert document["due_again"]["low"] == 3
    assert (document["parked"]["trap"], document["paused"], document["starving"]) == (30, 22, 40)


# traps


def test_traps_are_listed_with_their_evidence(invoke: Invoke, node: FakeNode) -> None:
    """T2, C4: where, what, since when, what it brought, what it holds back, when it is tried again."""
    result = invoke("traps", "d")
    assert result.stdout.splitlines()[:4] == [
        "calendar.test  /calendar/{date}",
        "  quarantined since 2023-11-14 22:13:20, tried again from 2023-11-21 22:13:20 (UTC)",
        "  1,057 fetched: 7 brought something new, 1,000 known content, 50 a known text",
        "  20,000 or more on its shelf",
    ]
    assert "\x1b" not in result.stdout
    document = json.loads(invoke("traps", "d", "http://Calendar.test:80/", "--json").stdout)
    assert (document["traps"][0]["pattern"], document["count"], document["in_all"]) == (TRAP.pattern, 1, 1)
    assert "No traps on other.test." in invoke("traps", "d", "other.test").stderr
    node.orders.trapped = [TRAP, TRAP]
    assert "The first 1 of 2; --limit shows more." in invoke("traps", "d", "--limit", "1").stderr


def test_a_trap_is_let_go_by_host_and_pattern(invoke: Invoke, node: FakeNode) -> None:
    """T2, C4: what came back at once and what comes later; without a host nothing is done."""
    result = invoke("traps", "d", "Calendar.test", "--release", TRAP.pattern)
    assert node.orders.released == [("calendar.test", TRAP.pattern)]
    assert result.stdout == (
        "/calendar/{date} on calendar.test starts anew; 500 URLs back in the queue, 200 more with the next claims.\n"
    )
    told = json.loads(invoke("traps", "d", "calendar.test", "--release", "x", "--json").stdout)
    assert (told["parked"], told["back_at_once"]) == (700, 500)
    assert isinstance(invoke("traps", "d", "--release", TRAP.pattern).exception, UsageError)
    assert len(node.orders.released) == 2


# aliases


def test_aliases_are_listed_with_their_evidence(invoke: Invoke, node: FakeNode) -> None:
    """D4, C4: what, since when, what speaks for it and against it, examples, what it has caught."""
    result = invoke("aliases", "d")
    assert result.stdout.splitlines() == [
        "0123abcd  shop.test  /item/{n}?ref",
        "  parameter ref changes nothing in /item/{n}",
        "  suspended since 2023-11-14 22:13:20 (UTC), 12,345 URLs caught so far",
        "  1,070 comparisons for it (20 of them the site's own word), 1 against it",
        "  alike      https://shop.test/item/1?ref=a\N{REPLACEMENT CHARACTER}[2J",
        "             https://shop.test/item/1",
        "  not alike  https://shop.test/item/2?ref=a",
        "             https://shop.test/item/2?ref=b",
    ]
    document = json.loads(invoke("aliases", "d", "www.shop.test", "--json").stdout)
    assert (document["aliases"][0]["id"], document["count"]) == (ALIAS.id, 1)
    assert "No aliases were learned of other.test." in invoke("aliases", "d", "other.test").stderr
    old = replace(ALIAS, pattern="http://old.test", target="https://new.test", kind=AliasKind.HOST)
    node.orders.learned = [replace(ALIAS, pattern="*?ref"), old]
    said = invoke("aliases", "d").stdout
    assert "parameter ref changes nothing anywhere" in said
    assert "http://old.test redirects everything to the same path of https://new.test" in said


def test_an_alias_is_undone_and_redone(invoke: Invoke, node: FakeNode) -> None:
    """D4, C4: by id or pattern, of one domain or wherever it is; not both at once."""
    result = invoke("aliases", "d", "www.shop.test", "--undo", ALIAS.pattern)
    assert result.stdout == "/item/{n}?ref on shop.test (0123abcd) is undone.\n"
    assert "may be learned again" in invoke("aliases", "d", "--redo", ALIAS.id).stdout
    assert json.loads(invoke("aliases", "d", "--undo", ALIAS.id, "--json").stdout)["rule"]["state"] == "undone"
    assert node.orders.decided == [
        ("undo", ALIAS.pattern, "shop.test"),
        ("redo", ALIAS.id, ""),
        ("undo", ALIAS.id, ""),
    ]
    assert isinstance(invoke("aliases", "d", "--undo", "x", "--redo", "y").exception, UsageError)
    assert len(node.orders.decided) == 3


# policy


def test_a_policy_is_set_one_thing_at_a_time(invoke: Invoke, node: FakeNode) -> None:
    """R4, C4: what is not named stays; `default` takes one thing back, --clear all."""
    given = ("--delay", "1.5s", "--max-depth", "3", "--tier", "News", "--recrawl-every", "6h", "--hours", "22-6, 12-14")
    result = invoke(
        "policy", "d", "example.org", *given, "--user-agent", "MyBot/1 (+https://a.org)", "--quality", "0.5"
    )
    assert result.exit_code == 0
    wanted = DomainPolicy(1.5, 3, Tier.NEWS, 21_600.0, "MyBot/1 (+https://a.org)", ((22, 6), (12, 14)), False, 0.5)
    assert node.orders.known == {"example.org": wanted}
    assert result.stdout.splitlines() == [
        "domain   example.org",
        "delay    1.5 s",
        "depth    at most 3 hops from a seed",
        "tier     news",
        "visits   every 6 h, of each page from its next visit on",
        "hours    22-6, 12-14 UTC",
        "quality  0.5",
        "agent    MyBot/1 (+https://a.org)",
    ]
    invoke("policy", "d", "example.org", "--pause", "--delay", "default", "--hours", "default")
    assert node.orders.known["example.org"] == replace(wanted, delay_s=None, hours=(), paused=True)
    assert "paused nothing is asked of it" in invoke("policy", "d").stdout
    invoke("policy", "d", "example.org", "--resume")
    assert not node.orders.known["example.org"].paused
    document = json.loads(invoke("policy", "d", "example.org", "--clear", "--json").stdout)
    assert document == {"domain": "example.org", "policy": None, "changed": True}
    assert node.orders.known == {}


def test_what_somebody_else_sets_at_the_same_moment_holds_too(invoke: Invoke, node: FakeNode) -> None:
    """R4, C4: the policy was changed between reading it and writing it: both changes are in what holds."""
    node.orders.meanwhile = DomainPolicy(delay_s=9.0)
    assert invoke("policy", "d", "example.org", "--max-depth", "3").exit_code == 0
    assert node.orders.known["example.org"] == DomainPolicy(delay_s=9.0, max_depth=3)
    node.orders.meanwhile = DomainPolicy(paused=True)
    assert invoke("policy", "d", "example.org", "--clear").exit_code == 0
    assert "example.org" not in node.orders.known


def test_a_policy_decides_on_browsers(invoke: Invoke, node: FakeNode) -> None:
    """J1, R4: always, never, and back to what is learned; anything else is a sentence."""
    assert "every page goes through a browser" in invoke("policy", "d", "example.org", "--render", "always").stdout
    assert "no page goes through a browser" in invoke("policy", "d", "example.org", "--render", "never").stdout
    assert "none: the settings" in invoke("policy", "d", "example.org", "--render", "default").stdout
    refused = invoke("policy", "d", "example.org", "--render", "often").exception
    assert str(refused) == "--render must be one of auto, always, never, not 'often'."


def test_a_policy_is_shown_without_being_changed(invoke: Invoke, node: FakeNode) -> None:
    """R4, C4: of one domain or of all, in text and as JSON."""
    assert "No domain has a policy" in invoke("policy", "d").stderr
    assert "none: the settings of the crawl hold" in invoke("policy", "d", "example.org").stdout
    node.orders.known["example.org"] = DomainPolicy(tier=Tier.LOW)
    assert invoke("policy", "d").stdout == "example.org  tier low\n"
    document = json.loads(invoke("policy", "d", "example.org", "--json").stdout)
    assert (document["policy"]["tier"], document["changed"]) == ("low", False)
    assert json.loads(invoke("policy", "d", "--json").stdout)["count"] == 1


def test_a_host_stands_for_its_domain_and_that_is_said(invoke: Invoke, node: FakeNode) -> None:
    """R4: policies hold for registrable domains."""
    result = invoke("policy", "d", "www.example.org", "--pause")
    assert "www.example.org belongs to example.org" in result.stderr
    assert node.orders.known["example.org"].paused


def test_a_short_delay_warns(invoke: Invoke) -> None:
    """P2, R4: lowering it under a second is for sites of one's own."""
    assert "Warning: a delay of 0.5 s" in invoke("policy", "d", "example.org", "--delay", "500ms").stderr
    assert invoke("policy", "d", "example.org", "--delay", "1").stderr == ""
    assert invoke("policy", "d", "example.org", "--pause").stderr == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--delay", "inf"], "finite"),
        (["--delay", "nan"], "finite"),
        (["--delay", "-1"], "at least 0"),
        (["--delay", "soon"], "must be a duration"),
        (["--max-depth", "-1"], "at least 0"),
        (["--max-depth", "251"], "at most 250"),
        (["--tier", "golden"], "one of news, high, normal, low"),
        (["--recrawl-every", "0"], "at least 1"),
        (["--recrawl-every", "inf"], "finite"),
        (["--hours", "5-5"], "no hours of a day"),
        (["--hours", "0-25"], "no hours of a day"),
        (["--hours", "24-3"], "no hours of a day"),
        (["--hours", "noon"], "spans of whole hours"),
        (["--hours", ""], "spans of whole hours"),
        (["--quality", "nan"], "from 0 to 1000"),
        (["--quality", "-1"], "from 0 to 1000"),
        (["--quality", "x"], "from 0 to 1000"),
        (["--user-agent", "(nobody)"], "does not begin with a name"),
        (["--user-agent", "Bot\u00e9"], "cannot be sent"),
        (["--user-agent", ""], "--user-agent is empty"),
        (["--clear", "--pause"], "nothing else can be set"),
    ],
)
def test_a_bad_value_changes_nothing(invoke: Invoke, node: FakeNode, given: list[str], said: str) -> None:
    """R4, C4: one sentence, exit code 2, and the policy is as it was, also where another value was good."""
    before = node.orders.known["example.org"] = DomainPolicy(delay_s=3.0)
    result = invoke("policy", "d", "example.org", *given)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)
    assert result.exception.exit_code == 2
    assert node.orders.known == {"example.org": before}


def test_options_without_a_domain_are_refused(invoke: Invoke) -> None:
    """C4: nothing is set for all domains by a slip."""
    assert "domain is missing" in str(invoke("policy", "d", "--pause").exception)


# block


def test_blocks_are_added_listed_and_removed(invoke: Invoke, node: FakeNode) -> None:
    """T7, C4: by hand, with a reason; removing one that is not there is exit code 1."""
    assert "Nothing is blocked." in invoke("block", "d").stderr
    assert (
        "blocked from the next claim on: asked us to" in invoke("block", "d", "a.org", "--reason", "asked us to").stdout
    )
    assert invoke("block", "d").stdout == "2023-11-14 22:13:20  a.org: asked us to\n"
    assert json.loads(invoke("block", "d", "--json").stdout)["blocks"][0]["reason"] == "asked us to"
    assert "no longer blocked" in invoke("block", "d", "a.org", "--remove").stdout
    again = invoke("block", "d", "a.org", "--remove")
    assert (again.exit_code, "There was no block" in again.stderr) == (1, True)
    assert json.loads(invoke("block", "d", "a.org", "--remove", "--json").stdout)["removed"] is False
    assert json.loads(invoke("block", "d", "b.org", "--reason", "x", "--json").stdout)["blocked"]["pattern"] == "b.org"
    assert [one.pattern for one in node.orders.listed] == ["b.org"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a.org"], "needs a reason"),
        (["--reason", "x"], "pattern is missing"),
        (["--remove"], "pattern is missing"),
        (["a.org", "--remove", "--reason", "x"], "exclude each other"),
    ],
)
def test_a_block_that_says_too_little_is_refused(invoke: Invoke, node: FakeNode, given: list[str], said: str) -> None:
    """T7, C4: one sentence, and nothing is blocked."""
    assert said in str(invoke("block", "d", *given).exception)
    assert node.orders.listed == []


def test_with_config_a_url_is_blocked_as_it_is_given(tmp_path: Path) -> None:
    """T7, C4: it stands where a directory would, and is no path: no slash of it is lost."""
    blocked: list[str] = []

    class Operating:
        def block(self, pattern: str, reason: str) -> Block:
            blocked.append(pattern)
            return Block(pattern, reason, 1)

    file = tmp_path / "fleet.toml"
    file.write_text("")
    backend = Backend(open_fleet_operator=lambda _: cast("Operator", Operating()), environ={})
    url = "https://example.org/private//part/"
    assert run(["block", "--config", str(file), url, "--reason", "they asked us"], backend) == 0
    assert blocked == [url]


@pytest.mark.parametrize("command", [("status",), ("pages",), ("dead",), ("dead", "--retry-all"), ("traps",)])
def test_a_region_of_a_fleet_is_looked_at_by_the_name_of_its_group(
    invoke: Invoke, node: FakeNode, command: tuple[str, ...], tmp_path: Path
) -> None:
    """N6, C4: its pages, dead letters and traps are its own; a directory has no regions."""
    asked: list[str] = []

    def looking(configured: Configured) -> FakeNode:
        asked.append(configured.settings.fleet.group)
        return node

    def operating(configured: Configured) -> FakeOperator:
        return looking(configured).orders

    file = tmp_path / "fleet.toml"
    file.write_text('[fleet]\ncrawl = "web"\n')
    backend = replace(node.backend(), open_fleet_view=looking, open_fleet_operator=operating)
    assert run([*command, "--config", str(file), "--group", "eu"], backend) == 0
    assert asked == ["eu"]
    assert "--group names a region" in str(invoke(command[0], "d", *command[1:], "--group", "eu").exception)


def test_the_last_line_of_a_check_tells_whether_workers_can_work() -> None:
    """N2, C4: a warning is not passed over."""
    fine, odd, wrong = good("worker", "w", "t"), doubtful("worker", "w", "t", "a"), bad("worker", "w", "t", "a")
    assert sum_of([fine, fine]) == "All is well."
    assert sum_of([fine, odd]) == "1 of 2 are well; workers can do their work, see WARN."
    assert sum_of([fine, odd, wrong]).startswith("1 of 3 are well; workers cannot do their work")
