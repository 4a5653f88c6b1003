"""What the workers of a fleet agree on, on a real server: when it binds, and whom."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from valkey_servers import ValkeySingle

from nephila.engines.valkey import Valkey
from nephila.engines.valkey_servers import servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.frontier.redis.presence import Presence
from nephila.model.errors import UsageError
from nephila.model.settings import ArchiveSettings, CatalogueSettings, FleetSettings, S3Settings, Settings
from nephila.node.fleet.agreeing import agree


class Crawl:
    """One that was begun by seeds with a slip in their file."""

    def __init__(self, server: ValkeySingle, name: str) -> None:
        self.server, self.name = server, name
        self.slip = Settings(
            fleet=FleetSettings(crawl=name, servers=tuple(server.names)),
            catalogue=CatalogueSettings(url="postgresql://me@db/crawls"),
            archive=ArchiveSettings(url="s3://bukcet/web"),
            s3=S3Settings(endpoint="http://store:8333"),
        )
        self.right = replace(self.slip, archive=replace(self.slip.archive, url="s3://bucket/web"))
        self.other = replace(self.slip, archive=replace(self.slip.archive, url="s3://other/web"))
        self.form = replace(self.slip, urls=replace(self.slip.urls, sort_query=False))
        server.server.ask("HSET", f"nephila:{{{name}}}:crawl", "format", "3", "shards", "2", "compact", "0")
        self.agree(self.slip, "seeds")

    def know(self, shard: int, table: str, name: str, value: int) -> None:
        """A shard has come so far."""
        self.server.server.ask("HSET", f"nephila:{{{self.name}:{shard}}}:{table}", name, value)

    def agree(self, settings: Settings, who: str = "") -> None:
        """Somebody comes with these settings."""

        async def run() -> None:
            state = await ValkeyState.open(servers_of(self.server.names, {}))
            try:
                await agree(state, settings, who)
            finally:
                await state.close()

        asyncio.run(run())

    def live(self, worker: str, *, leave: bool = False) -> None:
        """A worker tells the engine of itself."""

        async def run() -> None:
            client = Valkey(servers_of(self.server.names))
            await client.start()
            presence = Presence(client, self.name, worker)
            await (presence.leave() if leave else presence.tell())
            await client.close()

        asyncio.run(run())


def test_a_slip_of_who_began_a_crawl_is_mended_by_the_next_worker(valkey: ValkeySingle) -> None:
    """N8, C4: nothing was asked for yet; whoever only looks goes by what is there."""
    crawl = Crawl(valkey, "slip")
    crawl.know(0, "count", "urls", 3)
    with pytest.raises(
        UsageError, match=r"begun with archive\.url = s3://bukcet/web, and these settings say s3://bucket"
    ):
        crawl.agree(crawl.right)
    crawl.live("one")
    crawl.agree(crawl.right, "one")
    crawl.agree(crawl.right)
    with pytest.raises(UsageError, match="s3://bucket/web"):
        crawl.agree(crawl.slip, "seeds")


def test_of_two_workers_with_different_files_one_is_refused(valkey: ValkeySingle) -> None:
    """N8, N3: who has agreed binds the others while it lives, whatever was there before both."""
    crawl = Crawl(valkey, "two")
    for worker in ("one", "two"):
        crawl.live(worker)
    crawl.agree(crawl.right, "one")
    for settings in (crawl.other, crawl.slip):
        with pytest.raises(UsageError, match=r"begun with archive\.url = s3://bucket/web"):
            crawl.agree(settings, "two")
    moved = replace(crawl.right, s3=replace(crawl.right.s3, endpoint="http://elsewhere:8333"))
    with pytest.raises(UsageError, match="kept at http://store:8333"):
        crawl.agree(moved, "two")
    crawl.live("one", leave=True)
    crawl.agree(moved, "two")
    with pytest.raises(UsageError, match="kept at http://elsewhere:8333"):
        crawl.agree(crawl.right, "one")


def test_what_was_agreed_on_binds_once_something_was_asked_for(valkey: ValkeySingle) -> None:
    """N8, U3: nobody needs to be alive for that; and URLs that are known keep their form."""
    crawl = Crawl(valkey, "bound")
    crawl.agree(crawl.form, "seeds")
    crawl.agree(crawl.slip, "seeds")
    crawl.know(1, "count", "urls", 1)
    with pytest.raises(UsageError, match=r"begun with urls\.sort_query = true, and these settings say false"):
        crawl.agree(crawl.form, "seeds")
    crawl.agree(crawl.right, "seeds")
    crawl.know(1, "meta", "tokens", 1)
    with pytest.raises(UsageError, match="s3://bucket/web"):
        crawl.agree(crawl.other, "one")


def test_a_crawl_of_an_earlier_version_has_its_settings_compared_and_written_down(valkey: ValkeySingle) -> None:
    """N8: it kept a digest alone."""
    crawl = Crawl(valkey, "earlier")
    crawl.know(0, "meta", "tokens", 1)
    valkey.server.ask("DEL", "nephila:{earlier}:fleet:agreed")
    with pytest.raises(UsageError, match=r"urls\.\* or archive\.url differ"):
        crawl.agree(crawl.right, "one")
    crawl.agree(crawl.slip, "one")
    with pytest.raises(UsageError, match=r"archive\.url = s3://bukcet/web"):
        crawl.agree(crawl.right, "one")
