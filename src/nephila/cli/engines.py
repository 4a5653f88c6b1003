"""`nephila check`: tests the engines of a fleet before a worker depends on them, and says what to change (N2, N4)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.config import load

from .backend import backend_of
from .looking import json_option
from .output import print_json, printable
from .worker import config_option, set_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephila.node.fleet.findings import Finding

MARKS = {"ok": "ok  ", "warning": "WARN", "failed": "FAIL"}


@click.command("check", short_help="Test the engines of a fleet: connections, versions, settings.")
@config_option
@click.option("--read-only", is_flag=True, help="Write nothing, so rights to write are not tested.")
@set_option
@json_option
@click.pass_context
def check(ctx: click.Context, *, file: Path, read_only: bool, assignments: tuple[str, ...], as_json: bool) -> None:
    """Test every engine that FILE names.

    Can it be reached, is it new enough, do we have the rights we need, is it set up so that nothing gets lost? Each
    answer is one line and says what to change where something is wrong; the exit code is then 1.
    """
    environ = backend_of(ctx).environ
    configured = load(file=file, environ=environ, assignments=assignments)
    from nephila.node.fleet.checking import check_engines  # noqa: PLC0415 - start-up

    findings = check_engines(configured.settings, environ, read_only=read_only)
    failed = [one for one in findings if one.verdict == "failed"]
    if as_json:
        print_json({"passed": not failed, "findings": findings})
    else:
        for one in findings:
            click.echo(_line(one))
        click.echo(sum_of(findings))
    ctx.exit(1 if failed else 0)


def _line(one: Finding) -> str:
    text = f"{MARKS[one.verdict]} {one.engine:<9} {one.subject}: {one.text}"
    return printable(text + (f" -> {one.advice}" if one.advice else ""))


def sum_of(findings: Sequence[Finding]) -> str:
    """The last line: how many of them want something."""
    verdicts = Counter(one.verdict.value for one in findings)
    if len(findings) == verdicts["ok"]:
        return "All is well."
    fine = f"{verdicts['ok']} of {len(findings)} are well"
    if not verdicts["failed"]:
        return f"{fine}; workers can do their work, see WARN."
    return f"{fine}; workers cannot do their work before what says FAIL is mended."
