"""How what people decide is shown, in answers and in the log of changes."""

from __future__ import annotations

from nephila.model.policy import Block, DomainPolicy

from . import asked, given

ORDINARY = DomainPolicy()
HOUR_S = 3600


def policy_given(domain: str, policy: DomainPolicy | None) -> given.PolicyGiven:
    """A policy as it is shown; that of nobody is the ordinary one."""
    known = policy or ORDINARY
    return given.PolicyGiven(
        domain=domain,
        max_qps=1 / known.delay_s if known.delay_s and known.delay_s * asked.MOST_QPS >= 1 else None,
        delay_s=known.delay_s,
        crawl_depth=known.max_depth,
        tier=str(known.tier),
        recrawl_interval_hours=None if known.recrawl_s is None else known.recrawl_s / HOUR_S,
        user_agent=known.user_agent,
        hours=list(known.hours),
        paused=known.paused,
        quality=known.quality,
        render=str(known.render),
    )


def block_given(block: Block) -> given.BlockGiven:
    """A block as it is shown."""
    return given.BlockGiven(pattern=block.pattern, reason=block.reason, blocked_at=block.at)
