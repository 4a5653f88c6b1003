"""Which Python makes `.venv`: the newest, unless another one is clearly faster. Standard library only.

The script `nephila` starts the set-up with the first suitable Python that it finds. Before an environment is made, all
that can be found are looked at: whatever has a usual name in a directory of PATH (each directory: shims hide what comes
after them) or where systems put it, and the versions of pyenv. Each runs `pace` several times, in turns, so that a
noisy moment hits all of them; the least counts. Later starts find `.venv`, and nothing is looked for or timed.

What must stay true:

- Looking never fails a set-up: what does not run, does not answer in time or says something else is passed over, and
  with nothing left the interpreter that asks is the one.
- Only what Nephila is made for is chosen: released versions of CPython with all that it needs, up to `NEWEST`. What can
  build the extension goes before what cannot, where there is a compiler: that is worth more than any build of Python.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import native
from pace import OLDEST

NEWEST = (3, 14)
"""The newest that the requirements are locked for."""
NAMES = ("python3.14", "python3.13", "python3.12", "python3.11", "python3", "python")
SYSTEM = ("/usr/local/bin", "/usr/bin")
ROUNDS = 3
CLEARLY = 1.15
"""How many times the CPU of the fastest the newest may take: less is noise, or not worth an older version."""
PATIENCE_S = 5.0
PACE = Path(__file__).resolve().parent / "pace.py"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What one Python has said of itself; `pace.describe` is where the fields come from."""

    path: str
    version: tuple[int, int, int, str, int]
    ordinary: bool
    lacks: tuple[str, ...]
    headers: bool
    cpu_s: float

    @property
    def fits(self) -> bool:
        """Whether environments can be made with it in which everything is known to work."""
        return self.ordinary and not self.lacks and self.version[:2] <= NEWEST and self.version[3] == "final"

    @property
    def number(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.version[:3]))


def fastest(own: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The interpreter to make `.venv` with, and why if it is not the newest: one line, or nothing."""
    paths = dict.fromkeys([own, *candidates(environment)])
    found = timed(paths) if len(paths) > 1 else []
    return choose(found, can_compile=next(native.compilers(), None) is not None) or (own, "")


def candidates(environment: Mapping[str, str], system: Iterable[str] = SYSTEM) -> Iterator[str]:
    """Whatever may be a Python, without links; not what is too old by the name of its file.

    The shims of pyenv are passed over: they lead to versions in the directory beside them, and not to all of those.
    """
    folders = [Path(folder) for folder in (*environment.get("PATH", "").split(os.pathsep), *system) if folder]
    shims = {folder for folder in folders if folder.name == "shims" and (folder.parent / "versions").is_dir()}
    home = Path(environment.get("PYENV_ROOT") or Path(environment.get("HOME") or "/", ".pyenv"))
    named = [folder / name for folder in folders if folder not in shims for name in NAMES]
    for root in dict.fromkeys([home, *(folder.parent for folder in folders if folder in shims)]):
        named += sorted(root.glob("versions/*/bin/python"))
    for python in named:
        path = os.path.realpath(python)
        version = re.search(r"python(\d+)\.(\d+)$", path)
        if os.access(path, os.X_OK) and not (version and tuple(map(int, version.groups())) < OLDEST):
            yield path


def timed(paths: Iterable[str], rounds: int = ROUNDS) -> list[Interpreter]:
    """Those that run, once each, with the least of what several rounds in turns have taken."""
    least: dict[str, Interpreter] = {}
    asked = list(paths)
    for _ in range(rounds):
        answers = [answer for path in asked if (answer := ask(path)) is not None]
        for answer in answers:
            before = least.get(answer.path, answer)
            least[answer.path] = replace(answer, cpu_s=min(answer.cpu_s, before.cpu_s))
        asked = [path for path, interpreter in least.items() if interpreter.fits]
        if len(asked) == 1:
            break
    return list(least.values())


def ask(path: str) -> Interpreter | None:
    """What it says of itself, or nothing: too old, broken, hanging or no Python at all."""
    try:
        said = subprocess.run(  # noqa: S603 - no shell
            [path, "-I", "-S", str(PACE)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=True,
        ).stdout
        fields = json.loads(said)
        return Interpreter(**{**fields, "version": tuple(fields["version"]), "lacks": tuple(fields["lacks"])})
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, KeyError):
        return None


def choose(found: Iterable[Interpreter], *, can_compile: bool) -> tuple[str, str] | None:
    """The newest of those as good as the best, and the reason if there is a newer one; nothing if none fits."""
    fitting = sorted((one for one in found if one.fits), key=lambda one: one.version, reverse=True)
    if not fitting:
        return None
    newest = fitting[0]
    building = [one for one in fitting if one.headers] if can_compile else []
    able = building or fitting
    least = min(one.cpu_s for one in able)
    chosen = next(one for one in able if one.cpu_s <= least * CLEARLY)
    if chosen.version == newest.version:
        return chosen.path, ""
    if newest not in able:
        reason = "comes without its headers, which the extension is built with"
    else:
        reason = f"takes {newest.cpu_s / chosen.cpu_s:.1f} times the time here"
    return chosen.path, f"Taking Python {chosen.number} ({chosen.path}): the newest, {newest.number}, {reason}."
