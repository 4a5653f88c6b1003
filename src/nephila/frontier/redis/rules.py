"""The rules of a crawl, as the functions in Lua read them."""

from __future__ import annotations

from typing import Any

import msgspec
from xxhash import xxh3_64_hexdigest

from nephila.frontier import order, traps
from nephila.frontier.policy import Policy
from nephila.frontier.span import SHORT_DELAY_MS
from nephila.interfaces.recrawl import RecrawlPolicy
from nephila.model.policy import DomainPolicy

_FLIP = 0x1CAD_21F7_2C81_017C ^ 0xDB97_9083_E96D_D4DE
"""Of xxh3's secret, what inputs of eight bytes are mixed with."""
_WORD = (1 << 64) - 1
_HALF = 0xFFFF_FFFF


def _flip(seed: int) -> tuple[int, int]:
    """What a seed flips of the eight bytes that are hashed (xxh3, inputs of 4 to 8 bytes)."""
    seed &= _WORD
    swapped = int.from_bytes((seed & _HALF).to_bytes(4, "big"), "little")
    flip = (_FLIP - (seed ^ swapped << 32)) & _WORD
    return flip >> 32, flip & _HALF


def rules_of(policy: Policy, shard: int, shards: int, *, compact: bool) -> dict[str, Any]:
    """All that the functions ask of the settings."""
    priority, budget, trapping, polite = policy.priority, policy.budget, policy.traps, policy.politeness
    seed = policy.random_seed
    return {
        "shard": shard,
        "shards": shards,
        "compact": compact,
        "base_delay_ms": policy.base_delay_ms,
        "max_pages_per_host": policy.max_pages_per_host,
        "robots": policy.robots,
        "ordered": policy.ordered,
        "ordered_wait_ms": policy.ordered_wait_ms,
        "look_ahead_ms": policy.settings.look_ahead_ms,
        "urls_per_lease": policy.settings.urls_per_lease,
        "lease_span_ms": policy.lease_span_ms,
        "short_delay_ms": SHORT_DELAY_MS,
        "cooldown_s": policy.settings.cooldown_s,
        "max_refusals": max(1, policy.settings.max_refusals // shards) if policy.settings.max_refusals else 0,
        "spill_above": policy.settings.spill_above,
        "spill_keep": min(policy.settings.spill_keep, max(0, policy.settings.spill_above - 1)),
        "target_domains": policy.target_domains,
        "domains_elsewhere": 0,
        "tie_seed": seed & _HALF,
        "flips": [*_flip(seed), *_flip(seed + 1), *_flip(seed ^ 0x5EED)],
        "step_ms": order.step_ms(priority),
        "starving_ms": int(priority.starving_s * 1000),
        "shares": [priority.high_share, priority.medium_share, priority.low_share],
        **{
            name: getattr(priority, name)
            for name in (
                "authority", "depth", "depth_step", "freshness", "news", "high_from", "medium_from", "new_share",
                "due_share", "reserve",
            )
        },
        **msgspec.to_builtins(budget),
        **{name: getattr(trapping, name) for name in ("slow_after", "stop_after", "poured_per_hour", "times_its_like")},
        "tallied_from": traps.TALLIED_FROM,
        "slow_s": int(trapping.slow_s),
        "probe_s": int(trapping.probe_s),
        "pause_window": polite.pause_window,
        "pause_share": polite.pause_share,
        "pause_ms": int(polite.pause_s * 1000),
        "demote_after": polite.demote_after,
        **({} if policy.recrawl is None else _recrawl(policy.recrawl)),
    }  # fmt: skip


def _recrawl(recrawl: RecrawlPolicy) -> dict[str, Any]:
    """What visits are planned by, and a name for it."""
    terms = recrawl.terms._asdict()
    return {"recrawl": terms, "terms": xxh3_64_hexdigest(msgspec.json.encode(terms))}


def packed(policy: Policy, shard: int, shards: int, *, compact: bool) -> tuple[str, bytes]:
    """The rules as they are stored with a shard, and a name for this version of them."""
    text = msgspec.json.encode(rules_of(policy, shard, shards, compact=compact))
    return xxh3_64_hexdigest(text), text


def pack_policy(policy: DomainPolicy) -> bytes:
    """What a person decided for a domain; what is not set is left out."""
    told: dict[str, Any] = {
        "tier": str(policy.tier),
        "hours": policy.hours,
        "quality": policy.quality,
        "user_agent": policy.user_agent,
        "paused": policy.paused,
        "render": str(policy.render),
    }
    if policy.delay_s is not None:
        told["delay_ms"] = int(policy.delay_s * 1000)
        told["delay_s"] = policy.delay_s
    if policy.max_depth is not None:
        told["max_depth"] = policy.max_depth
    if policy.recrawl_s is not None:
        told["recrawl_s"] = policy.recrawl_s
    return msgspec.json.encode(told)


def read_policy(raw: bytes) -> DomainPolicy:
    """The same, back."""
    told = msgspec.json.decode(raw)
    told.pop("delay_ms", None)
    return msgspec.convert(told, DomainPolicy)
