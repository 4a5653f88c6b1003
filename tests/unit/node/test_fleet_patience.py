"""Servers of a fleet that go away between two questions of a worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nephila.model.errors import EngineAwayError, EngineLeftError
from nephila.node.fleet.identity import WorkerDirectory
from nephila.node.fleet.opening import _look_around
from nephila.node.fleet.patience import patiently
from nephila.node.fleet.scoping import SharedScope
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual


class Away:
    """A register that does not answer some times; what was learned is not asked for."""

    def __init__(self, times: int) -> None:
        self.times = times

    async def scope(self, start: int, _count: int) -> list[bytes]:
        self.times -= 1
        if self.times >= 0:
            raise EngineAwayError("it does not answer")
        return [b"domain a.test\n"][start:]

    async def ask(self, _hosts: object) -> None:
        """Nothing is known."""


def test_what_was_claimed_waits_until_the_scope_of_all_is_known(tmp_path: Path) -> None:
    """N4, F3: the worker does not end, and does not begin without it."""
    register: Any = Away(3)
    directory = WorkerDirectory(tmp_path)
    run_virtual(lambda: _look_around(SharedScope(register, directory), register, ()), VirtualClock())
    assert directory.saved_scope() == b"domain a.test\n"


def test_whoever_wants_an_end_is_not_kept_waiting() -> None:
    """F10, N4: Ctrl-C while the servers are away."""

    async def asked() -> None:
        raise EngineLeftError("it does not answer, and is not waited for any more")

    with pytest.raises(EngineLeftError):
        run_virtual(lambda: patiently(asked), VirtualClock())
