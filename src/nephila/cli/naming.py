"""How this program was called, so that the commands it suggests can be copied as they stand."""

from __future__ import annotations

import os


def command_name() -> str:
    """``./nephila`` from a checkout (its script says so in NEPHILA_COMMAND), else ``nephila``."""
    return os.environ.get("NEPHILA_COMMAND") or "nephila"
