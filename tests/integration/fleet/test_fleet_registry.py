"""The register of a fleet on a real server."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from valkey_servers import ValkeySingle

from nephila.cli.main import run
from nephila.config import load
from nephila.engines.valkey import Valkey, nobody_listens
from nephila.engines.valkey_servers import ValkeyServers, servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.model.errors import EngineAwayError, EngineRefusedError, UsageError
from nephila.model.settings import ArchiveSettings, CatalogueSettings, FleetSettings, S3Settings, Settings
from nephila.node.clock import SystemClock
from nephila.node.fleet.agreeing import agree, move_places
from nephila.node.fleet.agreement import Agreed, Agreement
from nephila.node.fleet.opening import introduce
from nephila.node.fleet.registry import Figures, Left, Member, Orders, Registry, Roll, check_crawl_name, draw_writer
from nephila.node.fleet.servers import open_servers

ONE, TWO = Member("a" * 8, "orb-1"), Member("b" * 8, "orb-2", "eu")


def replace_name(member: Member, name: str) -> Member:
    return msgspec.structs.replace(member, name=name)


def with_state(server: ValkeySingle, act: Callable[[ValkeyState], Awaitable[None]]) -> None:
    async def run() -> None:
        state = await ValkeyState.open(servers_of(server.names, {}))
        try:
            await act(state)
        finally:
            await state.close()

    asyncio.run(run())


def test_workers_are_seen_with_what_they_say_and_leave(valkey: ValkeySingle) -> None:
    """N3: a sign of life registers; a drain is seen with the next one; who leaves is gone."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "seen")
        first = await registry.beat(ONE, Figures(pages=7), [11])
        assert first == Orders(leave=False, alive=1, now_ms=first.now_ms)
        second = await registry.beat(TWO, Figures(waits_for="the store"), [12, 13])
        assert second == Orders(leave=False, alive=2, now_ms=second.now_ms)
        assert 0 < first.now_ms <= second.now_ms
        roll = await registry.roll()
        assert [one.member for one in roll.workers] == [ONE, TWO]
        assert [one.writers for one in roll.workers] == [(11,), (12, 13)]
        assert roll.workers[0].figures.pages == 7
        assert roll.workers[1].silent_ms < 5_000
        await registry.drain(TWO.id)
        assert (await registry.roll()).workers[1].draining
        assert (await registry.beat(ONE, Figures(), [11])).leave is False
        assert (await registry.beat(TWO, Figures(), [12])).leave is True
        await registry.leave(TWO.id, [12, 13])
        assert [one.member.name for one in (await registry.roll()).workers] == ["orb-1"]
        assert (await registry.beat(TWO, Figures(), [14])).leave is False, "started anew it is not told to leave"

    with_state(valkey, act)


def test_seeds_to_be_tried_over_http_are_kept_until_they_were(valkey: ValkeySingle) -> None:
    """S1, N3: what comes later is kept beside what was there; only what was admitted is let go."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "twins")
        await registry.keep_twins({"https://a.test": "/ /x", "https://b.test:8443": "/"})
        for _ in range(2):  # an answer may be lost, and the call repeated
            await registry.keep_twins({"https://a.test": "/y /x"})
        assert await registry.twins_of("https://a.test") == "/ /x /y"
        await registry.drop_twins("https://a.test", "/ /x")
        assert await registry.twins_of("https://a.test") == "/ /x /y"
        await registry.drop_twins("https://a.test", "/ /x /y")
        assert await registry.twins_of("https://a.test") == ""
        assert await registry.twins_of("https://b.test:8443") == "/"

    with_state(valkey, act)


def test_a_worker_that_was_given_up_may_not_upload_any_more(valkey: ValkeySingle) -> None:
    """N3, W2: never both: what is fetched again is not uploaded from a spool that comes back."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "lost")
        await registry.beat(ONE, Figures(), [21])
        await registry.beat(TWO, Figures(), [22])
        assert await registry.give_up(3600, [21, 22]) == []
        await registry.forget(ONE.id)
        assert await registry.may_upload(ONE.id, 21) is True, "to ask is a sign of life"
        assert await registry.give_up(3600, [21, 22]) == []
        await registry.forget(ONE.id)
        assert await registry.give_up(3600, [21, 22]) == [21]
        assert await registry.give_up(3600, [21, 22]) == [21], "until it is in order"
        assert await registry.may_upload(ONE.id, 21) is False
        await registry.beat(ONE, Figures(), [31])
        assert await registry.may_upload(ONE.id, 21) is False, "its return takes nothing back"
        assert await registry.may_upload(ONE.id, 31) is True
        await registry.in_order(21)
        assert await registry.give_up(3600, []) == []
        assert await registry.may_upload(ONE.id, 21) is False
        assert await registry.may_upload(TWO.id, 22) is True

    with_state(valkey, act)


def test_who_is_forgotten_is_off_the_register_at_once_where_no_page_waits_for_it(valkey: ValkeySingle) -> None:
    """N3, K2: no worker need run for that; what was uploaded is still looked through, and nothing counts twice."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "ghost")
        await registry.beat(ONE, Figures(), [91, 92])
        assert await registry.forget(ONE.id, [91, 92]) is Left.NOTHING
        assert await registry.roll() == Roll((), ())
        assert (await registry.beat(TWO, Figures(), [93])).forgotten is False
        assert await registry.may_upload(ONE.id, 91) is False, "should it come back after all"
        assert await registry.give_up(3600, [92]) == [92], "what waits for it all the same is put in order"
        await registry.in_order(92)
        assert await registry.may_upload(TWO.id, 93) is True
        assert await registry.forget(TWO.id, [93]) is Left.UPLOADED
        assert await registry.roll() == Roll((), (93,))
        assert await registry.give_up(3600, []) == [93]
        assert await registry.forget(TWO.id, [93]) is Left.NOTHING, "an answer may be lost, and the call repeated"

    with_state(valkey, act)


def test_whoever_is_given_up_with_pages_in_its_spool_keeps_its_silence_and_is_told_as_given_up(
    valkey: ValkeySingle,
) -> None:
    """N3, C4: others are told, and put in order what it left; until then it is seen, with the time it was heard of."""

    async def act(state: ValkeyState) -> None:
        registry, tag = Registry(state, "spooled"), "nephila:{spooled}:fleet:"
        await registry.beat(ONE, Figures(), [94, 95])
        await state.call("ZINCRBY", tag + "beats", -60_000, ONE.id)
        for _ in range(2):
            assert await registry.forget(ONE.id, [95]) is Left.SPOOLED
            (seen,) = (await registry.roll()).workers
            assert seen.is_given_up
            assert 60_000 <= seen.silent_ms < 90_000
            assert seen.writers == (94, 95)
        assert (await registry.beat(TWO, Figures(), [96])).forgotten
        assert await registry.give_up(86_400, [94]) == [94, 95]
        assert [one.member for one in (await registry.roll()).workers] == [TWO]

    with_state(valkey, act)


def test_of_workers_of_one_name_the_ids_are_told(
    valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N3, C4: an id names one surely."""
    file = tmp_path / "fleet.toml"
    file.write_text(
        f'[fleet]\ncrawl = "same"\nservers = ["{valkey.names[0]}"]\n[archive]\nurl = "s3://b/x"\n'
        '[catalogue]\nurl = "postgresql://n@127.0.0.1:1/x"\n'
    )

    async def act(state: ValkeyState) -> None:
        for number, member in enumerate((ONE, replace_name(TWO, ONE.name)), 97):
            await Registry(state, "same").beat(member, Figures(), [number])

    with_state(valkey, act)
    assert run(["fleet", "drain", ONE.name, "--config", str(file)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "2 workers are called 'orb-1' in the crawl same" in told
    assert f"name one by its id: {ONE.id} (heard of 0 s ago), {TWO.id} (heard of 0 s ago)" in told
    assert run(["fleet", "drain", TWO.id, "--config", str(file)]) == 0


def test_who_comes_back_first_does_not_give_up_those_who_come_back_next(valkey: ValkeySingle) -> None:
    """N3, N4: silence counts while somebody hears it, not while all were down or the server's clock leapt ahead."""
    day_ms = 86_400_000

    async def act(state: ValkeyState) -> None:
        registry, tag = Registry(state, "outage"), "nephila:{outage}:fleet:"
        three = Member("c" * 8, "orb-3")

        async def pass_time(*keys: str) -> None:
            for name in keys:
                await state.call("ZINCRBY", tag + "beats", -2 * day_ms, name)

        for number, member in enumerate((ONE, TWO, three), 21):
            last = await registry.beat(member, Figures(), [number])
        await pass_time(ONE.id, TWO.id, three.id)
        await state.call("SET", tag + "heard", last.now_ms - 2 * day_ms)
        await registry.forget(three.id)
        assert (await registry.beat(ONE, Figures(), [31])).alive == 1, "the others are still away"
        assert await registry.give_up(86_400, [21, 22, 23]) == [23], "who was forgotten by a person is not waited for"
        assert await registry.may_upload(TWO.id, 22) is True
        await pass_time(TWO.id)  # this time the others were there
        await registry.beat(ONE, Figures(), [31])
        assert await registry.give_up(86_400, [21, 22]) == [22, 23]

    with_state(valkey, act)


def test_looking_for_the_lost_first_thing_after_an_outage_gives_nobody_up(valkey: ValkeySingle) -> None:
    """N3, N4: workers wait while the server is away for days, and one asks for the lost before any has given a sign."""
    day_ms = 86_400_000

    async def act(state: ValkeyState) -> None:
        registry, tag = Registry(state, "waited"), "nephila:{waited}:fleet:"
        for number, member in enumerate((ONE, TWO), 21):
            last = await registry.beat(member, Figures(), [number])
            await state.call("ZINCRBY", tag + "beats", -2 * day_ms, member.id)
        await state.call("SET", tag + "heard", last.now_ms - 2 * day_ms)
        assert await registry.give_up(86_400, [21, 22]) == []
        assert await registry.may_upload(ONE.id, 21) is True
        await state.call("ZINCRBY", tag + "beats", -2 * day_ms, TWO.id)
        assert await registry.give_up(86_400, [21, 22]) == [22], "this time somebody was there"

    with_state(valkey, act)


def test_what_a_writer_leaves_after_it_was_put_in_order_is_put_in_order_again(valkey: ValkeySingle) -> None:
    """N3, N4: it went on because it did not know; or whoever had put it in order was lost before that was done."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "again")
        await registry.beat(ONE, Figures(), [51])
        await registry.beat(TWO, Figures(), [52])
        await registry.forget(ONE.id)
        assert await registry.give_up(3600, [51]) == [51]
        await registry.in_order(51)
        assert await registry.give_up(3600, [52]) == []
        assert await registry.give_up(3600, [51, 52]) == [51], "pages wait for it"
        assert await registry.may_upload(ONE.id, 51) is False
        await registry.beat(TWO, Figures(), [52, 51])
        await registry.in_order(51)
        assert await registry.give_up(3600, []) == []
        await registry.forget(TWO.id)
        assert await registry.give_up(3600, []) == [51, 52], "what it had brought back is lost with it"

    with_state(valkey, act)


def test_a_worker_that_was_given_up_learns_it_with_its_next_sign_of_life(valkey: ValkeySingle) -> None:
    """N3: it has slept too long; whatever it went on to fetch until its next upload would be fetched again."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "woken")
        assert (await registry.beat(ONE, Figures(), [71, 72])).given_up == frozenset()
        await registry.forget(ONE.id)
        assert await registry.give_up(3600, []) == [71, 72]
        assert (await registry.beat(ONE, Figures(), [71, 73])).given_up == {71}
        await registry.in_order(71)
        assert (await registry.beat(ONE, Figures(), [71, 73])).given_up == {71}

    with_state(valkey, act)


def test_a_writer_stays_given_up_when_whoever_put_it_in_order_leaves(valkey: ValkeySingle) -> None:
    """N3, W2: some of its files had arrived, and were brought back to be gone through; the others may turn up yet."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "tidied")
        await registry.beat(ONE, Figures(), [61])
        await registry.forget(ONE.id)
        assert await registry.give_up(3600, [61]) == [61]
        await registry.beat(TWO, Figures(), [62, 61])
        await registry.in_order(61)
        await registry.leave(TWO.id, [61, 62])
        assert await registry.may_upload(ONE.id, 61) is False

    with_state(valkey, act)


def test_a_writer_that_nobody_knows_counts_from_when_it_was_noticed(valkey: ValkeySingle) -> None:
    """N4: what a fail-over has lost of the register is waited for, and then given up, not forgotten."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "unknown")
        assert await registry.give_up(0.2, [41]) == []
        assert await registry.give_up(3600, [41]) == []
        await asyncio.sleep(0.3)
        assert await registry.give_up(0.2, [41]) == [41]

    with_state(valkey, act)


def test_all_workers_have_one_scope_and_the_same_terms(valkey: ValkeySingle) -> None:
    """S2, U3: what seeds let in is seen by all in order; a worker with another normal form is refused."""

    async def act(state: ValkeyState) -> None:
        registry, other = Registry(state, "terms"), Registry(state, "other")
        assert await registry.scope(0, 9) == []
        await registry.add_to_scope(b"domain example.org\n")
        await registry.add_to_scope(b"domain example.net\n")
        assert await registry.scope(0, 9) == [b"domain example.org\n", b"domain example.net\n"]
        assert await registry.scope(1, 9) == [b"domain example.net\n"]
        assert await other.scope(0, 9) == [], "N7: another crawl knows nothing of it"
        one, two = (Agreed(digest, {"urls.max_length": digest}) for digest in ("one", "two"))
        assert await Agreement(state, "terms").take(one) == one
        assert await Agreement(state, "terms").take(two) == one
        assert await Agreement(state, "other").take(two) == two

    with_state(valkey, act)


def test_a_server_that_is_away_or_refuses_is_told_in_a_sentence(valkey: ValkeySingle) -> None:
    """N4: away is waited for by whoever asked; what waiting does not mend says what to do."""

    async def away() -> None:
        await ValkeyState.open(servers_of(["redis://127.0.0.1:1"], {}), patience_s=0.3)

    async def refused() -> None:
        wrong = replace(servers_of(valkey.names, {}), user="nobody", password="wrong")  # noqa: S106 - nobody's
        await ValkeyState.open(wrong)

    with pytest.raises(EngineAwayError, match=r"127\.0\.0\.1:1 does not answer"):
        asyncio.run(away())
    with pytest.raises(EngineRefusedError, match="refused"):
        asyncio.run(refused())


NOBODY, SILENT = "redis://127.0.0.1:1", "redis://127.0.0.1:{}"


def test_where_nobody_listens_is_told_without_waiting_and_where_somebody_does_is_waited_for() -> None:
    """N4, C4: a refused connection is an answer; one server of several that takes connections may answer yet."""

    async def away(names: list[str], patience_s: float) -> None:
        await ValkeyState.open(servers_of(names, {}), patience_s, refused_s=0)

    with pytest.raises(EngineAwayError, match="does not answer: nobody listens there") as told:
        asyncio.run(away([NOBODY, "redis://localhost:1"], 600))
    assert told.value.hint == "see that it runs and can be reached"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        names = [NOBODY, SILENT.format(silent.getsockname()[1])]
        with pytest.raises(EngineAwayError, match="does not answer") as told:
            asyncio.run(away(names, 0.3))
    assert "nobody listens" not in str(told.value)


def test_whoever_waits_hears_once_for_what() -> None:
    """N4, C4: at once, and the wait goes on."""
    heard: list[str] = []

    async def away() -> None:
        await ValkeyState.open(servers_of([NOBODY], {}), 0.5, tell=heard.append)

    with pytest.raises(EngineAwayError, match="nobody listens there"):
        asyncio.run(away())
    assert heard == [
        "Valkey at 127.0.0.1:1 does not answer: nobody listens there; it is waited for, 0.5 s at most",
    ]


def test_a_worker_waits_where_nobody_listens_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """N4, C4: as a warning of the crawl."""
    heard: list[tuple[str, str]] = []
    opened = ValkeyState.open

    async def briefly(servers: ValkeyServers, **given: Any) -> ValkeyState:
        return await opened(servers, 0.3, **given)

    async def join() -> None:
        given = ("fleet.crawl=site", f"fleet.servers={NOBODY}", "archive.url=s3://b/x")
        settings = load(assignments=(*given, "catalogue.url=postgresql://n@127.0.0.1:1/x")).settings
        async with AsyncExitStack() as stack:
            await open_servers(settings, SystemClock(), "me", stack, lambda *told: heard.append(told))

    monkeypatch.setattr(ValkeyState, "open", briefly)
    monkeypatch.setattr("nephila.node.fleet.servers.PROMPT_S", 0.0)
    with pytest.raises(EngineAwayError):
        asyncio.run(join())
    ((reason, told),) = heard
    assert (reason, told.partition(";")[2]) == ("frontier_away", " it is waited for, 0.3 s at most")


@pytest.mark.parametrize(
    ("error", "nobody"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), True),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] Connect call failed"), True),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 101] Network is unreachable"), False),
        (OSError(errno.EHOSTUNREACH, "No route to host"), False),
        (OSError("[SSL] wrong version number"), False),
        (TimeoutError(), False),
        (ValueError("[Errno 111]"), False),
    ],
    ids=str,
)
def test_a_connection_that_every_address_refuses_means_that_nobody_listens(error: Exception, nobody: bool) -> None:
    """N4: what a network or a handshake says is something else."""
    assert nobody_listens(error) == nobody


@pytest.mark.parametrize(
    "order",
    [["fleet", "status"], ["fleet", "drain", "x"], ["seed", "example.org"], ["policy", "a.org", "--delay", "3"]],
    ids=" ".join,
)
def test_commands_are_told_where_nobody_listens(
    order: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C4, N4: those that look, and those that order."""
    monkeypatch.setattr(Valkey, "_pause", lambda *_: asyncio.sleep(0))
    file = tmp_path / "fleet.toml"
    file.write_text(
        f'[fleet]\ncrawl = "site"\nservers = ["{NOBODY}"]\n[archive]\nurl = "s3://b/x"\n'
        '[catalogue]\nurl = "postgresql://n@127.0.0.1:1/x"\n'
    )
    assert run([*order, "--config", str(file)]) == 1
    assert "Valkey at 127.0.0.1:1 does not answer: nobody listens there.\n" in capsys.readouterr().err


def test_names_of_crawls_and_numbers_of_writers() -> None:
    """N7: a name is safe in a key; numbers do not repeat."""
    assert check_crawl_name("web-2026_a") == "web-2026_a"
    for wrong in ("", "Web", "a{b}", "-a", "a b", "a.b", "1a", "x" * 56):
        with pytest.raises(UsageError, match="name"):
            check_crawl_name(wrong)
    assert len({draw_writer() for _ in range(1000)}) == 1000


def test_a_call_for_quiet_is_answered_by_each_worker_and_numbers_only_grow(valkey: ValkeySingle) -> None:
    """K2, N3: learned with a sign of life, answered with one; a worker that begins anew has not answered."""

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "quiet")
        assert (await registry.beat(ONE, Figures(), [1])).call == 0
        first = await registry.call_for_quiet()
        assert (await registry.beat(ONE, Figures(), [1])).call == first > 0
        assert [one.quiet for one in (await registry.roll()).workers] == [0]
        await registry.beat(ONE, Figures(), [1], quiet=first)
        assert [one.quiet for one in (await registry.roll()).workers] == [first]
        second = await registry.call_for_quiet()
        assert second > first
        assert await registry.call_for_quiet(first) == first, "one that was made is made again by its number"
        assert (await registry.beat(TWO, Figures(), [2])).call == second
        await state.call("SET", "nephila:{quiet}:fleet:call", first)  # a server that failed over has lost it
        assert await registry.call_for_quiet(second) == second
        assert (await registry.beat(ONE, Figures(), [1])).call == second
        assert [one.quiet for one in (await registry.roll()).workers] == [0, 0], "it was started again"
        await registry.leave(ONE.id, [1])
        assert [one.member for one in (await registry.roll()).workers] == [TWO]

    with_state(valkey, act)


def test_who_keeps_things_elsewhere_than_the_crawl_is_refused_until_it_has_moved(valkey: ValkeySingle) -> None:
    """N3, W2, W3: another database, other tables, another store, whoever else is there; no secret is written down."""
    first = Settings(
        fleet=FleetSettings(crawl="elsewhere", worker="first", servers=tuple(valkey.names)),
        catalogue=CatalogueSettings(url="postgresql://me@db/crawls"),
        archive=ArchiveSettings(url="s3://b/elsewhere"),
        s3=S3Settings(endpoint="http://store:8333"),
    )
    same = replace(
        first,
        catalogue=replace(first.catalogue, url="postgres://you@db:5432/crawls"),
        s3=replace(first.s3, endpoint="http://store:8333/"),
    )
    database = replace(first, catalogue=replace(first.catalogue, url="postgresql://me@other:5432/crawls"))
    tables = replace(first, catalogue=replace(first.catalogue, name="others"))
    store = replace(first, s3=replace(first.s3, endpoint="http://other:8333"))

    async def act(state: ValkeyState) -> None:
        registry = Registry(state, "elsewhere")
        assert (await Agreement(state, "elsewhere").read()).places == {}
        with pytest.raises(UsageError, match="nobody has worked on the crawl elsewhere"):
            await asyncio.to_thread(move_places, database)
        await agree(state, first)
        await agree(state, same)
        at = r"crawl elsewhere is kept at crawls at db:5432 \(crawl_elsewhere\), and these settings say "
        for other, words in (
            (database, at + r"crawls at other:5432 \(crawl_elsewhere\)"),
            (tables, at + r"crawls at db:5432 \(crawl_others\)"),
            (
                store,
                "the archive of the crawl elsewhere is kept at http://store:8333, and these settings say http://other",
            ),
        ):
            with pytest.raises(UsageError, match=words) as told:
                await agree(state, other)
            assert "fleet moved" in told.value.hint
        assert "me" not in str((await Agreement(state, "elsewhere").read()).places).replace("elsewhere", "")
        await registry.beat(ONE, Figures(), [11])
        with pytest.raises(UsageError, match="orb-1 of the crawl elsewhere would go on"):
            await asyncio.to_thread(move_places, database)
        await registry.leave(ONE.id, [11])
        (changed,) = await asyncio.to_thread(move_places, database)
        assert changed[:2] == ("elsewhere", "catalogue")
        assert await asyncio.to_thread(move_places, database) == []
        await agree(state, database)
        with pytest.raises(UsageError, match="is kept at crawls at other"):
            await agree(state, first)

    with_state(valkey, act)


def test_a_worker_of_a_group_without_a_region_is_told_what_it_asks() -> None:
    """N6: where others have one, its name may be a slip."""
    told: list[tuple[str, str]] = []
    fleet = FleetSettings(crawl="web", regions=("eu=de",), group="ue")
    introduce(Settings(fleet=fleet), lambda reason, detail: told.append((reason, detail)))
    assert [reason for reason, _ in told] == ["group"]
    assert "asks what is nobody's" in told[0][1]
    introduce(Settings(fleet=replace(fleet, group="eu")), lambda reason, detail: told.append((reason, detail)))
    assert len(told) == 1
