"""What a worker has learned of sites outlives it and its disk: two workers on real engines, one after the other."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest
from fleet_engines import Engines, Fleet
from served import served
from waiting import wait_until

from nephila.dedup import SharedNotes
from nephila.engines.valkey_servers import servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.model.alias import AliasState
from nephila.pipeline.notfound import PROBE_MARK
from nephila.testing.serve import aliased_spec

Say = Callable[[str], None]
PAGES = 60
DELAY_S = 0.05
SILENT_S = 2
SHOP, SOFT = "decorated-0.test", "soft-1.test"
QUICK = """
[aliases]
verify_every = 0

[sitemaps]
guess = false
"""
PATIENT = (
    *("--max-wait", "20", "--set", "fetch.timeout_s=3", "--set", "frontier.lease_s=12"),
    *("--set", "traps.slow_after=100000", "--set", "traps.stop_after=100000"),
)
"""Leases that nobody renews end soon, and nothing but what is learned keeps a URL from being asked for."""


def is_learned(fleet: Fleet) -> bool:
    """Whether the servers know of the parameter that means nothing, and of the page for what is missing.

    And the probe has arrived in the store, so that nobody asks for it again.
    """

    async def ask() -> bool:
        state = await ValkeyState.open(servers_of(fleet.engines.names, {}))
        try:
            notes = SharedNotes(state, fleet.crawl)
            rules = (await notes.tallies([SHOP]))[SHOP].tallies.values()
            soft = (await notes.read({SOFT: ["m" + SOFT]}))["m" + SOFT]
            return any(rule.state == AliasState.IN_FORCE for rule in rules) and soft is not None
        finally:
            await state.close()

    return asyncio.run(ask()) and any(PROBE_MARK in url for url in fleet.stored())


def items_of(names: Iterable[str]) -> set[str]:
    return {found[1] for name in names if name.startswith(SHOP) and (found := re.search(r"item[/ ](\d+)", name))}


@pytest.mark.long
def test_a_site_is_not_learned_again_when_its_worker_and_its_disk_are_lost(
    tmp_path: Path, engines: Engines, say: Say
) -> None:
    """N3, D4, T4, T8: the next one asks for no alias and knows the page for what is missing; one undoes it for all."""
    arguments = ("--kind", "aliased", "--pages", str(PAGES), "--base-delay-ms", str(DELAY_S * 1000))
    with ExitStack() as hold:
        web = hold.enter_context(served(tmp_path / "web", aliased_spec(1, PAGES), *arguments))
        fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, DELAY_S, f"silent_s = {SILENT_S}", QUICK))
        fleet.seed()
        first = fleet.start("first", *PATIENT)
        wait_until(lambda: first.process.poll() is not None or is_learned(fleet), "nothing is learned")
        first.kill()
        killed_at = time.time()
        shutil.rmtree(fleet.folder / "first")
        before = web.audit()
        known = json.loads(fleet.say("aliases", "--json"))["aliases"]
        (rule,) = [one for one in known if one["state"] == AliasState.IN_FORCE]
        time.sleep(max(0.0, killed_at + SILENT_S + 1 - time.time()))  # or it counts as alive
        fleet.say("fleet", "forget", "first")
        second = fleet.start("second", *PATIENT)
        summary = second.end(120)
        assert summary["stopped_by"] == "done"
        assert "Traceback" not in second.told()
        rows = engines.database.query("SELECT url, at FROM captures", f'"crawl_{fleet.crawl}"')
        asked = [re.sub(r"^http://|:\d+", "", url) for url, at in rows if int(at) > killed_at * 1000]
        own = items_of(asked) - items_of(before.asked)
        aliases = [url for url in asked if (of := re.search(r"from=item(\d+)$", url)) and of[1] in own]
        say(f"{before.requests} requests by the first, {len(asked)} by the second, {len(own)} items by it alone")
        missing = sum("/story-" in url for url in asked)
        told = summary["errors"].get("soft_404", 0)
        say(f"of the links on these {len(aliases)} were asked for; {told} of {missing} pages were known as missing")
        assert len(own) >= 5
        assert aliases == []
        assert missing >= 10
        assert told == missing
        assert set(web.audit().by_kind) <= {"repeat"}
        url = f"http://{SHOP}:{web.told['port']}/item/1?from=nowhere"
        assert json.loads(fleet.say("why", url, "--json", code=1))["would_be_refused"]["reason"] == "alias"
        assert "is undone" in fleet.say("aliases", SHOP, "--undo", rule["id"])
        assert "would_be_refused" not in json.loads(fleet.say("why", url, "--json", code=1))
        (undone,) = [one for one in json.loads(fleet.say("aliases", "--json"))["aliases"] if one["id"] == rule["id"]]
        assert undone["state"] == AliasState.UNDONE
        assert undone["caught"] > 0
