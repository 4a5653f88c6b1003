"""Looks for bytes that break a reader of ours, guided by coverage (atheris).

    tools/fuzz                          lists the targets, and the CPU minutes that each has had
    tools/fuzz TARGET... --seconds 60   fuzzes the targets, one after the other
    tools/fuzz --all --seconds 60       all of them
    tools/fuzz --least --seconds 600    the target that has had least, and so on until the time is over
    tools/fuzz --all --seconds 0        minimises the corpus, and fuzzes nothing
    tools/fuzz --sanitized --seconds 60 damaged inputs for the extension in C, compiled with the sanitizers

Inputs that reach something new are kept in `build/fuzz/TARGET`; a minimised part of them goes to `tests/corpus/TARGET`,
which the tests replay. An input that breaks a property is saved there as `crash-...` and stays for good: fix the
reader, and the test that replays it is the regression test. The CPU time that was really spent is added to
`tests/corpus/ACCUMULATED.toml`, by this program only.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import fuzz_native

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
ACCUMULATED = CORPUS / "ACCUMULATED.toml"
WORK = ROOT / "build" / "fuzz"
KEPT_FILES, KEPT_BYTES = 100, 40_000
"""Of each target in the repository."""
TRIED_INPUTS = 400
MEMORY_MB = 1024
SLICE_S = 60
"""How long one target is fuzzed at a time under ``--least``."""
CRASH = "crash-"

_RUNS = re.compile(r"stat::number_of_executed_units: (\d+)")


@dataclass(frozen=True)
class Spent:
    """What a target has had."""

    cpu_s: float = 0.0
    runs: int = 0


def accumulated() -> dict[str, Spent]:
    """What all targets have had so far."""
    if not ACCUMULATED.exists():
        return {}
    read = tomllib.loads(ACCUMULATED.read_text(encoding="utf-8"))
    return {name: Spent(entry["cpu_minutes"] * 60, entry["runs"]) for name, entry in read.items()}


def add(name: str, more: Spent) -> None:
    """Add what was spent on a target; several of these programs may run at once."""
    CORPUS.mkdir(exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    with (WORK / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        spent = accumulated()
        before = spent.get(name, Spent())
        spent[name] = replace(before, cpu_s=before.cpu_s + more.cpu_s, runs=before.runs + more.runs)
        lines = ["# CPU time and inputs of each fuzz target so far. Written by tools/fuzz from what it measured.", ""]
        for target, one in sorted(spent.items()):
            lines += [f"[{target}]", f"cpu_minutes = {one.cpu_s / 60:.2f}", f"runs = {one.runs}", ""]
        draft = ACCUMULATED.with_suffix(".part")
        draft.write_text("\n".join(lines), encoding="utf-8")
        draft.rename(ACCUMULATED)


def targets() -> dict[str, Any]:
    """All targets, as `tests/support/fuzzing` names them."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]
    found: dict[str, Any] = importlib.import_module("fuzzing").TARGETS
    return found


def child(name: str, options: list[str], log: Path) -> tuple[int, float]:
    """Run libFuzzer on a target; its exit code and the CPU seconds that it took."""
    command = [sys.executable, str(ROOT / "tools" / "fuzz_child.py"), name, *options]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603 - our own
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def fuzz(target: Any, seconds: int, runs: int, seed: int) -> bool:  # noqa: ANN401 - not known to the type checker
    """Fuzz one target; whether nothing was found."""
    work, kept = WORK / target.name, CORPUS / target.name
    work.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    for data in target.seeds:
        (work / named(data)).write_bytes(data)
    with tempfile.TemporaryDirectory() as scratch:
        log, words = Path(scratch) / "log", Path(scratch) / "words"
        words.write_text("".join(map(spelled, target.words)))
        options = [
            *(f"-max_len={target.longest}", f"-rss_limit_mb={MEMORY_MB}", "-timeout=20", f"-seed={seed}"),
            *(f"-artifact_prefix={scratch}/", "-print_final_stats=1", f"-max_total_time={seconds}"),
            *((f"-runs={runs}",) if runs else ()),
            *((f"-dict={words}",) if target.words else ()),
        ]
        code, cpu_s = child(target.name, [*options, str(work), str(kept)], log)
        text = log.read_text(errors="replace")
        done = int(found[1]) if (found := _RUNS.search(text)) else 0
        add(target.name, Spent(cpu_s, done))
        broken = saved(Path(scratch), kept)
        if code:
            print(tail(text))
            print(f"{target.name}: something was found; {', '.join(map(str, broken)) or 'see above'}")
        print(f"{target.name}: {done} inputs in {cpu_s:.0f} s of CPU time")
        return code == 0


def minimise(target: Any) -> None:  # noqa: ANN401 - as above
    """Put into the repository what reaches a line of ours that nothing shorter reaches; crashes stay.

    Of many inputs an even selection is tried: following their lines takes twenty times as long as running them.
    """
    work, kept = WORK / target.name, CORPUS / target.name
    old = [path for path in kept.iterdir() if not path.name.startswith(CRASH)]
    pool = {*target.seeds, *map(Path.read_bytes, (*old, *(work.iterdir() if work.exists() else ())))}
    inputs = sorted(pool, key=lambda data: (len(data), data))
    reached: set[tuple[str, int]] = set()
    chosen: list[bytes] = []
    for data in inputs[:: len(inputs) // TRIED_INPUTS + 1]:
        lines = lines_of(target.check, data)
        if lines - reached and sum(map(len, chosen)) + len(data) <= KEPT_BYTES and len(chosen) < KEPT_FILES:
            chosen.append(data)
            reached |= lines
    for path in old:
        path.unlink()
    for data in chosen:
        (kept / named(data)).write_bytes(data)
    print(f"{target.name}: {len(chosen)} inputs of {len(inputs)} are kept, {sum(map(len, chosen))} bytes")


def lines_of(check: Callable[[bytes], None], data: bytes) -> set[tuple[str, int]]:
    """The lines of our sources that an input reaches."""
    reached: set[tuple[str, int]] = set()
    sources = str(ROOT / "src")

    def follow(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - what sys.settrace wants
        if not frame.f_code.co_filename.startswith(sources):
            return None
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return follow

    sys.settrace(follow)
    try:
        check(data)
    finally:
        sys.settrace(None)
    return reached


def spelled(word: bytes) -> str:
    """A line of libFuzzer's dictionary."""
    return '"' + "".join([f"\\x{octet:02x}" for octet in word]) + '"\n'


def named(data: bytes) -> str:
    """The file name of an input."""
    return hashlib.sha256(data).hexdigest()[:16]


def saved(scratch: Path, kept: Path) -> list[Path]:
    """Move the inputs that broke something to the corpus."""
    found = []
    for path in scratch.iterdir():
        if path.name.startswith((CRASH, "timeout-", "oom-", "slow-unit-")):
            place = kept / (CRASH + named(path.read_bytes()))
            shutil.move(path, place)
            found.append(place.relative_to(ROOT))
    return found


def tail(text: str) -> str:
    """What was said of a finding: the exception and where it came from."""
    at = text.find("=== Uncaught Python exception")
    return "\n".join(text[at if at >= 0 else -2000 :].splitlines()[:25])


def listed(names: list[str]) -> str:
    """The targets with what each has had."""
    spent = accumulated()
    rows = []
    for name in names:
        one = spent.get(name, Spent())
        rows.append(f"{name:<12}{one.cpu_s / 60:8.1f} min{one.runs:>14,} inputs")
    return "\n".join(rows)


def least(names: list[str]) -> str:
    """The target that has had the least CPU time."""
    spent = accumulated()
    return min(names, key=lambda name: spent.get(name, Spent()).cpu_s)


def fuzz_least(targets: list[Any], asked: argparse.Namespace) -> bool:
    """Whichever has had least, until the time is over; whether nothing was found. One that broke is left alone then."""
    until, whole = time.monotonic() + asked.seconds, {target.name: target for target in targets}
    while whole and (left := until - time.monotonic()) > 1:
        name = least(list(whole))
        if not fuzz(whole[name], min(SLICE_S, int(left)), asked.runs, asked.seed):
            del whole[name]
    return len(whole) == len(targets)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="tools/fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="names of targets; without any, they are listed")
    parser.add_argument("--all", action="store_true", help="every target")
    parser.add_argument("--least", action="store_true", help="those that have had least, until the time is over")
    parser.add_argument("--sanitized", action="store_true", help="the extension under the sanitizers")
    parser.add_argument("--seconds", type=int, default=30, help="for each target; in all for --least (30)")
    parser.add_argument("--runs", type=int, default=0, help="inputs for each target, where that is reached first")
    parser.add_argument("--seed", type=int, default=0, help="of libFuzzer; 0 for another one each time")
    parser.add_argument("--part", default="1/1", help="N/M: every Mth target from the Nth on, so that M can share")
    parser.add_argument("--no-minimise", action="store_true", help="leave tests/corpus as it is")
    return parser.parse_args()


def main() -> int:
    """Fuzz what was asked for; 1 when something was found."""
    asked = arguments()
    if asked.sanitized:
        return fuzz_native.main([str(asked.seconds), str(asked.seed or 1)])
    known = targets()
    unknown = [name for name in asked.targets if name not in known]
    if unknown:
        print(f"There is no target {unknown[0]!r}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    first, _, parts = asked.part.partition("/")
    names = asked.targets or (list(known)[int(first) - 1 :: int(parts)] if asked.all or asked.least else [])
    if not names:
        print(listed(list(known)))
        return 0
    sound = True
    if asked.least:
        sound = fuzz_least([known[name] for name in names], asked)
    elif asked.seconds:
        for name in names:
            sound &= fuzz(known[name], asked.seconds, asked.runs, asked.seed)
    if not asked.no_minimise:
        for name in names:
            minimise(known[name])
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
