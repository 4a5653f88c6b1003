"""Compiles the optional extension `nephila_native` from `native/*.c`. Standard library only.

Nephila runs without it: every function of the extension has a twin in Python. With it a page costs a fraction. So it is
built where a C compiler and Python's headers are found, and where they are not, or where the compiler refuses, that is
said in one line and nothing fails.

The compiler is the one that CPython names (`sysconfig`), or $CC, or cc, gcc or clang, whichever is found first.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

NAME = "nephila_native"
FLAGS = ("-O3", "-fPIC", "-shared", "-std=c11", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNDEBUG")


class NotBuiltError(Exception):
    """There is no extension, for the reason that it says."""


def sources(root: Path) -> list[Path]:
    """What the extension is made of, headers included, in one order."""
    return sorted((root / "native").glob("*.[ch]"))


def file_name() -> str:
    """What the interpreter that runs this looks for."""
    return f"{NAME}{sysconfig.get_config_var('EXT_SUFFIX')}"


def build(root: Path, directory: Path) -> Path:
    """Compile into a directory; what was there before is replaced in one step. Raises `NotBuiltError`."""
    include = sysconfig.get_path("include")
    if not (Path(include) / "Python.h").is_file():
        raise NotBuiltError("the headers of Python are not installed (Debian, Ubuntu: apt install python3-dev)")
    compiler = next(compilers(), None)
    if compiler is None:
        raise NotBuiltError("there is no C compiler (Debian, Ubuntu: apt install gcc)")
    target = directory / file_name()
    draft = target.with_suffix(".draft")
    units = [str(path) for path in sources(root) if path.suffix == ".c"]
    command = [*compiler, *FLAGS, "-I", include, *units, "-lm", "-o", str(draft)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - no shell
    if done.returncode != 0:
        draft.unlink(missing_ok=True)
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise NotBuiltError(f"the C compiler refused: {complaint[:300]}")
    draft.replace(target)
    return target


def compilers() -> Iterator[list[str]]:
    """Compilers that are there, the most fitting first."""
    named = (os.environ.get("CC"), (sysconfig.get_config_var("CC") or "").partition(" ")[0], "cc", "gcc", "clang")
    for name in named:
        words = shlex.split(name or "")
        if words and shutil.which(words[0]):
            yield words


if __name__ == "__main__":
    try:
        print(build(Path(__file__).resolve().parent.parent, Path(sys.argv[1])))
    except NotBuiltError as error:
        sys.exit(f"{NAME} was not built: {error}")
