"""What a run has undertaken towards the sites it asks: the settings that an audit holds its requests against (K1, P5).

They are written down where the requests are, in the warcinfo record of every archive file and in the first line of a
process in every event file, because settings change from run to run and whoever checks a trail has nothing but the
trail.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from .settings import Settings


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one run. Times in milliseconds. Defaults are those of the settings."""

    user_agent: str = ""
    delay_ms: int = 1000
    obey_robots: bool = True
    robots_fresh_ms: int = 86_400_000
    robots_give_up_ms: int = 30 * 86_400_000
    robots_permissive: bool = False
    robots_max_hops: int = 5
    max_retry_after_ms: int = 86_400_000
    address_limited: bool = True
    """Whether limits per address hold at all: not under a delay of 0."""
    address_concurrency: int = 4
    address_rate: float = 10.0
    address_limits: tuple[str, ...] = ()
    """Ranges with limits of their own, as the setting writes them."""
    allow_addresses: tuple[str, ...] = ()
    """Ranges that are open although they are not public."""
    proxied: bool = False
    """Whether a proxy stood between: the addresses on record are then the proxy's."""
    visit_requests: int = 30
    visit_at_once: int = 2
    """What a page in a browser may ask its host for (J3)."""
    lease_ms: int = 300_000
    """For so long may rules be used that were in force when a host was claimed."""

    @classmethod
    def of(cls, settings: Settings) -> Terms:
        """The terms that these settings make."""
        politeness, robots, fetch = settings.politeness, settings.robots, settings.fetch
        return cls(
            user_agent=fetch.user_agent,
            delay_ms=round(politeness.delay_s * 1000),
            obey_robots=robots.obey,
            robots_fresh_ms=round(robots.fresh_s * 1000),
            robots_give_up_ms=round(robots.give_up_s * 1000),
            robots_permissive=robots.permissive,
            robots_max_hops=robots.max_hops,
            max_retry_after_ms=round(politeness.max_retry_after_s * 1000),
            address_limited=politeness.delay_s > 0,
            address_concurrency=politeness.address_concurrency,
            address_rate=politeness.address_rate,
            address_limits=politeness.address_limits,
            allow_addresses=fetch.allow_addresses,
            proxied=bool(fetch.proxy),
            visit_requests=settings.render.max_requests,
            visit_at_once=settings.render.requests_at_once,
            lease_ms=round(settings.frontier.lease_s * 1000),
        )

    def to_json(self) -> str:
        """On one line, in ASCII."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Terms | None:
        """Read `to_json` back; None for what is none. What another version knew and we do not is passed over."""
        try:
            data = json.loads(text)
        except ValueError:
            return None
        if not isinstance(data, dict):
            return None
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        wanted = {name: value for name, value in values.items() if name in known}
        default = cls()
        for name, value in wanted.items():
            expected = type(getattr(default, name))
            if not isinstance(value, expected) and not (expected is float and isinstance(value, int)):
                return None
        return cls(**wanted)
