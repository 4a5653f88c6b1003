"""Plugins that raise, hang, die and talk nonsense, each where it lives: named, isolated, counted, switched off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from sample_plugins import Awaited, Counts, Favours, Hook, KeepsOut, Lines, Misfit, Quick, Unloadable
from simulation import Recorder

from nephila.model.errors import UsageError
from nephila.model.events import Event, EventKind
from nephila.model.page import Link
from nephila.model.plugin import Glimpse, OutgoingRequest, PageRecord
from nephila.model.settings import Settings
from nephila.model.task import Candidate
from nephila.node.clock import SystemClock
from nephila.node.extending import extensions_of
from nephila.plugins import PluginExtensions
from nephila.plugins.child import Confines
from nephila.plugins.offspring import Child
from nephila.render import processes
from nephila.urls import Address, Fingerprint

T = TypeVar("T")
PAGE = Glimpse("https://a.test/", 0, 200)
URLS = ("https://a.test/one", "https://a.test/draft/two", "https://a.test/three")
LINKS = [Link(url, "a", "", "") for url in URLS]
CANDIDATES = [Candidate(Address(url, "a.test", url, Fingerprint(url.encode())), 1) for url in URLS]


def settings_with(**plugins: object) -> Settings:
    defaults = Settings()
    return replace(defaults, plugins=replace(defaults.plugins, **plugins))  # type: ignore[arg-type]


def run(
    plugins: Sequence[object],
    doing: Callable[[PluginExtensions], Awaitable[T]],
    *,
    settings: Settings | None = None,
    recorder: Recorder | None = None,
) -> T:
    """Do something with the plugins of a crawl; they are closed afterwards."""

    async def whole() -> T:
        extensions = extensions_of(settings or Settings(), plugins, SystemClock(), threaded=True)
        assert extensions is not None
        extensions.tell(recorder or Recorder())
        try:
            return await doing(extensions)
        finally:
            await extensions.end()

    return asyncio.run(asyncio.wait_for(whole(), 60))


async def sift(extensions: PluginExtensions) -> list[str]:
    left, _ = await extensions.sift(PAGE, LINKS, CANDIDATES)
    return [one.address.url for one in left]


@pytest.mark.parametrize("kind", [KeepsOut, Quick, Awaited])
def test_a_filter_keeps_out_what_it_names_wherever_it_lives(kind: type[KeepsOut]) -> None:
    """E1, T8: in a process of its own, on the loop, awaited: the same answer, and a reason for `why`."""

    async def doing(extensions: PluginExtensions) -> tuple[list[str], list[str]]:
        left, refused = await extensions.sift(PAGE, LINKS, CANDIDATES)
        return [one.address.url for one in left], [f"{one.address.url} {one.reason} {one.detail}" for one in refused]

    left, refused = run([kind()], doing)
    assert left == [URLS[0], URLS[2]]
    assert refused == [f"{URLS[1]} plugin {kind().name}: has draft"]


@pytest.mark.parametrize(
    ("kind", "misbehave", "told"),
    [
        (KeepsOut, "raise", "failed: ValueError: no idea at all"),
        (KeepsOut, "exit", "failed: SystemExit: 3"),
        (KeepsOut, "die", "failed: its process ended with exit code 7"),
        (KeepsOut, "hang", "overran: no answer within 0.5 s"),
        (KeepsOut, "nonsense", "failed: 1 answers for 3 links"),
        (KeepsOut, "wrong type", "failed: verdicts: a list is expected, not int"),
        (KeepsOut, "hoard", "failed: MemoryError"),
        (Quick, "raise", "failed: ValueError: no idea at all"),
        (Quick, "exit", "failed: SystemExit: 3"),
        (Quick, "nonsense", "failed: 1 answers for 3 links"),
        (Awaited, "raise", "failed: ValueError: no idea at all"),
        (Awaited, "exit", "failed: SystemExit: 3"),
        (Misfit, "signature", "failed: TypeError: Misfit.filter_links() takes 2 positional arguments but 3 were given"),
        (Awaited, "hang", "overran: no answer within 0.5 s"),
        (Awaited, "stubborn", "overran: no answer within 0.5 s"),
        (Awaited, "nonsense", "failed: 1 answers for 3 links"),
    ],
)
def test_what_a_plugin_does_wrong_is_a_named_event_and_nothing_else(
    kind: type[KeepsOut], misbehave: str, told: str
) -> None:
    """E1: links stay as they were, the failure has the plugin's name and the page, and a warning tells of the first."""
    recorder = Recorder()
    plugin = kind(misbehave=misbehave)

    async def doing(extensions: PluginExtensions) -> tuple[list[str], int]:
        left = await sift(extensions)
        return left, extensions.plugins[0].failures

    left, failures = run([plugin], doing, settings=settings_with(deadline_s=0.5), recorder=recorder)
    assert left == list(URLS)
    assert failures == 1
    [failed] = [event for event in recorder.events if event.kind is EventKind.PLUGIN_FAILED]
    assert (failed.reason, failed.url) == (plugin.name, PAGE.url)
    assert failed.detail.startswith(told)
    [warned] = [event for event in recorder.events if event.kind is EventKind.WARNING]
    assert plugin.name in warned.detail


def test_a_hung_process_is_ended_and_the_next_call_has_a_new_one() -> None:
    """E1: what it remembered is lost, what it is asked next it answers; no process is left."""

    async def doing(extensions: PluginExtensions) -> tuple[list[int], list[int]]:
        points = []
        for title in ("", "", "hang", ""):
            left, _ = await extensions.sift(replace(PAGE, title=title), LINKS, CANDIDATES)  # type: ignore[type-var]
            points.append(left[0].bonus)
        return points, [extensions.plugins[0].failures, extensions.plugins[0].overruns]

    points, counts = run([Counts()], doing, settings=settings_with(deadline_s=1.0))
    assert points == [1, 2, 0, 1]
    assert counts == [1, 1]
    assert not _children()


def _children() -> list[str]:
    """Processes of plugins that are ours."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append((folder / "cmdline").read_bytes().decode())
        except (OSError, IndexError):
            continue
    return [line for line in found if "nephila-plugin" in line]


@pytest.mark.parametrize("kind", [KeepsOut, Quick, Awaited])
def test_after_several_failures_in_a_row_it_is_switched_off(kind: type[KeepsOut]) -> None:
    """E1: then it costs nothing any more; one event and one warning say so."""
    recorder = Recorder()

    async def doing(extensions: PluginExtensions) -> tuple[int, bool]:
        for _ in range(6):
            assert await sift(extensions) == list(URLS)
        return extensions.plugins[0].failures, extensions.plugins[0].is_off

    failures, off = run([kind(misbehave="raise")], doing, settings=settings_with(failures=3), recorder=recorder)
    assert (failures, off) == (3, True)
    assert len(recorder.urls(EventKind.PLUGIN_FAILED)) == 3
    assert len(recorder.urls(EventKind.PLUGIN_OFF)) == 1
    assert any("switched off" in event.detail for event in recorder.events if event.kind is EventKind.WARNING)


def test_many_overruns_switch_it_off_though_it_answers_in_between() -> None:
    """E1: each costs somebody a deadline, so that their number is bounded."""

    async def doing(extensions: PluginExtensions) -> int:
        for number in range(8):
            title = "hang" if number % 2 else ""
            await extensions.sift(replace(PAGE, title=title), LINKS, CANDIDATES)  # type: ignore[type-var]
        return extensions.plugins[0].overruns

    assert run([Counts()], doing, settings=settings_with(deadline_s=0.6, overruns=2)) == 2


def test_a_quick_plugin_that_is_slow_is_timed_and_switched_off() -> None:
    """E1: it cannot be interrupted, so it is not asked again."""

    class Slow(Quick):
        def filter_links(self, page: Glimpse, links: Sequence[Link]) -> list[bool | str]:
            return [bool(sum(range(2_000_000))) and False for _ in links]

    async def doing(extensions: PluginExtensions) -> tuple[list[str], bool]:
        for _ in range(3):
            left = await sift(extensions)
        return left, extensions.plugins[0].is_off

    left, off = run([Slow()], doing, settings=settings_with(quick_s=0.001, failures=2))
    assert left == list(URLS)
    assert off


def test_many_calls_at_once_wait_for_each_other_and_a_hang_holds_none_for_long() -> None:
    """E1: with a hundred pages in flight, a plugin that always hangs costs its deadlines until it is off."""

    async def doing(extensions: PluginExtensions) -> tuple[set[tuple[str, ...]], float]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        found = await asyncio.gather(*(sift(extensions) for _ in range(100)))
        return {tuple(one) for one in found}, loop.time() - started

    found, took = run([KeepsOut(misbehave="hang")], doing, settings=settings_with(deadline_s=0.3, failures=3))
    assert found == {URLS}
    assert took < 15


def test_a_scorer_adds_points_after_the_filters() -> None:
    """E1, R1: in the order in which they were given, on what is left."""

    async def doing(extensions: PluginExtensions) -> list[tuple[str, int]]:
        left, _ = await extensions.sift(PAGE, LINKS, CANDIDATES)
        return [(one.address.url, one.bonus) for one in left]

    assert run([Favours("three"), KeepsOut()], doing) == [(URLS[0], 0), (URLS[2], 50)]


def test_hooks_add_what_they_may_and_veto_by_name() -> None:
    """E1, K4: refused headers are left out and told once; so are added ones, so that nothing is sent in silence."""
    recorder = Recorder()
    hook = Hook([("X-Purpose", "research"), ("Authorization", "Basic x"), ("Cookie", "a=b")], veto="secret")

    async def doing(extensions: PluginExtensions) -> list[object]:
        requests = [OutgoingRequest(url, "a.test", 1) for url in ("https://a.test/1", "https://a.test/2")]
        advice: list[object] = [(await extensions.before(one)).headers for one in requests]
        return [*advice, (await extensions.before(OutgoingRequest("https://a.test/secret", "a.test", 1))).veto]

    allowed = (("X-Purpose", "research"),)
    assert run([hook], doing, recorder=recorder) == [allowed, allowed, "hook: not this one"]
    warned = [event.detail for event in recorder.events]
    assert len(warned) == 3
    assert sum("is not added: it carries credentials" in line for line in warned) == 2


def record(number: int) -> PageRecord:
    url = f"https://a.test/{number}"
    return PageRecord(url, 200, 0, 1, "", (), "", "", (), "", "", "", body=b"x" * 100)


def test_sinks_get_every_record_in_order_and_are_closed(tmp_path: Path) -> None:
    """E1: in batches, beside the crawl; bodies only where they are wanted."""
    file = tmp_path / "lines"

    async def doing(extensions: PluginExtensions) -> None:
        for number in range(1000):
            await extensions.deliver(record(number))
        for _ in range(500):
            extensions.emit(Event(EventKind.FETCH_OK, 0))

    run([Lines(str(file))], doing)
    lines = file.read_text().splitlines()
    assert [line for line in lines if line.startswith("page")] == [f"page https://a.test/{n} 0 0" for n in range(1000)]
    assert lines.count("event fetch_ok") == 500
    assert lines[-1] == "closed"


def test_records_that_a_sink_refused_are_counted_as_lost(tmp_path: Path) -> None:
    """E1: nothing is lost in silence."""

    async def doing(extensions: PluginExtensions) -> tuple[int, int]:
        for number in range(200):
            await extensions.deliver(record(number))
        await extensions.settle()
        return extensions.plugins[0].lost, extensions.plugins[0].failures

    lost, failures = run([Lines(str(tmp_path / "lines"), fail_first=1)], doing)
    assert failures == 1
    kept = [line for line in (tmp_path / "lines").read_text().splitlines() if line.startswith("page")]
    assert 0 < lost == 200 - len(kept)


def test_objects_that_cannot_cross_are_refused_before_the_crawl() -> None:
    """E1: a class inside a function cannot be found in another process: one sentence, and what to do."""

    class Hidden(KeepsOut):
        pass

    with pytest.raises(UsageError, match="cannot be given to a process of its own") as told:
        run([Hidden()], sift)
    assert "quick" in told.value.hint


def test_a_process_that_cannot_be_started_is_a_failure_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """E1, Q5: where descriptors or processes have run out, links stay, and the plugin is named."""
    recorder = Recorder()

    async def refuse(*_: object, **__: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    assert run([KeepsOut()], sift, recorder=recorder) == list(URLS)
    [failed] = [event for event in recorder.events if event.kind is EventKind.PLUGIN_FAILED]
    assert failed.detail == "failed: its process cannot be started: Resource temporarily unavailable"


def test_a_plugin_that_cannot_be_made_in_its_process_fails_each_time_until_it_is_off() -> None:
    """E1: told with what it raised there; no process is left."""
    recorder = Recorder()

    async def doing(extensions: PluginExtensions) -> int:
        for _ in range(3):
            assert await sift(extensions) == list(URLS)
        return extensions.plugins[0].failures

    assert run([Unloadable()], doing, settings=settings_with(failures=2), recorder=recorder) == 2
    assert "it does not start: RuntimeError: no home here" in recorder.events[0].detail
    assert not _children()


def test_two_plugins_of_one_name_are_refused() -> None:
    """E1: failures are counted by name."""
    with pytest.raises(UsageError, match="two plugins are called keeps-out"):
        run([KeepsOut(), KeepsOut()], sift)


@pytest.mark.parametrize("sealed", [True, False])
def test_who_reads_hostile_documents_is_told_no_password(monkeypatch: pytest.MonkeyPatch, *, sealed: bool) -> None:
    """X4, K4: a plugin of somebody's own may need one, the readers that ship do not."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nobody-is-to-see")

    async def whole() -> bytes:
        child = Child("counts", Counts(), Confines(0, sealed=sealed))
        try:
            await child.call("score_links", (PAGE, []), 0, 60)
            (process,) = [pid for pid in processes.family_of(os.getpid()) if b"nephila-plugin-counts" in _told(pid)]
            return _told(process, "environ")
        finally:
            await child.close(5, says_so=False)

    environ = asyncio.run(whole())
    assert b"PATH=" in environ
    assert (b"nobody-is-to-see" in environ) is not sealed


def _told(pid: int, what: str = "cmdline") -> bytes:
    return Path(f"/proc/{pid}/{what}").read_bytes()
