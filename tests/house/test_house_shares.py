"""The suite in several processes: who runs what, and how it is told."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import run_tests
import side_by_side
from shares import QUICK_S, Durations, files_of, measured, read_durations, share_out, write_durations
from side_by_side import SideBySide, Told, summary

FILES = st.dictionaries(st.text("abc", min_size=1, max_size=4), st.floats(0, 500), max_size=30)


@given(FILES, st.integers(1, 4), st.integers(1, 4))
def test_every_file_is_run_once_and_the_shares_are_even(seconds: dict[str, float], at_once: int, turns: int) -> None:
    """None twice, none forgotten; no share is too long for its turn by more than two files."""
    known = Durations((), seconds)
    shares = share_out(seconds, known, at_once, turns)
    assert sorted(file for share in shares for file in share) == sorted(seconds)
    assert all(share == sorted(share) for share in shares)
    longest = max(map(known.of, seconds), default=0.0)
    loads = [sum(map(known.of, share)) for share in shares]
    if len(shares) == at_once * turns:
        fair = sum(loads) / sum(range(turns + 1)) / at_once
        assert all(load <= fair * (turns - number // at_once) + 2 * longest + 1e-6 for number, load in enumerate(loads))


def test_what_is_run_last_is_short() -> None:
    """One process has the last share to itself: what the others could do meanwhile is little."""
    shares = share_out([f"{number:03}" for number in range(200)], Durations(), 2, 4)
    assert [len(share) for share in shares] == [40, 40, 30, 30, 20, 20, 10, 10]


def test_files_that_share_what_is_costly_are_in_one_share() -> None:
    """Else each process would make it anew."""
    known = Durations((), {"a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0}, (("a", "d"),))
    assert share_out("abcd", known, 3, 1) == [["a", "d"], ["b"], ["c"]]


def test_what_tests_write_goes_to_memory_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the file system and in the memory behind it; else, and where there is neither, to the disk."""
    free = shutil.disk_usage(tmp_path).free
    told = tmp_path / "meminfo"
    told.write_text(f"MemTotal: 1 kB\nMemAvailable: {free >> 10} kB\n")
    monkeypatch.setattr(run_tests, "ROOM_BYTES", free // 2)
    assert run_tests.roomy_memory(tmp_path, told) == tmp_path
    told.write_text(f"MemTotal: 1 kB\nMemAvailable: {free >> 12} kB\n")
    assert run_tests.roomy_memory(tmp_path, told) is None
    told.write_text("MemTotal: 1 kB\n")
    assert run_tests.roomy_memory(tmp_path, told) is None
    assert run_tests.roomy_memory(tmp_path / "none", told) is None


def test_what_was_measured_is_remembered(tmp_path: Path) -> None:
    """Quick files are not named, and what is alone stays so."""
    report = tmp_path / "1.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.unit.test_a" name="x" time="1.5"/>'
        '<testcase classname="tests.unit.test_a" name="y" time="2.1"/>'
        '<testcase classname="tests.unit.test_b" name="x" time="0.2"/></testsuite></testsuites>'
    )
    took = measured([report, tmp_path / "never written.xml"])
    assert took == {"tests/unit/test_a.py": pytest.approx(3.6), "tests/unit/test_b.py": pytest.approx(0.2)}
    before = Durations(("tests/e2e/test_c.py",), {}, (("tests/a.py", "tests/b.py"),))
    write_durations(tmp_path / "durations.toml", before, took)
    known = read_durations(tmp_path / "durations.toml")
    assert (known.alone, known.together) == (before.alone, before.together)
    assert known.seconds == {"tests/unit/test_a.py": 4.0}
    assert known.of("tests/unit/test_b.py") == QUICK_S


def test_the_durations_that_are_kept_name_files_that_exist() -> None:
    """A file that was moved would be taken for quick, or run beside others."""
    known, files = read_durations(run_tests.ROOT / run_tests.DURATIONS), files_of(run_tests.ROOT)
    assert [name for name in (*known.alone, *known.seconds, *chain(*known.together)) if name not in files] == []


def script(*lines: str, exit_code: int = 0) -> tuple[str, ...]:
    return (sys.executable, "-c", f"print({chr(10).join(lines)!r}); raise SystemExit({exit_code})")


def test_progress_is_told_as_it_comes_and_the_rest_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """What failed anywhere is listed at the end, and the counts are added up."""
    told = SideBySide(Path.cwd()).run(
        [
            script("=== test session starts ===", "tests/a.py ..", "=== 2 passed, 1 skipped in 3.0s ==="),
            script(
                "=== test session starts ===",
                "tests/b.py .F",
                "=== FAILURES ===",
                "why",
                "=== short test summary info ===",
                "FAILED tests/b.py::test_x - why",
                "=== 1 failed, 1 passed in 3.0s ===",
                exit_code=1,
            ),
            script("=== test session starts ===", "tests/c.py .", "=== 1 passed in 0.1s ==="),
        ],
        at_once=2,
    )
    out = capsys.readouterr().out.splitlines()
    assert "1| tests/a.py .." in out
    assert "2| tests/b.py .F" in out
    assert out[out.index("=== FAILURES ===") + 1] == "why"
    assert [one.exit_code for one in told] == [0, 1, 0]
    assert summary(told) == ["FAILED tests/b.py::test_x - why", "4 passed, 1 skipped, 1 failed"]


def test_a_process_that_dies_is_told() -> None:
    """Without a summary of its own, as after a kill."""
    died = Told(2, exit_code=139)
    assert summary([died]) == ["process 2 ended with exit code 139", "no test ran"]


@pytest.mark.parametrize("heeds", ["True", "False"])
def test_a_process_that_hangs_is_ended_and_told(
    heeds: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a line is a sign of life. Whoever does not heed that it is to end is killed."""
    monkeypatch.setattr(side_by_side, "PATIENCE_S", 0.5)
    code = (
        "import signal, subprocess, sys, time\n"
        f"if not {heeds}: signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '20'])\n"  # holds the pipe
        "for _ in range(5): print('.', end='', flush=True); time.sleep(0.5)\n"
        "time.sleep(60)"
    )
    began = time.monotonic()
    told = SideBySide(Path.cwd(), silent_s=1.5).run([(sys.executable, "-c", code)], 1)
    assert 3.5 < time.monotonic() - began < 20
    assert "1| nothing was heard for" in capsys.readouterr().out
    assert summary(told) == ["process 1 hung, and was ended", "no test ran"]
    assert run_tests.worst_of([Told(2, exit_code=1), *told]) == run_tests.DIED


@pytest.mark.parametrize(("codes", "worst"), [((0, 5), 0), ((0, 1), 1), ((1, -9), 3), ((2, 1), 2)])
def test_who_died_is_worse_than_a_failure(codes: tuple[int, ...], worst: int) -> None:
    """Not all of its tests were run: nothing that passes alone makes up for that."""
    assert run_tests.worst_of([Told(1, exit_code=code) for code in codes]) == worst


def test_what_is_stopped_may_end_what_it_has_started(tmp_path: Path) -> None:
    """As Ctrl-C does: fixtures are torn down, servers of the tests ended."""
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    code = (
        "import pathlib, time\n"
        f"try:\n    pathlib.Path({str(begun)!r}).touch()\n    time.sleep(60)\n"
        f"except KeyboardInterrupt:\n    pathlib.Path({str(ended)!r}).touch()\n"
    )
    running = SideBySide(Path.cwd())
    thread = threading.Thread(target=running.run, args=([(sys.executable, "-c", code)], 1))
    thread.start()
    while not begun.exists():
        time.sleep(0.01)
    running.end()
    thread.join()
    assert ended.exists()


def test_processes_at_once_by_cores_and_memory() -> None:
    """Waiting is overlapped; a small machine has no room for the servers and browsers of many."""
    assert [run_tests.usual_processes(cores, roomy=True) for cores in (1, 2, 8)] == [3, 4, 4]
    assert [run_tests.usual_processes(cores, roomy=False) for cores in (1, 2, 8)] == [2, 3, 3]


def test_options_of_the_whole_suite(capsys: pytest.CaptureFixture[str]) -> None:
    """What makes no sense is refused in a sentence."""
    assert run_tests.parse(["--processes", "3"]).processes == 3
    for words in (["--processes", "0"], ["--measure", "-k", "x"]):
        with pytest.raises(SystemExit):
            run_tests.parse(words)
    assert "must be 1 at least" in capsys.readouterr().err
