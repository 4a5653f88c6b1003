"""What a worker's seeds let in is told to all before it is admitted, by however many tasks that is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from nephila.node.fleet.untold import Untold


class Register:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.scope: list[bytes] = []
        self.twins: list[dict[str, str]] = []
        self.answering = asyncio.Event()

    async def add_to_scope(self, lines: bytes) -> None:
        await self.answering.wait()
        self.scope.append(lines)

    async def keep_twins(self, twins: Mapping[str, str]) -> None:
        await self.answering.wait()
        self.twins.append(dict(twins))


def test_two_who_tell_at_once_tell_all_of_it_and_neither_breaks() -> None:
    """S1, N3: a page is settled while seeds are admitted, and more come meanwhile."""

    async def main() -> Register:
        register: Any = Register()
        untold = Untold([register])
        untold.add_to_scope(lambda: b"first\n")
        tasks = [asyncio.create_task(untold.tell()) for _ in range(2)]
        await asyncio.sleep(0)
        untold.add_to_scope(lambda: b"second\n")
        register.answering.set()
        await asyncio.gather(*tasks)
        await untold.tell()
        return register  # type: ignore[no-any-return]

    register = asyncio.run(main())
    assert register.scope == [b"first\n", b"second\n"]


def test_a_seed_that_comes_while_others_of_its_origin_are_told_is_told_next() -> None:
    """S1: what is let go is what was told."""

    async def main() -> Register:
        register: Any = Register()
        untold = Untold([register])
        untold.keep_twin("https://a.test", "/1")
        telling = asyncio.create_task(untold.tell())
        await asyncio.sleep(0)
        untold.keep_twin("https://a.test", "/2")
        register.answering.set()
        await telling
        await untold.tell()
        return register  # type: ignore[no-any-return]

    register = asyncio.run(main())
    assert {path for told in register.twins for path in told["https://a.test"].split()} == {"/1", "/2"}


def test_what_cannot_be_told_stays_for_the_next_time() -> None:
    """N4: somebody who is cancelled while telling takes nothing with him."""

    async def main() -> Register:
        register: Any = Register()
        untold = Untold([register])
        untold.add_to_scope(lambda: b"first\n")
        telling = asyncio.create_task(untold.tell())
        await asyncio.sleep(0)
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        register.answering.set()
        await untold.tell()
        return register  # type: ignore[no-any-return]

    assert asyncio.run(main()).scope == [b"first\n"]
