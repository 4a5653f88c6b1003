"""What the metadata of every capture say of the circumstances."""

from __future__ import annotations

from nephila.model.task import Lease


def policy_notes(lease: Lease) -> list[tuple[str, str]]:
    """What a policy of the domain changed of the pace (R4): `audit` holds the gaps against it."""
    return [("policyDelayMs", str(lease.pace.base_ms))] if lease.pace.base_ms >= 0 else []
