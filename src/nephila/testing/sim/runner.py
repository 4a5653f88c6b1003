"""One seed lived through and judged."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .findings import findings
from .scenario import Scenario, draw_scenario
from .world import World

MEMORY = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
"""Where crawl directories are made: nothing of them is to outlive the run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a seed."""

    seed: int
    found: tuple[str, ...]
    """What broke; empty where all is well."""
    happened: Mapping[str, int]
    requests: int
    pages: int
    virtual_s: float
    cpu_s: float
    digest: str
    """Of all that was asked, in order and time."""

    @property
    def passed(self) -> bool:
        """Whether nothing broke."""
        return not self.found


def run_seed(seed: int, folder: Path | None = None) -> Verdict:
    """Live through the scenario of a seed. With `folder` the crawl directory is left there, to be looked at."""
    return run_scenario(draw_scenario(seed), folder)


def run_scenario(scenario: Scenario, folder: Path | None = None) -> Verdict:
    """Live through a scenario; whatever is raised is a finding, too."""
    begun = time.process_time()
    place = folder or Path(tempfile.mkdtemp(prefix="nephila-sim-", dir=MEMORY if MEMORY.is_dir() else None))
    world = World(scenario, place)
    found: list[str] = []
    pages = 0
    try:
        summary = world.live()
        pages = summary.total_pages
        found = findings(world, summary)
    except Exception as error:  # noqa: BLE001 - a simulation that breaks has found something
        found = [f"{type(error).__name__}: {error}", *_where(error)]
    finally:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
    return Verdict(
        seed=scenario.seed,
        found=tuple(found),
        happened={kind.value: count for kind, count in sorted(world.happened.items()) if count},
        requests=world.network.service.requests,
        pages=pages,
        virtual_s=world.clock.elapsed_s(),
        cpu_s=time.process_time() - begun,
        digest=world.network.service.digest.hexdigest(),
    )


def _where(error: BaseException) -> list[str]:
    """The last lines of code that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return [f"  at {frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
