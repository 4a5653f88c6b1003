"""Whatever a command imports when it is called can be imported first: no circle of imports waits there."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

COMMANDS = Path(__file__).resolve().parents[2] / "src" / "nephila" / "cli"
OTHERS = ("asyncio", "asyncpg", "click", "lmdb", "rich.console", "sqlite3", "turbohtml", "http.client", "unittest")
"""What is not ours, imported once for all."""


def late_imports() -> Iterator[str]:
    """Modules of ours that are named within functions of the command line, and those of the commands."""
    yield from re.findall(r'Entry\(\s*"([\w.]+)"', (COMMANDS / "main.py").read_text(encoding="utf-8"))
    for path in sorted(COMMANDS.glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.ImportFrom) and node.module is not None:
                        name = f"nephila.cli.{node.module}" if node.level else node.module
                        if name.startswith("nephila."):
                            yield name


def test_commands_find_what_they_import_in_an_interpreter_that_has_imported_nothing() -> None:
    """Tests fork most commands from a process that has imported everything, and would not notice."""
    names = sorted(set(late_imports()))
    assert {"nephila.cli.retain", "nephila.node.fleet.retaining"} <= set(names)
    result = subprocess.run([sys.executable, __file__, *names], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def _import_each(names: list[str]) -> int:
    """Import each in a process of its own; how many could not be."""
    for other in OTHERS:
        importlib.import_module(other)
    failed = 0
    for name in names:
        pid = os.fork()
        if pid == 0:
            importlib.import_module(name)
            os._exit(0)
        failed += bool(os.waitpid(pid, 0)[1])
    return failed


if __name__ == "__main__":
    sys.exit(_import_each(sys.argv[1:]))
