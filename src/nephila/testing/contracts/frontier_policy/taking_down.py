"""What is forgotten of captures that were taken out of the archive (K2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from nephila.interfaces.frontier import UrlStory
from nephila.model.task import Level, PageTask
from nephila.testing.contracts.frontier import SEGMENT, addresses, candidates
from nephila.urls import Fingerprint

from .case import Options, PolicyCase


@runtime_checkable
class Forgetting(Protocol):
    """What an engine can do whose crawl has an archive."""

    async def forget(
        self,
        gone: Sequence[tuple[str, Fingerprint]],
        emptied: Sequence[tuple[str, Fingerprint]],
        origins: Sequence[str],
    ) -> None:
        """Forget what captures left behind that were taken out of the archive."""

    async def recall(self, stories: Sequence[UrlStory], level: Level) -> int:
        """Queue URLs that have ended once more."""


class TakingDownChecks(PolicyCase):
    """The checks."""

    async def check_what_was_taken_down_is_forgotten(self) -> None:
        """K2: where a capture lay, what it said and its validators; what had its payload is asked for in full."""
        await self.harness.configure(Options())
        engine = self.operating
        assert isinstance(engine, Forgetting)
        urls = ("https://gone.test/page", "https://emptied.test/page", "https://kept.test/page")
        await self.frontier.admit(candidates(*urls))
        assert len(await self.serve()) == 3
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        gone, emptied, kept = ((one.host, one.fingerprint) for one in addresses(*urls))
        for _ in range(2):
            await engine.forget([gone], [emptied], ["https://gone.test"])
            told = [self.harness.view.story(*one) for one in (gone, emptied, kept)]
            known = [story for story in told if story is not None]
            assert [story.state for story in known] == ["completed"] * 3
            assert [story.reason == "taken_down" for story in known] == [True, False, False]
            assert [(story.segment, story.offset >= 0) for story in known] == [("", False), *[(SEGMENT, True)] * 2]
            assert [story.digest for story in known] == [b"", b"", b"d" * 32]
        self.tick()
        assert await engine.recall(known[1:], Level.MEDIUM) == 2
        leases = await self.claim_pages()
        digests = {task.url: task.digest for lease in leases for task in lease.tasks if isinstance(task, PageTask)}
        assert digests == {urls[1]: b"", urls[2]: b"d" * 32}
        await engine.forget([("nobody.test", gone[1])], [], ["https://nobody.test"])
