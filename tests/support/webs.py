"""The standard web as end-to-end tests serve it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from served import ServedWeb

from nephila.testing.web import AuditReport, WebSpec

DELAY_S = 0.05


@dataclass(frozen=True)
class Crawled:
    """A finished crawl of the standard web over real sockets."""

    web: ServedWeb
    out: Path
    summary: dict[str, Any]
    audit: AuditReport


def standard_served(seed: int) -> tuple[WebSpec, tuple[str, ...]]:
    """The standard web with its slow parts made quicker, and the arguments that serve it."""
    spec = WebSpec.standard(seed)
    spec = replace(spec, timing=replace(spec.timing, slow_ms=60, crawl_delay_s=0.1))
    arguments = ("--seed", str(seed), "--slow-ms", "60", "--crawl-delay", "0.1")
    return spec, (*arguments, "--base-delay-ms", str(DELAY_S * 1000))
