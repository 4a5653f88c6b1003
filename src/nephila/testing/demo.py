"""The web that `nephila demo` crawls: everything interesting, small enough to watch from beginning to end.

Sized for a delay of 0.2 to 0.5 s: hosts are of like size, waits are scaled down, and nothing hangs, so that no single
host holds up the end.
"""

from __future__ import annotations

from .web.roles import FAILING_ROLES, Role
from .web.spec import HostMix, PageMix, Timing, WebSpec

_DEMO_SEED = 133
"""One of those at which every phenomenon can be met, although there are only a few pages for each."""
_HANGING = frozenset({Role.HANG, Role.HANG_BODY})


def demo_spec(seed: int = _DEMO_SEED) -> WebSpec:
    """About 40 hosts and 360 pages; a crawl with a delay of 0.5 s ends within 25 s."""
    return WebSpec(
        seed=seed,
        hosts=40,
        pages=360,
        page_bytes=4000,
        links_per_page=16,
        host_mix=HostMix(skew=0.3, refusing=0.03, nameless=0.03),
        page_mix=PageMix(
            failures=tuple(role for role in FAILING_ROLES if role not in _HANGING), chains=(2, 3), dripping=0.01
        ),
        timing=Timing(latency_ms=30, slow_ms=700, drip_bytes_s=6000, crawl_delay_s=1.0, retry_after_s=1, change_s=60),
    )
