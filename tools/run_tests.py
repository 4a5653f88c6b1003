"""Everything that must hold before a change is good, as one command: `./nephila test`, the same in CI.

Steps run one after the other and a failing one does not stop the next: one run shows all that is wrong. Each step is a
command that can be copied from the output and run by hand. Naming tests (`-k` or paths) runs only these.

The whole suite is shared out among several processes of pytest (`shares`, `side_by_side`). Tests of real processes and
servers wait about as long as they compute, so there are two processes more than there are cores, one where memory is
short. What failed there is looked at a second time (`second_look`). What they write goes to memory where there is room
for it: they cannot pull the plug, so a disk that is waited for thousands of times proves nothing.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import spec_ids
from second_look import failed_in, is_unsteady
from shares import files_of, measured, read_durations, share_out, write_durations
from side_by_side import SILENT_S, SideBySide, Told, summary

ROOT = Path(__file__).resolve().parent.parent

DURATIONS = Path("tests") / "durations.toml"
SOME_FAILED = 1
NO_TESTS = 5
"""What pytest ends with when tests have failed, and when there was nothing to run."""
DIED = 3
"""What pytest calls an internal error."""
AT_ONCE_MAX = {True: 4, False: 3}
"""Processes of pytest at once, with room in memory and without: each may have servers and browsers running."""
LONGEST_S = 3600
"""After which a long test is taken for one that hangs; others by pyproject.toml."""
TURNS = 4
"""Shares that each of several processes runs, one after the other: what was thought to be quick may be slow."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, wherever there is one
ROOM_BYTES = 8 << 30
"""What must be free there: four processes of pytest leave three gigabytes lying, and use as much for themselves."""
LINTED = ("src", "tests", "tools", "bench", "examples")


@dataclass(frozen=True, slots=True)
class Step:
    """One check: its name and the command that makes it."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """How a step ended."""

    step: Step
    exit_code: int
    seconds: float
    unsteady: tuple[str, ...] = ()
    """Tests that failed beside others, and passed by themselves."""


def static_steps(root: Path) -> list[Step]:
    """The checks that only read the code."""
    bin_directory = Path(sys.executable).parent
    linted = tuple(name for name in LINTED if (root / name).is_dir())
    ruff = str(bin_directory / "ruff")
    return [
        Step("ruff check", (ruff, "check", *linted)),
        Step("ruff format", (ruff, "format", "--check", *linted)),
        Step("mypy", (sys.executable, "-m", "mypy")),
        Step("lint-imports", (str(bin_directory / "lint-imports"),)),
    ]


def pytest_step(arguments: argparse.Namespace) -> Step:
    """The tests, all or those that were named."""
    options = ["--import-mode=importlib", "--durations=10", "--durations-min=0.5"]
    if arguments.long:
        # Ten thousand polite hosts take ten minutes, and Python 3.11 may crash when it shows where a running test is.
        options += ["-m", "long or not long", "-o", f"faulthandler_timeout={LONGEST_S}"]
    if arguments.expression:
        options += ["-k", arguments.expression]
    return Step("pytest", (sys.executable, "-m", "pytest", *options, *arguments.paths))


def run_suite(arguments: argparse.Namespace, root: Path) -> Result:
    """The whole suite, in several processes; then what wants the machine for itself."""
    step = pytest_step(arguments)
    if arguments.processes == 1 and not arguments.measure:
        return run(step, root)
    known = read_durations(root / DURATIONS)
    files = files_of(root)
    alone = [file for file in files if file in known.alone]
    shared = [file for file in files if file not in known.alone]
    lists = share_out(shared, known, arguments.processes, TURNS)
    words = shlex.join(_readable(step.command, root))
    print(
        f"\n== {step.name}: {len(shared)} files in {len(lists)} shares, {arguments.processes} at once, "
        f"then {len(alone)} alone: {words}",
        flush=True,
    )
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="nephila-tests-") as folder,
        tempfile.TemporaryDirectory(prefix="nephila-tests-", dir=roomy_memory()) as written,
    ):
        Path(written).chmod(0o711)  # a database server of the tests runs as somebody else
        reports = [Path(folder) / f"{number}.xml" for number in range(len(lists) + 1)]
        commands = [
            (*step.command, f"--junitxml={report}", *share)
            for report, share in zip(reports, [*lists, alone], strict=True)
        ]
        silent_s = 2.0 * LONGEST_S if arguments.long else SILENT_S
        told = SideBySide(root, {"TMPDIR": written}, silent_s=silent_s).run(commands[:-1], arguments.processes)
        # What measures a pace measures the disk with it.
        told += SideBySide(root, silent_s=silent_s).run(commands[-1:], 1, len(told) + 1) if alone else []
        if arguments.measure:
            write_durations(root / DURATIONS, known, measured(reports))
        exit_code = worst_of(told)
        print("\n" + "\n".join(summary(told)), flush=True)
        failed = failed_in(reports)
        unsteady = exit_code == SOME_FAILED and is_unsteady(step.command, failed, root)
    if unsteady:
        exit_code = 0
    seconds = time.monotonic() - started
    print(f"== {step.name}: {_outcome(exit_code)} in {seconds:.1f} s", flush=True)
    return Result(step, exit_code, seconds, tuple(failed) if unsteady else ())


def worst_of(told: Sequence[Told]) -> int:
    """How all of them have ended, as one exit code. A process that died, or hung, has not run all of its tests."""
    if any(one.hangs or one.exit_code < 0 for one in told):
        return DIED
    codes = [0 if one.exit_code == NO_TESTS else one.exit_code for one in told]  # all of a share may be long ones
    return max(codes)


def roomy_memory(files: Path = MEMORY, told: Path = Path("/proc/meminfo")) -> Path | None:
    """A file system in memory where there is room for what tests write, in it and in the memory it takes from."""
    try:
        free = shutil.disk_usage(files).free
        lines = told.read_text().splitlines()
        available = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    return files if min(free, available) >= ROOM_BYTES and os.access(files, os.W_OK) else None


def usual_processes(cores: int, *, roomy: bool) -> int:
    """How many processes of pytest make the most of a machine."""
    return min(AT_ONCE_MAX[roomy], cores + 1 + roomy)


def run(step: Step, root: Path) -> Result:
    """Run one step with its output passing through."""
    print(f"\n== {step.name}: {shlex.join(_readable(step.command, root))}", flush=True)
    started = time.monotonic()
    exit_code = subprocess.run(step.command, cwd=root, check=False, stdin=subprocess.DEVNULL).returncode  # noqa: S603 - ours
    seconds = time.monotonic() - started
    print(f"== {step.name}: {_outcome(exit_code)} in {seconds:.1f} s", flush=True)
    return Result(step, exit_code, seconds)


def _outcome(exit_code: int) -> str:
    return "ok" if exit_code == 0 else f"FAILED (exit code {exit_code})"


def _readable(command: Sequence[str], root: Path) -> list[str]:
    """The command with paths as one would type them at the root."""
    return [word.removeprefix(f"{root}{os.sep}") for word in command]


def closing_line(results: Sequence[Result]) -> str:
    """What a person reads last."""
    names = [result.step.name for result in results]
    failed = [result.step.name for result in results if result.exit_code != 0]
    seconds = sum(result.seconds for result in results)
    if failed:
        return f"FAILED in {seconds:.0f} s: {', '.join(failed)} ({len(failed)} of {len(names)})"
    unsteady = [name for result in results for name in result.unsteady]
    but = f"; UNSTEADY, failed beside others and passed alone: {', '.join(unsteady)}" if unsteady else ""
    return f"All fine in {seconds:.0f} s: {', '.join(names)}{but}"


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="nephila test", description="Run the checks and tests of Nephila itself.")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only these tests: files, folders, file.py::test_name")
    parser.add_argument("-k", dest="expression", metavar="EXPR", help="only tests whose names match, as for pytest")
    parser.add_argument(
        "--processes",
        type=int,
        metavar="N",
        default=usual_processes(os.cpu_count() or 1, roomy=roomy_memory() is not None),
        help="run the whole suite in so many",
    )
    parser.add_argument(
        "--measure", action="store_true", help="remember how long test files take (tests/durations.toml)"
    )
    parser.add_argument("--long", action="store_true", help="the long tests too")
    parser.add_argument(
        "--ids", action="store_true", help="list which requirement is proven by which test, run nothing"
    )
    parser.add_argument("--json", action="store_true", help="with --ids: as JSON")
    arguments = parser.parse_args(words)
    if arguments.json and not arguments.ids:
        parser.error("--json goes with --ids")
    if arguments.processes < 1:
        parser.error("--processes must be 1 at least")
    if arguments.measure and (arguments.paths or arguments.expression):
        parser.error("--measure goes with the whole suite")
    # Paths are meant from where the person stands; the tests run at the root.
    arguments.paths = [
        str(Path.cwd() / path) if Path(path.split("::")[0]).exists() else path for path in arguments.paths
    ]
    return arguments


def main(words: Sequence[str]) -> int:
    """Run what is asked for; 0 when all of it is fine, 1 when a step failed, 130 when interrupted."""
    os.environ.pop("NEPHILA_COMMAND", None)  # how this was called is not how the programs under test are called
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # thousands of starts, each of which would compile everything anew
    arguments = parse(words)
    if arguments.ids:
        print(spec_ids.report_json(ROOT) if arguments.json else spec_ids.report_text(ROOT))
        return 0
    if find_spec("pytest") is None:
        print("The test tools are not installed here: ./nephila test installs them and then runs.", file=sys.stderr)
        return 1
    try:
        if arguments.paths or arguments.expression:
            results = [run(pytest_step(arguments), ROOT)]
        else:
            results = [*(run(step, ROOT) for step in static_steps(ROOT)), run_suite(arguments, ROOT)]
    except KeyboardInterrupt:
        print("\nInterrupted.", flush=True)
        return 130
    print(f"\n{closing_line(results)}")
    return int(any(result.exit_code != 0 for result in results))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # so that a step ends with us
    sys.exit(main(sys.argv[1:]))
