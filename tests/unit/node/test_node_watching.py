"""What is overheard of a crawl, and which delay its conscience holds it to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from nephila.model.events import Event, EventKind
from nephila.model.settings import Settings
from nephila.node.watching import BUSY_WINDOW_MS, Overhearing, Watch

NOW = 1_794_000_000_000


def fetched(host: str, status: int, at: int = NOW) -> Event:
    return Event(EventKind.FETCH_OK, at, f"https://{host}/", b"f" * 16, host, 1, status)


def test_hosts_that_say_we_ask_too_much_are_counted_for_minutes() -> None:
    """O2: 429 and 503 by host, the most first, forgotten after five minutes."""
    heard = Overhearing()
    for host, status in (("a.test", 429), ("a.test", 503), ("b.test", 503), ("c.test", 500), ("d.test", 200)):
        heard.emit(fetched(host, status))
    assert heard.busy_hosts(NOW) == {"a.test": 2, "b.test": 1}
    assert heard.busy_hosts(NOW + BUSY_WINDOW_MS + 1) == {}


def test_a_few_pages_are_kept_to_be_asked_about() -> None:
    """O2: the latest, once; no errors, no robots.txt."""
    heard = Overhearing()
    for number in range(20):
        heard.emit(fetched(f"h{number}.test", 200))
    heard.emit(fetched("bad.test", 404))
    taken = heard.take_stored()
    assert [host for host, _ in taken] == [f"h{number}.test" for number in range(15, 20)]
    assert heard.take_stored() == []
    assert heard.glances


def test_the_shortest_delay_of_late_is_what_counts() -> None:
    """P5, R4: neither a policy that was just made nor one that was just taken back makes a violation of the past."""
    watch: Any = SimpleNamespace(_settings=Settings(), _delays=[{"a.test": 0.1, "b.test": 9.0}, {}, {"c.test": 0.5}])
    least = {name: Watch._least_delay_ms(watch, f"www.{name}") for name in ("a.test", "b.test", "c.test", "d.test")}
    assert least == {"a.test": 100, "b.test": 1000, "c.test": 500, "d.test": 1000}
