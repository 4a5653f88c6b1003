"""Makes `.venv` at the project's root, once, and then becomes the program. Standard library only.

Why it exists: a fresh checkout must run with `./nephila ...` and nothing but Python. The script `nephila` finds an
interpreter and starts this file; once everything is set up it does not come here any more. The environment is made with
the newest interpreter on the machine, or one that is clearly faster (`interpreters`); NEPHILA_PYTHON names another.

How it works: an environment is built in layers, `run` (what the crawler imports), `render` (what drives browsers, for
`./nephila setup browser`), `parquet` (what writes it, for `./nephila setup parquet`) and `test` (the tools of
`./nephila test`, and of the benches that start servers), each from locked requirements whose every file is checked
against its hash. A layer is ready when its stamp is there and says the same as the checkout: its path, then its
requirements (and the extension's sources), word for word.

What must stay true:

- Stamps are removed before anything changes and written last, so what was cut short is begun anew.
- One set-up at a time: a lock inside `.venv`, which pip inherits, so that even a pip whose parent was killed is waited
  for. Ready environments are used without the lock, without the network and without write access.
- The package itself is not installed but put on the path, and compiled: an edited file counts at once. The optional
  extension is built where there is a compiler (tools/native.py); its sources are part of the stamp.
- A failure is one sentence with what to do, and the log's name; pip's own settings (PIP_*, pip.conf) are respected.
"""

from __future__ import annotations

import signal

HEEDED = signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""Whether Ctrl-C means us; else whoever started this ignores it."""
if __name__ == "__main__" and HEEDED:  # until there is something to put in order, it ends this without a word
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import contextlib
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import interpreters
import native
from setup_failures import SetupError, explain_os_error, explain_output, venv_missing

LAYERS = {
    "run": ("run.txt",),
    "render": ("render.txt",),
    "parquet": ("parquet.txt",),
    "test": ("build.txt", "test.txt"),
}
"""Requirement files of each layer, in the order in which they are installed."""

PROGRESS = {
    "run": "Setting up .venv (once, about 20 s) ...",
    "render": "Adding what drives a browser to .venv (once, about 10 s) ...",
    "parquet": "Adding what writes Parquet to .venv (once, about 10 s) ...",
    "test": "Adding the test tools to .venv (once, about 30 s) ...",
}

SET_UP = {"browser": "render", "parquet": "parquet"}
"""The layers that `./nephila setup NAME` adds."""

WITH_SERVERS = frozenset({"catalogue", "fleet", "streams"})
"""Benches that start servers, which come with the test tools."""

LOG_TAIL_CHARACTERS = 100_000
"""How much of pip's output is kept in memory to read the reason of a failure from."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The `.venv` of one checkout."""

    root: Path

    @property
    def directory(self) -> Path:
        """Where it lies."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.directory / "bin" / "python"

    @property
    def log(self) -> Path:
        """What venv and pip said, last set-up only."""
        return self.directory / "setup.log"

    @property
    def maker(self) -> Path:
        """Names the interpreter that it was made with."""
        return self.directory / "nephila-python"

    def requirements(self, layer: str) -> list[Path]:
        """The locked requirement files of a layer."""
        return [self.root / "requirements" / name for name in LAYERS[layer]]

    def stamp(self, layer: str) -> Path:
        """Exists when the layer was installed to its end."""
        return self.directory / f"nephila-{layer}.stamp"

    def expected_stamp(self, layer: str) -> bytes:
        """What the stamp says when the layer fits the checkout; the script `nephila` compares the same bytes."""
        parts = self.requirements(layer) + (native.sources(self.root) if layer == "run" else [])
        return os.fsencode(self.root) + b"\n" + b"".join(path.read_bytes() for path in parts)

    def is_ready(self, layer: str) -> bool:
        """Whether nothing needs to be done for that layer."""
        return _read(self.stamp(layer)) == self.expected_stamp(layer) and os.access(self.python, os.X_OK)

    def is_usable(self, wanted_python: str | None) -> bool:
        """Whether it was once finished, at this path and by the wanted interpreter: then it can be updated."""
        return (
            _read(self.stamp("run")).startswith(os.fsencode(self.root) + b"\n")
            and os.access(self.python, os.X_OK)
            and wanted_python in (None, os.fsdecode(_read(self.maker)))
        )


def prepare(environment: Environment, layers: Sequence[str], wanted_python: str | None) -> None:
    """Make the layers ready. Raises `SetupError`; `wanted_python` is None where any interpreter will do."""

    def done() -> bool:
        return environment.is_usable(wanted_python) and all(map(environment.is_ready, layers))

    if done():
        return
    try:
        with locked(environment.directory) as lock:
            if not done():
                set_up(environment, layers, wanted_python, lock)
    except OSError as error:
        raise explain_os_error(error, environment.directory) from error


def set_up(environment: Environment, layers: Sequence[str], wanted_python: str | None, lock: int) -> None:
    """Do what `prepare` found to be needed, under the lock."""
    fresh = not environment.is_usable(wanted_python)
    if fresh:
        clear(environment.directory)
    python = wanted_python or (chosen_python() if fresh else base_python())
    missing = [layer for layer in layers if not environment.is_ready(layer)]
    stamps = {path: path.read_bytes() for path in map(environment.stamp, LAYERS) if path.exists()}
    for path in stamps:
        path.unlink()
    environment.log.write_bytes(b"")
    try:
        for layer in missing:
            with progress(PROGRESS[layer]):
                if layer == "run" and fresh:
                    create(environment, python, lock)
                told = make(environment, layer, lock)
            say(told)
            stamps[environment.stamp(layer)] = environment.expected_stamp(layer)
    except SetupError as error:
        if error.untouched:
            write_stamps(stamps)
        raise
    write_stamps(stamps)


def make(environment: Environment, layer: str, lock: int) -> str:
    """Install a layer; with the crawler itself all that can be compiled is. Returns what people should know of that."""
    if layer == "run":
        put_on_path(environment)
    for requirements in environment.requirements(layer):
        install(pip_command(environment), requirements, environment, lock)
    if layer != "run":
        return ""
    compile_package(environment)
    return build_native(environment)


def write_stamps(stamps: dict[Path, bytes]) -> None:
    """Say that layers are complete: the last act of every set-up."""
    for path, content in stamps.items():
        draft = path.with_suffix(".draft")
        draft.write_bytes(content)
        draft.replace(path)


def clear(directory: Path) -> None:
    """Remove everything but the lock, which this process holds."""
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != ".lock":
            entry.unlink()


def base_python() -> str:
    """The interpreter under this process, without links: a link may point to another version tomorrow."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def chosen_python() -> str:
    """The interpreter that suits best; if that is not the newest, the reason is told."""
    python, reason = interpreters.fastest(base_python(), os.environ)
    if reason:
        say(f"{reason}\n")
    return python


def pip_command(environment: Environment) -> list[str]:
    """How to call pip for the environment: its own, or the base interpreter's where it was made without one."""
    if any(environment.directory.glob("lib/python*/site-packages/pip")):
        return [str(environment.python), "-I", "-m", "pip"]
    return [base_python(), "-I", "-m", "pip", "--python", str(environment.python)]


def create(environment: Environment, python: str, lock: int) -> None:
    """Make the empty environment. Debian has ensurepip in a package of its own: without it the system's pip will do."""
    command = [python, "-I", "-m", "venv"]
    if python == base_python() and (find_spec("venv") is None or find_spec("ensurepip") is None):
        if find_spec("venv") is None or find_spec("pip") is None:
            raise venv_missing(base_python())
        command.append("--without-pip")
    run_logged([*command, str(environment.directory)], environment, lock)
    environment.maker.write_bytes(os.fsencode(python))


def install(pip: Sequence[str], requirements: Path, environment: Environment, lock: int) -> None:
    """Install one locked file. Builds, where any are allowed by the file, use what is already installed."""
    options = ["--require-hashes", "--no-build-isolation", "--use-pep517", "--progress-bar", "off"]
    command = [*pip, "--disable-pip-version-check", "--no-input", "install", *options, "-r", str(requirements)]
    run_logged(command, environment, lock)


def put_on_path(environment: Environment) -> None:
    """Let the environment's interpreter find the checkout's package, and give it a `nephila` command."""
    for packages in environment.directory.glob("lib/python*/site-packages"):
        (packages / "nephila.pth").write_text(f"{environment.root / 'src'}\n", encoding="utf-8")
    script = environment.directory / "bin" / "nephila"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(environment.python))} -P -m nephila "$@"\n', encoding="utf-8")
    script.chmod(0o755)


def compile_package(environment: Environment) -> None:
    """Compile what is imported, once for all starts.

    Where Python may not write that down (PYTHONDONTWRITEBYTECODE, as in many containers, or a checkout of somebody
    else's) every start would take half as long again.
    """
    command = [str(environment.python), "-I", "-m", "compileall", "-q", str(environment.root / "src")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    with environment.log.open("a", encoding="utf-8") as log:
        log.write(done.stdout + done.stderr)


def build_native(environment: Environment) -> str:
    """Compile the optional extension; without it everything works, slower, and a line to be told says so."""
    if not native.sources(environment.root):
        return ""
    for packages in environment.directory.glob("lib/python*/site-packages"):
        command = [str(environment.python), "-I", str(environment.root / "tools" / "native.py"), str(packages)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
        with environment.log.open("a", encoding="utf-8") as log:
            log.write(done.stdout + done.stderr)
        if done.returncode != 0:
            reason = done.stderr.strip().rpartition("\n")[2]
            return f"{reason}. Nephila works without it, slower; to have it, mend that and delete .venv.\n"
    return ""


def run_logged(command: Sequence[str], environment: Environment, lock: int) -> None:
    """Run a step with its output in the log. Raises `SetupError` with the reason when it fails."""
    variables = {**os.environ, "PIP_USER": "0"}  # a user's `user = true` cannot work inside an environment
    tail = ""
    with (
        subprocess.Popen(  # noqa: S603 - a list of our own making, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=variables,
            pass_fds=(lock,),
            process_group=0,
            text=True,
            errors="replace",
        ) as process,
        environment.log.open("a", encoding="utf-8") as log,
    ):
        try:
            for line in process.stdout or ():
                tail = (tail + line)[-LOG_TAIL_CHARACTERS:]
                with contextlib.suppress(OSError):  # a full disk: the reason is in `tail`
                    log.write(line)
                    log.flush()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)  # venv has children of its own; the end of output is the end of all
            process.communicate()
            raise
    if process.returncode != 0:
        raise explain_output(tail, environment.directory, environment.log)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[int]:
    """Hold the lock of the environment; yields its descriptor, for child processes to hold it too."""
    while True:
        directory.mkdir(exist_ok=True)
        path = directory / ".lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("Waiting for another start that is setting up .venv ...\n")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    yield descriptor
                    return
            # Somebody removed `.venv` while we waited: the lock we hold is nobody's.
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """One line that says what takes so long, and how long it took. On standard error: output stays the program's."""
    started = time.monotonic()
    say(text)
    try:
        yield
    except BaseException:
        say("\n")
        raise
    say(f" done in {time.monotonic() - started:.0f} s\n")


def say(text: str) -> None:
    """Tell people, even when nobody listens."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _read(path: Path) -> bytes:
    """A file's content, empty when there is none."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def layers_for(arguments: Sequence[str]) -> list[str]:
    """What a command needs; its help needs nothing more."""
    if not {"-h", "--help"}.isdisjoint(arguments):
        return ["run"]
    match arguments:
        case ["test", *_]:
            return ["run", "test"]
        case ["bench", name, *_] if name in WITH_SERVERS:
            return ["run", "test"]
        case ["setup", name, *_] if name in SET_UP:
            return ["run", SET_UP[name]]
    return ["run"]


def main(arguments: list[str]) -> NoReturn:
    """Prepare, then become the program."""
    environment = Environment(Path(__file__).resolve().parent.parent)
    testing = arguments[:1] == ["test"]
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        if HEEDED:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        prepare(
            environment,
            layers=layers_for(arguments),
            wanted_python=base_python() if os.environ.get("NEPHILA_PYTHON") else None,
        )
    except SetupError as error:
        sys.exit(f"nephila: {error}")
    except KeyboardInterrupt:
        say("nephila: interrupted; the next start begins the set-up anew.\n")
        sys.exit(130)
    program = [str(environment.root / "tools" / "run_tests.py")] if testing else ["-P", "-m", "nephila"]
    command = [str(environment.python), *program, *arguments[testing:]]
    os.execv(command[0], command)  # noqa: S606 - no shell on purpose: signals reach the program


if __name__ == "__main__":
    main(sys.argv[1:])
