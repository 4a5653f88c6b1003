"""The test files, shared out among processes so that all of them end at about the same time.

Shares are run one after the other by whichever process is free, the large ones first: a small one at the end keeps
nobody waiting for long, however wrong the durations are.

`tests/durations.toml` remembers what files take, to the second; what is not named there is quick. `alone` names files
whose tests measure the pace of real processes: they have the machine to themselves, after all others. `together` names
files that share something which is costly to make, such as a whole crawl: one process runs them all.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

QUICK_S = 0.5
"""What a file takes that is not named."""
LEAST_S = 1.0
"""What a file must take to be named."""

HEAD = """# What test files take, in seconds: `./nephila test` shares them out among its processes by this. Written by
# `./nephila test --measure`; a file that is not named is quick. Those under `alone` measure the pace of real processes,
# and have the machine to themselves at the end; those of a list under `together` share something costly.
"""


@dataclass(frozen=True, slots=True)
class Durations:
    """What is known of test files."""

    alone: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    together: tuple[tuple[str, ...], ...] = ()

    def units(self, files: Iterable[str]) -> list[list[str]]:
        """The files in lists of those that belong together, the longest list first."""
        first = {file: names[0] for names in self.together for file in names}
        units: dict[str, list[str]] = {}
        for file in files:
            units.setdefault(first.get(file, file), []).append(file)
        return sorted(units.values(), key=lambda unit: (-sum(map(self.of, unit)), unit))

    def of(self, file: str) -> float:
        """What a file takes."""
        return max(QUICK_S, self.seconds.get(file, 0.0))


def read_durations(path: Path) -> Durations:
    """What a file of durations says; nothing where there is none."""
    try:
        kept = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Durations()
    seconds = {name: float(took) for name, took in kept["seconds"].items()}
    return Durations(tuple(kept.get("alone", ())), seconds, tuple(map(tuple, kept.get("together", ()))))


def write_durations(path: Path, known: Durations, seconds: Mapping[str, float]) -> None:
    """Remember what files take; the rest stays as it is known."""
    lines = [HEAD, "alone = [", *(f'  "{name}",' for name in known.alone), "]"]
    lines += ["together = [", *(f"  {json.dumps(names)}," for names in known.together), "]", "", "[seconds]"]
    lines += [f'"{name}" = {took:.0f}' for name, took in sorted(seconds.items()) if took >= LEAST_S]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measured(reports: Iterable[Path]) -> dict[str, float]:
    """What files took, fixtures included, by the reports of the processes (JUnit's XML, as pytest writes it)."""
    seconds: dict[str, float] = {}
    for report in reports:
        if report.exists():
            for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own
                file, _ = place_of(case)
                seconds[file] = seconds.get(file, 0.0) + float(case.get("time", "0"))
    return seconds


def place_of(case: ET.Element) -> tuple[str, list[str]]:
    """The file of a test, and the classes that it stands in, as a report names them."""
    words = case.get("classname", "").split(".")
    classes = [word for word in words if word.startswith("Test")]
    return "/".join(word for word in words if word not in classes) + ".py", classes


def files_of(root: Path) -> list[str]:
    """All of them, as paths from the root."""
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))


def share_out(files: Iterable[str], durations: Durations, at_once: int, turns: int) -> list[list[str]]:
    """Lists of files for so many processes to run in so many turns, those of the first turn the largest.

    The longest files first, each to the list that is the least full with it, for its size. Within a list the files are
    in order, as one process would run them.
    """
    sizes = [turns - number // at_once for number in range(at_once * turns)]
    shares: list[list[str]] = [[] for _ in sizes]
    loads = [0.0] * len(sizes)
    for unit in durations.units(files):
        took = sum(map(durations.of, unit))
        fullness = [(load + took) / size for load, size in zip(loads, sizes, strict=True)]
        least = fullness.index(min(fullness))
        shares[least] += unit
        loads[least] += took
    return [sorted(share) for share in shares if share]
