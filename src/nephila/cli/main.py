"""The entry point: finds the command, and turns whatever goes wrong into a sentence and an exit code.

Nothing heavy may be imported here: `nephila --version` and `nephila --help` answer from here, from `lazy` and `click`.
"""

from __future__ import annotations

import errno
import io
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

import click

from nephila.model.errors import FileShortageError, MemoryShortageError, NephilaError, UsageError

from .crash import report_crash
from .lazy import Entry, LazyGroup
from .output import printable, tell
from .version import version

if TYPE_CHECKING:
    from .backend import Backend

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130

LEAST_FILES = 32
"""Open at once, below which no command is begun: looking at a crawl was seen to take 14, a crawl has its own bound."""

COMMANDS: Mapping[str, Entry] = MappingProxyType(
    {
        "crawl": Entry("nephila.cli.crawl", "crawl", "Crawl from seeds, or resume a crawl."),
        "worker": Entry("nephila.cli.worker", "worker", "Work on a fleet's crawl, beside any number of others."),
        "seed": Entry("nephila.cli.seed", "seed", "Add seeds to a fleet's crawl."),
        "fleet": Entry("nephila.cli.fleet", "fleet", "Show a fleet's workers, drain one, or begin a new cycle."),
        "check": Entry("nephila.cli.engines", "check", "Test the engines of a fleet: connections, versions, settings."),
        "flush": Entry("nephila.cli.flush", "flush", "Upload the part of an archive that waits in its spool."),
        "demo": Entry("nephila.cli.demo", "demo", "Crawl a simulated web on this machine and audit it."),
        "status": Entry("nephila.cli.status", "status", "Show where a crawl stands."),
        "report": Entry("nephila.cli.report", "report", "Report on a crawl, with charts, here or as HTML."),
        "pages": Entry("nephila.cli.pages", "pages", "List the pages that were stored."),
        "export": Entry("nephila.cli.export", "export", "Export pages as JSON lines, files, Parquet or WACZ."),
        "sql": Entry("nephila.cli.sql", "sql", "Query the catalogue of a crawl in SQL."),
        "rank": Entry("nephila.cli.rank", "rank", "Show the pages or domains with the highest PageRank."),
        "why": Entry("nephila.cli.why", "why", "Explain what became of a URL, and which rule decided."),
        "audit": Entry("nephila.cli.audit", "audit", "Check every request against the rules, and look for tampering."),
        "dead": Entry("nephila.cli.dead", "dead", "List URLs that were given up, or queue them again."),
        "traps": Entry("nephila.cli.traps", "traps", "List endless kinds of URLs that are held back, or release them."),
        "aliases": Entry(
            "nephila.cli.aliases", "aliases", "List what was learned of URLs that mean the same, or undo it."
        ),
        "policy": Entry("nephila.cli.policy", "policy", "Show or set a domain's policy: pace, depth, hours, pause."),
        "block": Entry("nephila.cli.block", "block", "List, add or remove blocks on domains, hosts and URLs."),
        "purge": Entry("nephila.cli.purge", "purge", "Take down a URL or domain: block it, purge it, prove it."),
        "retain": Entry("nephila.cli.retain", "retain", "Keep the newest captures of every page, remove the others."),
        "indexed": Entry(
            "nephila.cli.retain", "indexed", "Mark captures as indexed, so that an age limit spares them."
        ),
        "frontier": Entry("nephila.cli.frontier", "frontier", "Move a frontier to another engine, or rebuild it."),
        "serve": Entry("nephila.cli.serve", "serve", "Serve the dashboard and the control API of a crawl."),
        "setup": Entry("nephila.cli.setup", "setup", "Set up optional parts: a browser, Parquet."),
        "config": Entry("nephila.cli.config", "config", "Show the settings and where each came from."),
        "completion": Entry("nephila.cli.completion", "completion", "Print the shell completion script."),
        "sim": Entry("nephila.cli.sim", "sim", "Simulate crawls with faults, and judge them."),
        "bench": Entry("nephila.cli.bench", "bench", "Run a benchmark on this machine (in a checkout)."),
        "test": Entry("nephila.cli.check", "test", "Run the project's own tests (in a checkout)."),
    }
)


def _show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"nephila {version()}")
        ctx.exit()


cli = LazyGroup(
    "nephila",
    COMMANDS,
    help="A web crawler: fast across the whole web, slow towards each single site."
    "\n\nStart with: nephila crawl example.org",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version.",
        )
    ],
)
cli.context_settings["help_option_names"] = ["-h", "--help"]


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    _stand_in_for_closed_streams()
    _spell_out_what_cannot_be_written()
    debugging = bool(os.environ.get("NEPHILA_DEBUG"))
    if not debugging:
        sys.excepthook = report_crash
    code = run(argv, debugging=debugging)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: a second Ctrl-C has no traceback to tell
    sys.exit(code)


def run(argv: Sequence[str] | None = None, backend: Backend | None = None, *, debugging: bool = False) -> int:
    """Run one command; the exit code. What is not foreseen here is a bug and goes up; when debugging, all does."""
    try:
        _check_text(sys.argv[1:] if argv is None else argv)
        _check_files()
        code = cli.main(argv, prog_name="nephila", standalone_mode=False, obj=backend)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (NephilaError, MemoryError) as error:
        if debugging:
            raise
        told = error if isinstance(error, NephilaError) else MemoryShortageError()
        tell(told)
        return told.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_standard_output()
        return EXIT_FAILED
    except OSError as error:
        refused = None if debugging else _refusal(error)
        if refused is None:
            raise
        tell(refused)
        return EXIT_FAILED
    return code if isinstance(code, int) else 0


_TOO_MANY_FILES = frozenset({errno.EMFILE, errno.ENFILE})
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What standard output says when its disk does not take more. Our own files tell such things as `NephilaError`."""


def _refusal(error: OSError) -> NephilaError | None:
    """What the system refused, where that is no bug of ours."""
    if error.errno in _TOO_MANY_FILES:
        return FileShortageError()
    if error.filename is not None or error.errno not in _UNWRITABLE:
        return None
    _forget_standard_output()
    return NephilaError(f"the output cannot be written: {error.strerror}", "send it somewhere else")


def _stand_in_for_closed_streams() -> None:
    """Open the null device where a standard stream was closed: no socket or file may get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False, encoding="utf-8"))


def _spell_out_what_cannot_be_written() -> None:
    """Pages have any characters and a locale may know 256: the others are written as their numbers."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # it asks the stream where it stands, and not every stream knows
                stream.reconfigure(errors="backslashreplace")


def _check_text(arguments: Sequence[str]) -> None:
    """Raise `UsageError` for bytes that are no text in this locale; files may be called anything, where they exist."""
    for argument in arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument) and not os.path.isfile(argument):  # noqa: PTH113 - start-up
            raise UsageError(
                f"{printable(argument)} is not text in the encoding {sys.getfilesystemencoding()}.",
                "Spell it in that encoding, or set LC_ALL to a locale of the one that it is in.",
            )


def _check_files() -> None:
    """Raise `NephilaError` where so few files may be open that parts of us would fail, and be taken for broken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= LEAST_FILES:
        return
    if hard == resource.RLIM_INFINITY or hard >= LEAST_FILES:
        with suppress(OSError, ValueError):  # a sandbox may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST_FILES, hard))
            return
    raise NephilaError(
        f"this process may open {soft} files at once, and needs at least {LEAST_FILES}",
        hint="raise the limit, for example with ulimit -n 1024",
    )


def _forget_standard_output() -> None:
    """The reader of our pipe has gone: what is still buffered must not complain when Python ends."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
