"""Seeds of a fleet that named no scheme, whose https origin does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from nephila.interfaces.frontier import Admission
from nephila.model.errors import EngineAwayError
from nephila.model.exchange import FailureKind
from nephila.model.task import Candidate
from nephila.node.fleet.fallback import Fallback
from nephila.urls import Identifier, NormalRules, UrlLimits

ORIGIN = "https://a.test"


class Kept:
    """A register and a frontier in one."""

    def __init__(self) -> None:
        self.paths = "/ /x"
        self.admitted: list[str] = []
        self.trouble: Exception | None = None
        self.held = asyncio.Event()
        self.held.set()

    async def twins_of(self, origin: str) -> str:
        return self.paths if origin == ORIGIN else ""

    async def drop_twins(self, origin: str, paths: str) -> None:
        assert (origin, paths) == (ORIGIN, self.paths)
        self.paths = ""

    async def admit(self, candidates: Sequence[Candidate]) -> Admission:
        await self.held.wait()
        if self.trouble is not None:
            raise self.trouble
        self.admitted += [one.address.url for one in candidates]
        return Admission(len(candidates), 0)


def made(kept: Kept) -> Fallback:
    fallback = Fallback(kept, kept)
    fallback.identifier = Identifier(1, NormalRules(), UrlLimits())
    return fallback


def test_they_are_tried_over_http_once() -> None:
    """S1, N3: of a connection that cannot be had; whoever waits for it finds them in the frontier."""

    async def run() -> None:
        kept = Kept()
        fallback = made(kept)
        assert fallback(ORIGIN, FailureKind.NO_SUCH_NAME) == ()
        assert fallback("http://a.test", FailureKind.CONNECT) == ()
        await fallback.settled()
        assert kept.admitted == []
        for _ in range(2):
            fallback(ORIGIN, FailureKind.CONNECT)
            await fallback.settled()
        assert kept.admitted == ["http://a.test/", "http://a.test/x"]
        assert kept.paths == ""

    asyncio.run(run())


@pytest.mark.parametrize("ends", ["away", "stopped"])
def test_what_is_not_in_the_frontier_is_not_let_go(ends: str) -> None:
    """S1, N3, N4: servers that are away, or a worker that ends meanwhile, lose no seed."""

    async def run() -> None:
        kept = Kept()
        fallback = made(kept)
        if ends == "away":
            kept.trouble = EngineAwayError("away")
            fallback(ORIGIN, FailureKind.TLS)
            await fallback.settled()
        else:
            kept.held.clear()
            fallback(ORIGIN, FailureKind.TLS)
            await asyncio.sleep(0.01)
            await fallback.close()
        assert (kept.paths, kept.admitted) == ("/ /x", [])

    asyncio.run(run())
