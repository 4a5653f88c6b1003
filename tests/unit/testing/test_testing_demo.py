from __future__ import annotations

from collections import Counter

import pytest

from nephila.cli.demonstration import SCALED
from nephila.config import load
from nephila.politeness.pace import heavy_ms
from nephila.testing.demo import demo_spec
from nephila.testing.web import Door, Expect, RobotsKind, Role, SimulatedWeb, WalkPolicy

WEB = SimulatedWeb(demo_spec())
HUGE_BYTES = 512_000
"""Of a robots.txt that is read as far as it must be."""
TRUTH = WEB.truth(policy=WalkPolicy(patient=False))


def test_the_demo_has_everything_interesting_in_it() -> None:
    assert {host.robots for host in WEB.hosts} == set(RobotsKind)
    assert {Door.OPEN, Door.REFUSING, Door.NAMELESS} == {host.door for host in WEB.hosts}
    assert any(host.slow for host in WEB.hosts)
    assert {page.expect for page in TRUTH.pages.values()} == set(Expect)
    roles = {WEB.atlas.role(host, page) for host in WEB.hosts for page in range(host.pages)}
    assert roles == set(Role) - {Role.HANG, Role.HANG_BODY, Role.NEAR}
    assert TRUTH.duplicates()
    assert {"robots", "robots_unavailable", "unreachable", "nofollow", "excluded"} <= set(TRUTH.refused.values())


def test_the_demo_is_small() -> None:
    assert len(WEB.hosts) == 40
    assert 300 <= WEB.spec.pages <= 400
    assert 250 <= len(TRUTH.pages) <= 450


@pytest.mark.parametrize("delay_s", [0.2, 0.5])
def test_no_host_of_the_demo_takes_longer_than_a_newcomer_waits(delay_s: float) -> None:
    seconds: Counter[str] = Counter()
    heavy_s = heavy_ms(0, HUGE_BYTES, load(assignments=SCALED).settings.politeness) / 1000
    for page in TRUTH.pages.values():
        host = WEB.hosts.find(page.host)
        assert host is not None
        tries = 4 if page.expect in (Expect.SERVER_ERROR, Expect.NEVER, Expect.CUT, Expect.RECOVERS) else 1
        rules_s = heavy_s if host.robots is RobotsKind.HUGE else 0.0
        seconds[page.host] += tries * (max(delay_s, rules_s, host.crawl_delay_ms / 1000) + host.latency_ms / 1000)
    assert 5 < max(seconds.values()) < 20
