"""`nephila config`: what is in force and where it came from, and the reference of all settings."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nephila.config import PASSWORD, Configured, declarations, load, read_stored, value_of
from nephila.config.reference import reference
from nephila.config.toml import render
from nephila.model.errors import CrawlDirectoryError

from .backend import backend_of
from .looking import json_option
from .output import print_json


@click.group("config", short_help="Show the settings and where each came from.")
def config() -> None:
    """Show the settings and where each came from."""


@config.command("show", short_help="Print every setting in force, and where it came from.")
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path), default=None
)
@click.option("--config", "file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="A TOML file.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Any setting.  (repeatable)")
@click.option("--changed", is_flag=True, help="Only what differs from the defaults.")
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    directory: Path | None,
    *,
    file: Path | None,
    assignments: tuple[str, ...],
    changed: bool,
    as_json: bool,
) -> None:
    """Print every setting in force, as TOML, with where each value came from.

    With DIR, for the crawl in that directory. The output can be saved and given to --config. Passwords in URLs are
    shown as ***; put them back there.
    """
    stored = None
    if directory is not None:
        stored = read_stored(directory)
        if stored is None:
            raise CrawlDirectoryError(
                f"There is no crawl in {directory}.", "A crawl is made by nephila crawl --out DIR"
            )
    configured = load(stored=stored, file=file, environ=backend_of(ctx).environ, assignments=assignments)
    if as_json:
        print_json(_document(configured, changed=changed))
    else:
        click.echo(shown(configured, changed=changed), nl=False)


@config.command("reference", short_help="Print the reference of all settings, in Markdown.")
def print_reference() -> None:
    """Print the reference of all settings, in Markdown."""
    click.echo(reference(), nl=False)


def shown(configured: Configured, *, changed: bool) -> str:
    """The settings as TOML, each with its source in a comment."""
    return _without_passwords(
        render(
            configured.settings,
            wanted=lambda one: not changed or value_of(configured.settings, one) != one.default,
            above=lambda _one: "",
            beside=lambda one: configured.sources[one.key],
        )
    )


def _without_passwords(text: str) -> str:
    """TOML, or JSON: what is shown to people ends up in tickets and on screens."""
    return PASSWORD.sub(r"\1***@", text)


def _told(value: object) -> object:
    """A value as it is shown."""
    if isinstance(value, tuple):
        return tuple(map(_told, value))
    return json.loads(_without_passwords(json.dumps(value, ensure_ascii=False))) if isinstance(value, str) else value


def _document(configured: Configured, *, changed: bool) -> dict[str, object]:
    return {
        key: {
            "value": _told(value_of(configured.settings, one)),
            "source": configured.sources[key],
            "default": one.default,
        }
        for key, one in declarations().items()
        if not changed or value_of(configured.settings, one) != one.default
    }
