"""Feeds damaged inputs to the extension, compiled with the address and undefined-behaviour sanitizers.

    tools/fuzz --sanitized --seconds 60
    python tools/fuzz_native.py [SECONDS] [SEED] [PAGES.zip ...]

Every fuzz target that calls functions in C is fed with its own inputs (`tests/corpus`), damaged by chance; the scanner
with pages too, from the archives that are named and from heaps of tags that are made up. Whatever the sanitizers see,
and any property that does not hold, ends the run with a report. Needs gcc or clang with their run-time libraries;
nothing of the environment is changed.
"""

from __future__ import annotations

import importlib
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import native

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
IN_C = ("scan", "page", "links", "url", "bundles", "near", "texts", "head", "answer")
"""Targets that call functions in C."""
PAGE_SHARE = 0.3
"""Of the inputs that are whole pages for the scanner alone."""
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
BITS = [
    b"<", b">", b'"', b"'", b"&", b"&#x", b"&amp", b"<!--", b"-->", b"<script>", b"</script>", b"<a href=", b"</a>",
    b"<svg>", b"</svg>", b"<title>", b"\xff", b"\xe3", b"\x00", b"<![CDATA[", b"]]>", b"</", b"<table>", b"<td>",
    b"<b>", b"</b>", b"<p>", b"<template>", b"<select>", b"=", b"\r", b"<object>", b"<nobr>", b"<form>",
    b"</form>", b"<li>",
    b"<meta http-equiv=refresh content=0;url=", b"<img srcset=", b"\xe6\x97\xa5", b"\xf0\x9f\x98\x80", b"1",
]  # fmt: skip


def damaged(body: bytes, chance: random.Random) -> bytes:
    """A piece of an input with some of its bytes changed."""
    start = chance.randrange(len(body)) if body and chance.random() < 0.4 else 0
    piece = bytearray(body[start : start + chance.randrange(1, 60_000)])
    for _ in range(chance.randrange(60)):
        at = chance.randrange(len(piece) + 1)
        match chance.randrange(4):
            case 0:
                piece[at:at] = chance.choice(BITS)
            case 1:
                del piece[at : at + chance.randrange(1, 30)]
            case 2 if at < len(piece):
                piece[at] = chance.randrange(256)
            case _:
                piece[at:at] = piece[at : at + 40]
    return bytes(piece)


def feed(seconds: float, seed: int, archives: list[str]) -> None:
    """Feed damaged inputs until the time is over; runs under the sanitizers."""
    from nephila.native import native as native_module  # noqa: PLC0415 - as the next one
    from nephila.parse.scan import native_scan  # noqa: PLC0415 - finds the extension that was built for this

    if not Path(str(native_module.__file__)).is_relative_to(tempfile.gettempdir()):
        sys.exit("this is not the extension that was built for it")
    targets: dict[str, Any] = importlib.import_module("fuzzing").TARGETS
    kept = {name: [*targets[name].seeds, *map(Path.read_bytes, (CORPUS / name).iterdir())] for name in IN_C}
    chance = random.Random(seed)  # noqa: S311 - repeatable
    pages: list[bytes] = []
    for path in archives:
        with zipfile.ZipFile(path) as archive:
            pages += filter(None, map(archive.read, archive.namelist()))
    count, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        count += 1
        if chance.random() < PAGE_SHARE:
            heap = b"".join(chance.choices([*BITS, b">", b"word ", b" "], k=300))
            body = damaged(chance.choice([*pages, heap]) if chance.random() < 0.8 else heap, chance)
            native_scan(body, images=chance.random() < 0.5)
        else:
            name = chance.choice(IN_C)
            targets[name].check(damaged(chance.choice(kept[name]), chance)[: targets[name].longest])
    print(f"{count} damaged inputs for {', '.join(IN_C)} and the scanner; the sanitizers saw nothing.")


def run(command: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A command of ours."""
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - no shell


def built(compiler: list[str], directory: str) -> None:
    """Compile the extension with the sanitizers into a directory."""
    units = [str(path) for path in native.sources(ROOT) if path.suffix == ".c"]
    target = str(Path(directory) / native.file_name())
    include = sysconfig.get_path("include")
    if run([*compiler, *native.FLAGS, *SANITIZED, "-I", include, *units, "-lm", "-o", target]).returncode:
        sys.exit("the extension could not be built with the sanitizers")


def main(arguments: list[str]) -> int:
    """Build, then run this file again with what it built."""
    seconds, seed, archives = (*arguments[:1], "20")[0], (*arguments[1:2], "1")[0], arguments[2:]
    compiler = next(native.compilers(), ["cc"])
    with tempfile.TemporaryDirectory() as directory:
        built(compiler, directory)
        libraries = [
            run([*compiler, f"-print-file-name={name}"]).stdout.strip() for name in ("libasan.so", "libubsan.so")
        ]
        environment = os.environ | {
            "LD_PRELOAD": ":".join(libraries),
            "ASAN_OPTIONS": "detect_leaks=0",  # of the interpreter itself
            "PYTHONMALLOC": "malloc",  # each allocation a block of its own, with its edges watched
            "PYTHONPATH": f"{directory}:{ROOT / 'src'}:{ROOT / 'tests' / 'support'}",
            "NEPHILA_NATIVE": "1",
        }
        done = run([sys.executable, __file__, "--feed", seconds, seed, *archives], environment)
        print(done.stdout, end="")
        return done.returncode


if __name__ == "__main__":
    if sys.argv[1:2] == ["--feed"]:
        feed(float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        sys.exit(main(sys.argv[1:]))
