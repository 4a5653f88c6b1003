"""Programs that hear a terminal being closed, though the tests themselves may have been started with `nohup`.

A signal that is ignored stays so in whatever is started; one that is caught is as by default there.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hearing_hangups() -> Iterator[None]:
    """What is started meanwhile is not started with `nohup`; the tests go on ignoring what they ignore."""
    before = signal.getsignal(signal.SIGHUP)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
