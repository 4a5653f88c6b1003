"""What failed beside others, run again by itself.

The processes of a whole run starve each other at times: they share cores with servers, browsers and crawls that are
killed. A test that gives real processes a minute may fail there and nowhere else. Each test that failed is therefore
run three times more with the machine to itself. One that fails again has failed, and nothing is run after that. One
that passes every time is unsteady: its failure was shown like any other, the last line of the run names it, and the run
is not refused for it. More than a few of them are no accident, and nothing is run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from shares import place_of
from side_by_side import SideBySide

TIMES = 3
MOST = 5


def failed_in(reports: Iterable[Path]) -> list[str]:
    """The tests that failed, as pytest is asked for them, by the reports of its processes (JUnit's XML)."""
    failed: dict[str, None] = {}
    for report in reports:
        if report.exists():
            for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own
                if case.find("failure") is not None or case.find("error") is not None:
                    file, classes = place_of(case)
                    failed["::".join([file, *classes, case.get("name", "")])] = None
    return list(failed)


def is_unsteady(command: Sequence[str], failed: Sequence[str], root: Path) -> bool:
    """Whether these pass, again and again, when nothing else runs."""
    if not 0 < len(failed) <= MOST:
        return False
    print(f"\n== failed, and run {TIMES} times more by themselves: {', '.join(failed)}", flush=True)
    return all(SideBySide(root).run([(*command, *failed)], 1, turn)[0].exit_code == 0 for turn in range(1, TIMES + 1))
