"""Signals that end a run, sent to a process that obeys them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from hangups import hearing_hangups

PROGRAM = """
import asyncio, signal, sys
from nephila.node.stopping import obey_no_more, obey_signals

async def main():
    ended = asyncio.get_running_loop().create_future()
    obey_signals(lambda number: ended.set_result(number.name))
    print("ready", flush=True)
    print(await ended, flush=True)
    print(await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline), end="", flush=True)

if sys.argv[1] == "nohup":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
asyncio.run(main())
obey_no_more()
print("closing", flush=True)
print(sys.stdin.readline(), end="", flush=True)
"""


class Obeying:
    """Such a process. It says "ready", then the signal that it stops for, and then what it is told, line by line."""

    def __init__(self, how: str = "") -> None:
        with hearing_hangups():
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def tell(self, text: str) -> str:
        """Let it go on; what it says then."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return self.line()

    def end(self) -> int:
        self.process.communicate()
        return self.process.returncode


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_stops_and_a_second_one_ends_at_once(number: signal.Signals) -> None:
    """F10, C4: Ctrl-C, a service manager, a terminal that is closed."""
    run = Obeying()
    run.send(number)
    assert run.line() == number.name
    run.send(signal.SIGINT)
    assert run.end() == 128 + signal.SIGINT


def test_a_closed_terminal_may_say_so_twice() -> None:
    """F10, C4: the kernel does and the shell; what is being closed is closed, and the summary written."""
    run = Obeying()
    run.send(signal.SIGHUP)
    assert run.line() == "SIGHUP"
    run.send(signal.SIGHUP)
    assert run.tell("closed") == "closed"
    assert run.line() == "closing"
    run.send(signal.SIGHUP)
    assert run.tell("written") == "written"
    assert run.end() == 0


def test_whoever_started_it_with_nohup_may_close_the_terminal() -> None:
    """F10, C4: it goes on, and other signals still stop it."""
    run = Obeying("nohup")
    run.send(signal.SIGHUP)
    run.send(signal.SIGTERM)
    assert run.line() == "SIGTERM"
    assert run.tell("closed") == "closed"
    assert run.line() == "closing"
    run.send(signal.SIGTERM)
    assert run.end() == 128 + signal.SIGTERM
