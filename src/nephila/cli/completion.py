"""`nephila completion`: the script that teaches a shell our commands and flags."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_NEPHILA_COMPLETE"
"""The variable by which the script asks us for completions: click derives it from the program's name."""


HELP = """Print the completion script for SHELL.

\b
bash: eval "$(nephila completion bash)"      in ~/.bashrc
zsh:  eval "$(nephila completion zsh)"       in ~/.zshrc
fish: nephila completion fish | source       in ~/.config/fish/config.fish
"""


@click.command("completion", help=HELP, short_help="Print the shell completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """As `HELP` says."""
    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"{shell} is not supported.")
    click.echo(maker(ctx.find_root().command, {}, "nephila", VARIABLE).source())
