"""`nephila aliases`: URLs that are taken for others, with the evidence, and a way to undo that (D4, T3)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.model.errors import UsageError

from .figures import count, moment
from .looking import fleet_option, json_option, operator_of, place_argument, without_directory
from .output import print_json, printable
from .rows import many, wrapped

if TYPE_CHECKING:
    from nephila.model.alias import AliasRule


@click.command("aliases", short_help="List what was learned of URLs that mean the same, or undo it.")
@place_argument
@click.argument("domain", required=False, default="")
@fleet_option
@click.option("--undo", "undone", metavar="RULE", help="Take a rule back for good, by its id or its pattern.")
@click.option("--redo", "redone", metavar="RULE", help="Let a rule that was taken back be learned again.")
@json_option
@click.pass_context
def aliases(
    ctx: click.Context,
    directory: Path | None,
    *,
    domain: str,
    file: Path | None,
    undone: str | None,
    redone: str | None,
    as_json: bool,
) -> None:
    """List what the crawl in DIR has learned about other spellings of the same page, for one DOMAIN or for all.

    Two things are learned: parameters whose value changes nothing, and hosts that always redirect to the same path of
    another. A link that a rule in force catches is admitted under the other URL.

    A rule is suspended as soon as something speaks against it. --undo takes a rule back for good, also while the crawl
    runs; the URLs it had caught are admitted when they are met again.
    """
    directory, domain = without_directory(directory, domain, file)
    operator = operator_of(ctx, directory, file)
    if domain:
        domain, _ = operator.domain_of(domain)
    if undone is not None and redone is not None:
        raise UsageError("--undo and --redo exclude each other.", "Undo one rule at a time.")
    if undone is not None:
        _tell(operator.undo_alias(undone, domain), "is undone", as_json=as_json)
    elif redone is not None:
        _tell(operator.redo_alias(redone, domain), "may be learned again", as_json=as_json)
    else:
        found = operator.aliases(domain)
        if as_json:
            print_json({"aliases": found, "count": len(found)})
            return
        for line in alias_lines(found, shutil.get_terminal_size().columns):
            click.echo(line)
        if not found:
            click.echo(f"No aliases were learned{f' of {printable(domain)}' if domain else ''}.", err=True)


def _tell(rule: AliasRule, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"rule": rule})
    else:
        click.echo(printable(f"{rule.pattern} on {rule.domain} ({rule.id}) {what}."))


def alias_lines(found: Sequence[AliasRule], width: int) -> Iterator[str]:
    """Each rule with its evidence: what, since when, what speaks for it and against it, what it has caught."""
    for index, rule in enumerate(found):
        if index:
            yield ""
        yield printable(f"{rule.id}  {rule.domain}  {rule.pattern}{f' -> {rule.target}' if rule.target else ''}")
        yield from wrapped("  ", _meaning(rule), width)
        yield f"  {rule.state} since {moment(rule.since)} (UTC), {many(rule.caught, 'URL')} caught so far"
        yield from wrapped("  ", _evidence(rule), width)
        if rule.example[0]:
            yield printable(f"  alike      {rule.example[0]}")
            yield printable(f"             {rule.example[1]}")
        if rule.counter_example[0]:
            yield printable(f"  not alike  {rule.counter_example[0]}")
            yield printable(f"             {rule.counter_example[1]}")


def _meaning(rule: AliasRule) -> str:
    if rule.target:
        return f"{printable(rule.pattern)} redirects everything to the same path of {printable(rule.target)}"
    scope, _, name = rule.pattern.rpartition("?")
    where = "anywhere" if scope == "*" else f"in {printable(scope)}"
    return f"parameter {printable(name)} changes nothing {where}"


def _evidence(rule: AliasRule) -> str:
    hints = f" ({count(rule.hints)} of them the site's own word)" if rule.hints else ""
    return f"{count(rule.agreed)} comparisons for it{hints}, {count(rule.against)} against it"
