"""`nephila bench NAME`: what things cost here, measured; for whoever has the checkout."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
from pathlib import Path

import click

import nephila
from nephila.model.errors import UsageError
from nephila.native import AVAILABLE

ROOT = Path(nephila.__file__).parents[2]
HELP = frozenset({"-h", "--help"})

NAMES = (
    "api",
    "audit",
    "catalogue",
    "compare",
    "fleet",
    "frontier",
    "pages",
    "polite",
    "sentence",
    "sitemaps",
    "slo",
    "streams",
    "tls",
    "versions",
)
"""Benches that take `--json` and `--quick`; what `compare` needs beside nephila it installs for itself."""


@click.command(
    "bench",
    short_help="Run a benchmark on this machine (in a checkout).",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},  # they are the bench's own
)
@click.argument("name", required=False, default="")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def bench(ctx: click.Context, name: str, arguments: tuple[str, ...]) -> None:
    """Run the bench NAME; without a name, list them.

    Every bench takes --json for one JSON object and --quick to end within 45 seconds; `nephila bench NAME --help` tells
    the rest.
    """
    if not name:
        for one in NAMES:
            click.echo(f"{one:10} {_summary(_path(ROOT, one))}")
        return
    ctx.exit(run_bench(ROOT, name, arguments))


def run_bench(root: Path, name: str, arguments: tuple[str, ...]) -> int:
    """Run one bench of a checkout; its exit code."""
    path = _path(root, name)
    try:
        code = subprocess.run([sys.executable, str(path), *arguments], cwd=root, check=False).returncode  # noqa: S603 - our own file
    except KeyboardInterrupt:
        return 130
    if code == 0 and not HELP.intersection(arguments):
        click.echo(f"Measured with {runtime()}.", err=True)
    return code


def runtime() -> str:
    """What figures depend on besides the machine: builds of Python differ by half, and the extension by more."""
    extension = "with the extension" if AVAILABLE else "without the extension"
    return f"Python {platform.python_version()} ({os.path.realpath(sys.executable)}), {extension}"


def _path(root: Path, name: str) -> Path:
    if name not in NAMES:
        raise UsageError(f"There is no bench {name!r}.", f"There are: {', '.join(NAMES)}.")
    path = root / "bench" / f"{name}.py"
    if not path.is_file():
        raise UsageError(
            "The benches are not part of the installed package.", "Get the source and run ./nephila bench."
        )
    return path


def _summary(path: Path) -> str:
    """The first sentence of a bench, without its ids."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].partition(": ")[2] or text.partition("\n")[0]
