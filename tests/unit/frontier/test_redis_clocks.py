"""The engine's time, as a worker knows it."""

from __future__ import annotations

from nephila.frontier.redis.clocks import RemoteTimeline


class Clock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.ms = 1_000

    def steady_ms(self) -> int:
        return self.ms

    def wall_ms(self) -> int:
        return 0

    def boot_id(self) -> str:
        return "boot"


def test_late_answers_do_not_set_the_timeline_back() -> None:
    """P2, N4: a rest that was reckoned after hundreds of late answers is not cut short by the next good one."""
    clock, ahead_ms = Clock(), 500_000
    timeline = RemoteTimeline(clock)
    timeline.heard(clock.ms + ahead_ms)
    clock.ms += 7_000
    for _ in range(256):  # all shards answered at once, and one of them after a fail-over: all were waited for
        timeline.heard(clock.ms + ahead_ms - 7_000)
    rest_until = timeline.now() + 400
    clock.ms += 10
    timeline.heard(clock.ms + ahead_ms)
    assert rest_until - timeline.now() >= 390 - 2, "what is left of the rest"
    assert timeline.now() <= clock.ms + ahead_ms, "never early"


def test_the_timeline_follows_an_engine_whose_clock_runs_slower() -> None:
    """N4: an old answer fades as fast as clocks drift, so that a worker is not early for ever."""
    clock = Clock()
    timeline = RemoteTimeline(clock)
    engine = 100_000.0
    timeline.heard(int(engine))
    for _ in range(1_000):
        clock.ms += 1_000
        engine += 999.9
        timeline.heard(int(engine))
        assert timeline.now() - engine <= 1


def test_before_anything_is_heard_the_wall_clock_must_do() -> None:
    """N4: there is nothing else."""
    assert RemoteTimeline(Clock()).now() == 0


def test_a_shard_whose_server_is_behind_the_others_is_known_to_be() -> None:
    """P1, N4: its moments are told in the worker's time, which is that of the server furthest ahead."""
    clock = Clock()
    timeline = RemoteTimeline(clock)
    timeline.heard(clock.ms + 100_000, 0)
    timeline.heard(clock.ms + 99_300, 1)
    assert (timeline.behind(0), timeline.behind(1)) == (0, 700)
    clock.ms += 50
    timeline.heard(clock.ms + 99_300 - 40, 1)  # it took long to come: a worse bound
    assert timeline.behind(1) == 700
    assert timeline.now() == clock.ms + 100_000
