"""Many short commands, each in a process of its own that is forked from one which has everything imported already.

Through the real entry point, with streams, working directory and exit code of its own: only the start-up is spared.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

Result = subprocess.CompletedProcess[str]


def run_forked(commands: Sequence[Sequence[str | Path]], *, cwd: Path, stdin: Path = Path(os.devnull)) -> list[Result]:
    """Run the crawler with each of these arguments, one after the other."""
    told = json.dumps([list(map(str, command)) for command in commands])
    program = [sys.executable, __file__, str(stdin)]
    result = subprocess.run(program, input=told, capture_output=True, text=True, timeout=120, check=False, cwd=cwd)
    assert result.returncode == 0, result.stderr
    answers = zip(commands, json.loads(result.stdout), strict=True)
    return [Result(list(map(str, command)), code, out, err) for command, (code, out, err) in answers]


def _main(stdin: str) -> None:
    for module in ("nephila.cli.crawl", "nephila.node.inspect", "nephila.node.run"):
        importlib.import_module(module)
    answers = [_run(arguments, stdin) for arguments in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(answers))


def _run(arguments: list[str], stdin: str) -> tuple[int, str, str]:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        pid = os.fork()
        if pid == 0:
            _become(arguments, os.open(stdin, os.O_RDONLY), out.fileno(), err.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def _become(arguments: list[str], *streams: int) -> None:
    from nephila.cli.main import main  # noqa: PLC0415 - as above

    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode) for number, mode in ((0, "r"), (1, "w"), (2, "w")))  # noqa: PTH123, SIM115
    code = 1
    try:
        main(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException as error:  # noqa: BLE001 - as the interpreter does at its end
        sys.excepthook(type(error), error, error.__traceback__)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _main(*sys.argv[1:])
