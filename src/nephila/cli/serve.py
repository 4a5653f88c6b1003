"""`nephila serve`: the control API on a crawl directory, whether a crawl runs there or not (C1, C2)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.config import Configured, Given, load
from nephila.model.errors import UsageError

from .backend import backend_of
from .looking import fleet_option
from .output import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephila.control.server import Binding

PORT = 8470
HOST = "127.0.0.1"
SERVED = Path("nephila-serve")
"""Where the log of changes is kept that were made to a fleet's crawl."""


@click.command("serve", short_help="Serve the dashboard and the control API of a crawl.")
@click.option(
    "--out",
    "directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The crawl directory; with --config, the folder for the log of changes.",
)
@fleet_option
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Port to serve on; 0 takes a free one.",
)
@click.option(
    "--host",
    default=HOST,
    show_default=True,
    metavar="ADDR",
    help="Address to serve on; other than loopback, it needs a token.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Tokens, one a line: NAME read|write TOKEN.",
)
@click.option("--group", metavar="GROUP", help="With --config: the group, if it has a region of its own.")
@click.pass_context
def serve(
    ctx: click.Context,
    directory: Path | None,
    *,
    file: Path | None,
    port: int,
    host: str,
    token_file: Path | None,
    group: str | None,
) -> None:
    """Serve dashboard and control API of the crawl in DIR until Ctrl-C; a running crawl obeys changes made there.

    With --config they show what all workers of a fleet do, and orders hold for all of them.

    Only this machine may ask, unless there are tokens: in a file, or in the environment as NEPHILA_API_TOKEN (may
    change things) and NEPHILA_API_READ_TOKEN (may look).
    """
    if directory is None and file is None:
        raise UsageError("Name the crawl to serve: --out DIR, or --config FILE of a fleet.")
    if file is None and group is not None:
        raise UsageError("--group means a region of a fleet, and a directory has none.", "Leave it out.")
    environ = backend_of(ctx).environ
    flags = [] if group is None else [Given("fleet.group", group, "--group")]
    configured = load(file=file, environ=environ, flags=flags) if file is not None else None
    asyncio.run(_until_signal(directory or SERVED, configured, binding(host, port, token_file, environ)))


def binding(host: str, port: int, token_file: Path | None, environ: Mapping[str, str]) -> Binding:
    """Where to listen and who may ask; the URL is told on standard error."""
    from nephila.control.access import read_tokens  # noqa: PLC0415 - start-up
    from nephila.control.server import Binding  # noqa: PLC0415 - start-up

    def tell(url: str) -> None:
        click.echo(f"Dashboard: {printable(url)}/   API: {printable(url)}/api/v1", err=True)

    def complain(sentence: str) -> None:
        click.echo(f"Warning: {printable(sentence)}", err=True)

    return Binding(host, port, read_tokens(token_file, environ), tell, complain)


async def _until_signal(directory: Path, configured: Configured | None, where: Binding) -> None:
    from nephila.control.server import serve_directory, serve_until  # noqa: PLC0415 - start-up
    from nephila.node.stopping import stopping_signals  # noqa: PLC0415 - start-up

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    for number in stopping_signals():
        loop.add_signal_handler(number, _end, ended)
    if configured is None:
        await serve_directory(directory, where, ended)
        return
    from nephila.node.fleet.desk import desk_of_fleet  # noqa: PLC0415 - start-up

    await serve_until(desk_of_fleet(configured, directory, where.complain), where, ended)


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)
