"""K4, N2, N7: who may come in to the engine of a frontier: passwords, users with few rights, secured lines."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import pytest
import trustme
from long_queues import Drain, admit, policy, spill_all, urls_of
from secured_front import SecuredFront
from valkey_servers import ValkeyServer, ValkeySingle, free_port, redis_server

from nephila.engines.valkey_facts import read_facts
from nephila.engines.valkey_servers import ValkeyServers
from nephila.engines.valkey_state import ValkeyState
from nephila.engines.valkey_wire import EngineError
from nephila.frontier.moving import AskedFor
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.exporting import RedisExport
from nephila.frontier.redis.opening import Opening
from nephila.model.errors import NephilaError
from nephila.model.policy import Block
from nephila.model.settings import FleetSettings, Settings
from nephila.node.clock import SystemClock
from nephila.node.fleet.access import valkey_servers
from nephila.node.fleet.registry import Figures, Member, Registry
from nephila.testing.chunks import MemoryChunks

ROOT = Path(__file__).parents[3]
PASSWORD, OWNER = "orb-weaver-7", "the-owner"
HOST = "www.access.test"


def servers(port: int, scheme: str = "redis", environ: dict[str, str] | None = None, **fleet: str) -> ValkeyServers:
    settings = FleetSettings(crawl="access", servers=(f"{scheme}://127.0.0.1:{port}",), **fleet)  # type: ignore[arg-type]
    return valkey_servers(Settings(fleet=settings), environ or {})


async def use_everything(where: ValkeyServers) -> None:
    """All that a worker, a person and an export ask of the engine."""
    async with AsyncExitStack() as stack:
        state = await ValkeyState.open(where)
        stack.push_async_callback(state.close)
        registry = Registry(state, "access")
        await registry.beat(Member("id", "name", "", 1, "1", 0), Figures(), [1])
        assert [one.member.name for one in (await registry.roll()).workers] == ["name"]
        frontier = await RedisFrontier.open(
            where,
            "access",
            policy(),
            worker="w1",
            clock=SystemClock(),
            options=Opening(shards=2, chunks=MemoryChunks(), patience_s=5),
        )
        stack.push_async_callback(frontier.close)
        await admit(frontier, urls_of(HOST, 200))
        assert (await spill_all(frontier)).out
        await frontier.block(Block(f"https://{HOST}/section3/", "they asked us", 0))
        await frontier.unblock(f"https://{HOST}/section3/")
        assert len(await Drain(frontier).all()) == 200
        assert frontier.refresh().pages == 200
        await frontier.begin_cycle()
        await registry.leave("id", [1])
    (facts,) = await read_facts(where)
    assert facts.trouble == ""
    assert facts.functions
    export = RedisExport(where, "access", policy(), SystemClock(), AskedFor({}), MemoryChunks())
    try:
        assert sum(1 for _ in export.rows()) > 200
    finally:
        export.close()


def refused(where: ValkeyServers) -> str:
    """What is said to somebody who may not come in."""

    async def enter() -> None:
        frontier = await RedisFrontier.open(
            where, "access", policy(), worker="w1", clock=SystemClock(), options=Opening(shards=1, patience_s=2)
        )
        await frontier.close()

    with pytest.raises(NephilaError) as caught:
        asyncio.run(enter())
    assert isinstance(caught.value, EngineError)
    told = f"{caught.value} {caught.value.hint}"
    assert PASSWORD not in told
    return told


def test_a_password_is_asked_for(tmp_path: Path) -> None:
    """K4, N2: from a file or the environment; without it, and with a wrong one, a sentence."""
    with ValkeySingle("--requirepass", PASSWORD, password=PASSWORD) as one:
        port, file = one.server.port, tmp_path / "password"
        file.write_text(f"{PASSWORD}\n")
        asyncio.run(use_everything(servers(port, password_file=str(file))))
        one.server.ask("FLUSHALL")
        asyncio.run(use_everything(servers(port, environ={"REDISCLI_AUTH": PASSWORD})))
        assert "NOAUTH" in refused(servers(port))
        assert "set user and password" in refused(servers(port, environ={"REDISCLI_AUTH": "another"}))


def test_a_user_is_that_user_without_a_password_too() -> None:
    """K4: who has forgotten it does not come in as anybody; one who needs none does."""
    with ValkeySingle() as one:
        one.server.ask("ACL", "SETUSER", "spider", "on", f">{PASSWORD}", "~*", "&*", "+@all")
        told = refused(servers(one.server.port, username="spider"))
        assert ("WRONGPASS" in told, "set user and password" in told) == (True, True)
        one.server.ask("ACL", "SETUSER", "spider", "nopass")
        one.server.ask("ACL", "SETUSER", "default", "off")
        asyncio.run(use_everything(servers(one.server.port, username="spider")))


def rights() -> str:
    """The line that the documentation gives."""
    found = re.search(r"^ACL SETUSER spider on >PASSWORD (.*)$", (ROOT / "docs" / "fleet.md").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_a_user_with_the_rights_that_the_documentation_names_can_do_everything(tmp_path: Path) -> None:
    """K4, N2, N7: keys of ours, and nothing that empties a server or shows its settings to be changed."""
    with ValkeySingle("--requirepass", OWNER, password=OWNER) as one:
        one.server.ask("ACL", "SETUSER", "spider", "on", f">{PASSWORD}", *rights().split())
        file = tmp_path / "password"
        file.write_text(PASSWORD)
        asyncio.run(use_everything(servers(one.server.port, username="spider", password_file=str(file))))
        for command in (("FLUSHALL",), ("CONFIG", "SET", "save", ""), ("KEYS", "*"), ("GET", "others"), ("SHUTDOWN",)):
            told = str(one.server.ask("ACL", "DRYRUN", "spider", *command))
            assert "no permissions" in told or "permission" in told, command
        assert "set user and password" in refused(servers(one.server.port, username="nobody", password_file=str(file)))


@contextmanager
def secured(kind: str, folder: Path, say: Callable[[str], None]) -> Iterator[int]:
    """The port of a server that is spoken to in TLS, with a certificate of an authority in `folder`."""
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    stranger.cert_pem.write_to_path(str(folder / "stranger.pem"))
    certificate = authority.issue_cert("127.0.0.1")
    with ExitStack() as stack:
        if kind == "in front":  # the wheel's server is built without TLS
            server = stack.enter_context(ValkeySingle()).server
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            certificate.configure_cert(context)
            yield stack.enter_context(SecuredFront(server.port, context).running())
            return
        binary, told = redis_server()
        if binary is None:
            say(f"TLS was not tried on a server of its own: {told}")
            pytest.skip(told)
        certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
        port, pem = free_port(), str(folder / "server.pem")
        files = ("--tls-cert-file", pem, "--tls-key-file", pem, "--tls-ca-cert-file", str(folder / "authority.pem"))
        own = ValkeyServer(folder / "redis", "--tls-port", str(port), "--tls-auth-clients", "no", *files, binary=binary)
        own.start()
        stack.callback(own.stop)
        say(f"TLS on {told}")
        yield port


@pytest.mark.parametrize("kind", ["in front", "its own"])
def test_a_line_is_secured(kind: str, tmp_path: Path, say: Callable[[str], None]) -> None:
    """K4, N2: a certificate is verified by the authorities of the settings; a stranger's is refused, in a sentence."""
    with secured(kind, tmp_path, say) as port:
        trusted = {"authorities": str(tmp_path / "authority.pem")}
        asyncio.run(use_everything(servers(port, "rediss", **trusted)))
        for given in ({}, {"authorities": str(tmp_path / "stranger.pem")}):
            assert "certificate" in refused(servers(port, "rediss", **given)).lower()
        assert refused(servers(port, "redis"))
        unverified = servers(port, "rediss", tls="unverified")
        assert asyncio.run(read_facts(unverified))[0].trouble == ""
