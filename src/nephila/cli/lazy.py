"""A group of commands that are imported when they are called.

Their one-line descriptions are written down beside their names, so that listing them imports nothing; a test holds them
equal to what the commands say of themselves.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from .naming import command_name

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives and what it does."""

    module: str
    attribute: str
    help: str


class LazyGroup(click.Group):
    """Commands by name, loaded on demand; an unknown name is answered with the nearest one."""

    def __init__(self, name: str, entries: Mapping[str, Entry], *, help: str, params: list[click.Parameter]) -> None:  # noqa: A002 - click's own name for it
        super().__init__(name, help=help, params=params, callback=lambda **_given: None)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names in the order in which they are meant to be read."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The command itself, imported now."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry.module), entry.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.{entry.attribute} is no command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with."""
        name = args[0]
        if name not in self.entries and not name.startswith("-") and not ctx.resilient_parsing:
            import difflib  # noqa: PLC0415 - start-up

            near = difflib.get_close_matches(name, self.entries, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            if "." in name or "/" in name:
                hint = f" To crawl it: {command_name()} crawl {name}"
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names without importing the commands."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - start-up

        names = [CompletionItem(name, help=entry.help) for name, entry in self.entries.items()]
        options = click.Command.shell_complete(self, ctx, incomplete) if incomplete.startswith("-") else []
        return [item for item in names if item.value.startswith(incomplete)] + options
