"""`nephila test`: the project's own tests, for whoever has the checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

import nephila
from nephila.model.errors import UsageError

ROOT = Path(nephila.__file__).parents[2]


@click.command(
    "test",
    short_help="Run the project's own tests (in a checkout).",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def test(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Run the tests of the checkout that nephila runs from; all arguments are passed on, --help too."""
    ctx.exit(run_tests(ROOT, arguments))


def run_tests(root: Path, arguments: tuple[str, ...]) -> int:
    """Run the checkout's runner; its exit code."""
    runner = root / "tools" / "run_tests.py"
    if not runner.is_file():
        raise UsageError(
            "The tests are not part of the installed package.",
            "Get the source and run ./nephila test there.",
        )
    return subprocess.run([sys.executable, str(runner), *arguments], cwd=root, check=False).returncode  # noqa: S603 - our own file
