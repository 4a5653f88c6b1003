"""`nephila setup`: getting ready what some crawls and exports need and most do not."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys

import click

from nephila.model.errors import NephilaError
from nephila.model.rendering import Rendered, RenderOrder, Wanted, Withheld
from nephila.model.settings import RenderSettings

from .looking import json_option
from .output import print_json

PROOF = b"<!doctype html><title>before</title><script>document.title = 'after'</script>"
AGENT = "Nephila (setup)"


@click.group("setup", short_help="Set up optional parts: a browser, Parquet.")
def setup() -> None:
    """Set up optional parts: a browser, Parquet."""


@setup.command("browser", short_help="Find a Chromium, or say how to get one.")
@click.option("--executable", metavar="PATH", default="", help="The Chromium to use, instead of looking for one.")
@json_option
def browser(*, executable: str, as_json: bool) -> None:
    """Find a Chromium and test it on a page, or say how to get one (docs/rendering.md).

    In a checkout this also installs the package that drives browsers.
    """
    from nephila.render import browser_on, driver_is_there  # noqa: PLC0415 - start-up

    if not driver_is_there():
        raise NephilaError("What drives browsers is not installed.", hint="Install it: pip install 'nephila[render]'")
    path = browser_on(executable)
    if path is None:
        where = f"There is no program {executable}." if executable else "No Chromium was found."
        raise NephilaError(where, hint=how_to_get())
    trouble = asyncio.run(_try(path))
    if trouble:
        raise NephilaError(f"{path} shows no pages: {trouble}", hint="try another one with --executable PATH")
    if as_json:
        print_json({"executable": path, "works": True})
    else:
        click.echo(f"{path} works: crawls will use it for pages that are made by their scripts.")


@setup.command("parquet", short_help="Install what writing Parquet needs.")
@json_option
def parquet(*, as_json: bool) -> None:
    """Make sure that `nephila export` can write Parquet (docs/exports.md).

    In a checkout this installs the package it needs, some 150 MB.
    """
    from nephila.export import table  # noqa: PLC0415 - start-up

    if not table.is_there():
        raise NephilaError("What writes Parquet is not installed.", hint="Install it: pip install 'nephila[parquet]'")
    if as_json:
        print_json({"works": True})
    else:
        click.echo("Parquet can be written.")


def how_to_get() -> str:
    """What to do where there is no browser: what this machine's user may do comes first."""
    debian, own = "apt-get install chromium", f"{sys.executable} -m playwright install chromium"
    if shutil.which("apt-get") and os.geteuid() == 0:
        return f"Install Debian's: {debian}; or let Playwright download its own: {own}"
    return f"Let Playwright download its own: {own}; or have an administrator install one ({debian})"


async def _try(path: str) -> str:
    """Show a page; what went wrong, nothing where nothing did."""
    from nephila.render import ChromiumPool  # noqa: PLC0415 - start-up

    async def nothing(_wanted: Wanted) -> Withheld:
        return Withheld("setup")

    pool = ChromiumPool(RenderSettings(), path, AGENT, 1)
    try:
        order = RenderOrder("http://setup.invalid/", 200, (("content-type", "text/html"),), PROOF)
        shown = await pool.render(order, nothing)
    finally:
        await pool.close()
    if isinstance(shown, Rendered):
        return "" if b"<title>after</title>" in shown.html else "its scripts did not run"
    return shown.detail or shown.reason
