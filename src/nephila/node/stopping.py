"""Signals by which people and machines end a run: Ctrl-C, a service manager, a terminal that is closed.

The first one stops cleanly, a second one at once: the directory is as safe then as after kill -9. A closed terminal may
tell so twice, by the kernel and by the shell, so its signal is never a second one; and where whoever started the
program had it ignored (`nohup`), it is none at all.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable


def stopping_signals() -> tuple[signal.Signals, ...]:
    """Those that end a run of this process."""
    closed = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return signal.SIGINT, signal.SIGTERM, *closed


def obey_signals(stop: Callable[[signal.Signals], None]) -> None:
    """Let the running loop call `stop` with the first signal, and end the process with the second."""
    loop = asyncio.get_running_loop()
    seen: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        if not seen:
            seen.append(number)
            stop(number)
        elif number is not signal.SIGHUP:
            end_at_once(number)

    for number in stopping_signals():
        loop.add_signal_handler(number, on_signal, number)


def obey_no_more() -> None:
    """The loop is gone and its handlers with it: a signal while the summary is written still ends at once."""
    for number in stopping_signals():
        signal.signal(number, signal.SIG_IGN if number is signal.SIGHUP else end_at_once)


def end_at_once(number: int, _frame: object = None) -> None:
    """End this process, and with it those that it has started."""
    os._exit(128 + number)
