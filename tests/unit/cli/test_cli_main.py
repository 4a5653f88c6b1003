from __future__ import annotations

import errno
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nephila.cli import crash
from nephila.cli.main import COMMANDS, LEAST_FILES, cli, run
from nephila.cli.output import printable
from nephila.cli.version import version
from nephila.config import write_stored
from nephila.model.errors import StorageError
from nephila.model.plain import plain
from nephila.model.settings import Settings

from .conftest import FakeNode


def python(code: str, *, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_start_up_loads_neither_the_crawler_nor_the_terminal_library(argument: str) -> None:
    """C4: `nephila --help` answers at once."""
    done = python(
        "import sys\nfrom nephila.cli.main import run\n"
        f"code = run([{argument!r}])\n"
        "print('LOADED', code, sorted(n for n in sys.modules if n.split('.')[0] in ('rich', 'uvloop', 'asyncio')"
        " or n.startswith('nephila.') and n.split('.')[1] not in ('cli', 'model')))"
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "LOADED 0 []"


@pytest.mark.parametrize("module", ["inspect", "operating"])
def test_looking_at_a_crawl_loads_nothing_that_makes_one(module: str) -> None:
    """C4: `status`, `why`, `policy` and their like start without fetching, reading of pages and plugins."""
    done = python(
        f"import sys\nimport nephila.node.{module}\n"
        "parts = ('fetch', 'parse', 'pipeline', 'plugins', 'render', 'node.wiring', 'node.crawl', 'node.machinery')\n"
        "print([part for part in parts if f'nephila.{part}' in sys.modules])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


class Files:
    """Stands in for the system's limits on open files."""

    def __init__(self, soft: int, hard: int, *, fixed: bool = False) -> None:
        self.now = (soft, hard)
        self._fixed = fixed

    def get(self, _: int) -> tuple[int, int]:
        return self.now

    def set(self, _: int, limits: tuple[int, int]) -> None:
        if self._fixed:
            raise ValueError("not allowed")
        self.now = limits


@pytest.mark.parametrize(
    ("files", "code", "soft"),
    [
        (Files(12, 12), 1, 12),
        (Files(12, 4096), 0, LEAST_FILES),
        (Files(12, resource.RLIM_INFINITY), 0, LEAST_FILES),
        (Files(12, 4096, fixed=True), 1, 12),
        (Files(LEAST_FILES, LEAST_FILES), 0, LEAST_FILES),
        (Files(resource.RLIM_INFINITY, resource.RLIM_INFINITY), 0, resource.RLIM_INFINITY),
    ],
)
def test_too_few_files_are_told_before_anything_is_begun(
    files: Files, code: int, soft: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """C4, H1: what cannot be opened later would be taken for broken; the limit is raised where that is allowed."""
    monkeypatch.setattr(resource, "getrlimit", files.get)
    monkeypatch.setattr(resource, "setrlimit", files.set)
    assert run(["config", "show"]) == code
    told = capsys.readouterr().err
    assert ("may open 12 files at once" in told and "ulimit -n" in told) == bool(code)
    assert files.now[0] == soft


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_files_that_run_out_are_told_in_a_sentence(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """C4: wherever that happens."""

    def short(*_: object, **__: object) -> None:
        raise OSError(number, "Too many open files", "/proc/x")

    monkeypatch.setattr(cli, "main", short)
    assert run(["status", "x"]) == 1
    assert capsys.readouterr().err.startswith("nephila: no more files may be open at once")
    with pytest.raises(OSError, match="Too many"):
        run(["status", "x"], debugging=True)


def test_the_listed_commands_are_what_they_say_they_are() -> None:
    """C4: descriptions are written down beside the names, and must not drift from the commands."""
    with cli.make_context("nephila", ["--help"], resilient_parsing=True) as ctx:
        for name, entry in COMMANDS.items():
            command = cli.get_command(ctx, name)
            assert command is not None
            assert command.name == name
            assert command.short_help == entry.help
        assert cli.get_command(ctx, "nothing") is None
        assert [item.value for item in cli.shell_complete(ctx, "c")] == ["crawl", "check", "config", "completion"]
        assert "--version" in [item.value for item in cli.shell_complete(ctx, "--v")]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_for_people_and_fits_a_terminal(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """C4: no mark of the help's own making is shown, 80 columns are enough, and no sentence breaks off."""
    assert run([name, "--help"]) == 0
    shown = capfd.readouterr().out
    assert "\\b" not in shown
    assert not re.search(r"INTEGER RANGE|[(][A-Z][0-9]+[)]", shown)
    assert max(map(len, shown.splitlines())) <= 80
    assert not [line for line in shown.partition("\nCommands:\n")[2].splitlines() if line.endswith("...")]


def test_python_dash_m_is_the_command() -> None:
    """C4: `python -m nephila`."""
    done = subprocess.run([sys.executable, "-m", "nephila", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"nephila {version()}\n")


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["crwal"], "'crawl'"),
        (["example.org"], "nephila crawl example.org"),
        (["crawl", "x", "--max-pagse", "3"], "'--max-pages'"),
        (["pages", "d", "--limti", "3"], "'--limit'"),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_the_nearest_name(
    capsys: pytest.CaptureFixture[str], arguments: list[str], suggestion: str
) -> None:
    """C4: unknown commands and options, exit code 2."""
    assert run(arguments) == 2
    assert suggestion in capsys.readouterr().err


def test_our_own_errors_are_a_sentence_and_a_hint(
    node: FakeNode, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """C4: never a traceback; the error's own exit code."""
    node.raises = StorageError("The disk is \x1b[31mfull", "Make room.")
    assert run(["status", str(tmp_path)], node.backend()) == 1
    assert capsys.readouterr().err == "nephila: The disk is \N{REPLACEMENT CHARACTER}[31mfull.\n  Make room.\n"
    assert run(["crawl", "a.org", "--set", "x"], node.backend()) == 2


def test_debugging_shows_the_traceback(node: FakeNode, tmp_path: Path) -> None:
    """C4: NEPHILA_DEBUG=1."""
    node.raises = StorageError("The disk is full.")
    with pytest.raises(StorageError):
        run(["status", str(tmp_path)], node.backend(), debugging=True)


def test_an_interrupt_is_130(node: FakeNode, tmp_path: Path) -> None:
    """C4: Ctrl-C outside a crawl."""
    node.raises = KeyboardInterrupt()
    assert run(["status", str(tmp_path)], node.backend()) == 130


def test_an_unexpected_fault_is_told_in_a_sentence_with_its_traceback_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """C4: a bug of ours is one line, and can be sent in."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    error = TypeError("oh \x1b[0m")
    crash.report_crash(TypeError, error, None)
    said = capsys.readouterr().err
    (file,) = tmp_path.iterdir()
    assert str(file) in said
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert "TypeError: oh" in file.read_text()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    crash.report_crash(TypeError, error, None)
    assert "could not be written" in capsys.readouterr().err


def test_a_fault_ends_the_process_with_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    """C4: through the real entry."""
    done = python(
        f"import sys, tempfile\ntempfile.tempdir = {str(tmp_path)!r}\n"
        "from nephila.cli import main as entry\n"
        "entry.cli.main = lambda *a, **k: 1 // 0\n"
        "entry.main([])"
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "an unexpected fault (ZeroDivisionError" in done.stderr


def test_a_reader_who_has_gone_is_no_fault(tmp_path: Path) -> None:
    """C4: `nephila config show | head -0` ends quietly."""
    code = "import os, sys\nos.close(0)\nr, w = os.pipe()\nos.dup2(w, 1)\nos.close(r)\nos.close(w)\n"
    done = python(code + "from nephila.cli.main import main\nmain(['config', 'show'])", stdout=subprocess.DEVNULL)
    assert done.stderr == ""
    assert done.returncode == 1


def test_what_the_locale_cannot_write_is_spelled_out() -> None:
    """C4: titles and URLs have any characters; an output in Latin-1 has the numbers of those that it lacks."""
    code = "import sys\nsys.stdout.reconfigure(encoding='latin-1')\nfrom nephila.cli.main import main\n"
    done = python(code + "main(['config', 'show', '--changed', '--set', 'scope.include=世界'])")
    assert done.stderr == ""
    assert done.returncode == 0
    assert r'include = ["\u4e16\u754c"]' in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [["pages", "d", "--like", "\udce9"], ["block", "d", "a.org", "--reason", "\udce9"], ["status", "\udce9"]],
)
def test_an_argument_that_is_no_text_is_refused(
    node: FakeNode, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """C4: before anything is done."""
    assert run(arguments, node.backend()) == 2
    assert "\N{REPLACEMENT CHARACTER} is not text in the encoding utf-8" in capsys.readouterr().err
    assert not node.asked


def test_a_file_may_be_called_anything(node: FakeNode, tmp_path: Path) -> None:
    """C4, S1: names of files are bytes."""
    name = f"{tmp_path}/list\udce9"
    Path(name).write_text("a.org\n")
    assert run(["crawl", "--seeds", name, "--out", f"{tmp_path}/c"], node.backend()) == 0
    assert [seed.text for seed in node.ran[0].seeds] == ["a.org"]


def test_text_of_strangers_is_made_harmless() -> None:
    """K4, C4: controls, line ends, and marks that turn the direction of writing."""
    assert printable("a\x1b[2J\nb\u202ec\x9bd\ud800") == "a\ufffd[2J\ufffdb\ufffdc\ufffdd\ufffd"
    assert printable("a\u061cb") == "a\ufffdb"
    assert printable("Grüße, 世界 \N{SNOWMAN}") == "Grüße, 世界 \N{SNOWMAN}"


def test_nouns_become_json() -> None:
    """C4: bytes, tuples, infinity, paths."""
    assert plain({1: (b"\xff", float("inf"), Path("x"), None, True, {"y": 1.5})}) == {
        "1": ["ff", "inf", "x", None, True, {"y": 1.5}]
    }


def test_the_version_is_the_projects(tmp_path: Path) -> None:
    """C4: of the checkout, else of the installation."""
    assert f'version = "{version()}"' in (Path(__file__).parents[3] / "pyproject.toml").read_text()


def test_ctrl_c_while_the_program_is_imported_shows_no_traceback() -> None:
    """C4: nothing is begun yet; it ends by the signal. One that was told to ignore it goes on ignoring it."""
    code = (
        "import os, signal, sys\n"
        "class Importing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'nephila.cli.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Importing())\n"
        "from nephila.__main__ import start\n"
        "sys.argv = ['nephila', '--version']\n"
    )
    done = python(code + "start()", stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
    done = python(code + "signal.signal(signal.SIGINT, signal.SIG_IGN)\nstart()", stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("flag", "value"), [("--older-than", "soon"), ("--captures", "-1")])
def test_a_bad_value_of_retain_names_the_flag_that_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, value: str
) -> None:
    """C4: and not the setting behind it."""
    write_stored(tmp_path, Settings())
    assert run(["retain", str(tmp_path), flag, value]) == 2
    assert capsys.readouterr().err.startswith(f"nephila: {flag} must be ")


def test_a_second_ctrl_c_while_python_ends_has_no_traceback() -> None:
    """C4: what was registered to be done at the end may be cut off, and says nothing."""
    done = python(
        "import atexit, os, signal\nfrom nephila.cli.main import main\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\nmain(['--version'])"
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
