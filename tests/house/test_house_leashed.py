"""Tests that are killed leave no server behind."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from killing import is_alive
from leashed import leashed

SUPPORT = Path(__file__).parents[1] / "support"
PARENT = """
import subprocess, sys, time
from leashed import leashed
server = subprocess.Popen(leashed([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]),
                          stdout=subprocess.PIPE, start_new_session=True)
server.stdout.readline()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the signal is Linux's")
def test_a_server_ends_with_the_tests_that_were_killed() -> None:
    """Q4: kill -9 of the tests, and what they have started is gone, in a session of its own or not."""
    environ = {"PYTHONPATH": str(SUPPORT), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env=environ) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        assert is_alive(server)
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 10
    while is_alive(server):
        assert time.monotonic() < deadline, "it outlives who has started it"
        time.sleep(0.01)


def test_a_thread_holds_no_leash() -> None:
    """Q4: a server that is started in a thread must not end with the thread."""
    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(leashed(["server"])))
    thread.start()
    thread.join()
    assert found == [["server"]]


def test_every_server_of_the_tests_is_on_a_leash() -> None:
    """Q4: whatever is started in a session of its own (no Ctrl-C reaches it) by what tests share."""
    loose: list[str] = []
    for path in sorted(SUPPORT.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "subprocess.Popen":
                apart = any(keyword.arg == "start_new_session" for keyword in node.keywords)
                if apart and not ast.unparse(node.args[0]).startswith("leashed("):
                    loose.append(f"{path.name}:{node.lineno}")
    assert loose == []
