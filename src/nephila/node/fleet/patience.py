"""Waiting for the servers that workers share, where nothing may go on without their answer (N4).

Whoever asks the frontier waits for as long as it takes. What is asked beside it, before work begins or before anything
is admitted, is waited for likewise: a worker must not end because the servers went away between two of its questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nephila.model.errors import EngineAwayError, EngineLeftError

AGAIN_S = 1.0

T = TypeVar("T")


async def patiently(act: Callable[[], Awaitable[T]]) -> T:
    """Do something that may be repeated, again and again until it is answered. That they are away is told elsewhere.

    Raises `EngineLeftError` where somebody wants an end.
    """
    while True:
        try:
            return await act()
        except EngineLeftError:
            raise
        except EngineAwayError:
            await asyncio.sleep(AGAIN_S)
