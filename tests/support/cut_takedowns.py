"""A takedown on a simulated crawl that is cut off again and again, at steps all over it, until it is carried out."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from crashes import World
from three_books import contents

from nephila.engines.disk import LocalDisk
from nephila.model.settings import Settings
from nephila.node.audit import audit
from nephila.node.takedown import Order, Takedown, TakedownFolder, TakedownState
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.web import SimulatedWeb, WebSpec

CUT_OFF = 14
"""So often, at most: then it is left alone."""


def crawled(spec: WebSpec, folder: Path, settings: Settings, *, power: bool) -> tuple[World, str]:
    """A crawl that has ended, and the host with most of its pages; `power`: what cuts it off is a loss of power."""
    world = World(SimulatedWeb(spec), folder, settings, random.Random(3) if power else None)
    assert world.crawl() is not None
    return world, Counter(url.split("/")[2] for url in contents(world).pages).most_common(1)[0][0]


def carried_out(world: World, *, urls: tuple[str, ...] = (), domains: tuple[str, ...] = ()) -> Takedown:
    """Order a takedown and let runs die on it, each at another write, sync or commit; what the last one made of it.

    The trail holds, and the archive has lost as many captures as the record says.
    """
    ordered = TakedownFolder(world.out / "takedowns").add(Order(urls, domains, "they asked us", "test"), 1)
    step, crashes = 3, 0
    while world.crawl(crash_at=step, seeds=[]) is None:
        crashes += 1
        step = 3 + (step * 7 + crashes) % 45 if crashes < CUT_OFF else 0
    assert crashes >= 5
    done = TakedownFolder(world.out / "takedowns").get(ordered.id)
    assert done is not None
    assert done.state is TakedownState.DONE
    found = audit(world.out, disk=world.disk if isinstance(world.disk, ForgetfulDisk) else LocalDisk())
    assert found.is_clean, (found.findings[:3], found.trail.breaches[:3])
    assert found.taken_out == done.captures > 3
    return done
