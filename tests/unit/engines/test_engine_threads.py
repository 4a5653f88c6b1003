"""Pools whose threads are all there from the start."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from nephila.engines.threads import started_pool


def test_all_threads_are_there() -> None:
    """Q5: none is started later, when memory may be short."""
    with started_pool(3, "all-there") as pool:
        assert len([one for one in threading.enumerate() if one.name.startswith("all-there")]) == 3
        assert pool.submit(lambda: 5).result() == 5


def test_who_is_interrupted_while_they_start_can_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """C4: Ctrl-C in that moment left threads that waited for each other, and a process that did not end."""

    def interrupted(_self: Future[Any]) -> None:
        raise KeyboardInterrupt

    before = set(threading.enumerate())
    monkeypatch.setattr(Future, "result", interrupted)
    monkeypatch.setattr("nephila.engines.threads.Barrier", lambda count: threading.Barrier(count + 1))
    with pytest.raises(KeyboardInterrupt):
        started_pool(3, "interrupted")
    for one in set(threading.enumerate()) - before:
        one.join(60)
        assert not one.is_alive()
