"""When we may ask a host, and for what: robots.txt, pace, addresses, retries. Pure decisions; nothing here waits."""

from .address_limits import AddressLimit, AddressLimits
from .addresses import AddressFigures, MemoryAddressLedger, address_ledger
from .agent import check_user_agent, names_contact, product_token
from .conduct import StandardPoliteness
from .pace import (
    Observation,
    base_delay_ms,
    first_pace,
    next_pace,
    observe,
    parks,
    retry_after_ms,
    wait_ms,
    with_crawl_delay,
)
from .retry import retry_wait_ms
from .robots import RobotsFile, parse_robots
from .robots_answer import judge_robots
from .robots_match import Rules, Verdict
from .shared_addresses import SharedAddressLedger, mark_resumed, shared_ledger, shared_table

__all__ = [
    "AddressFigures",
    "AddressLimit",
    "AddressLimits",
    "MemoryAddressLedger",
    "Observation",
    "RobotsFile",
    "Rules",
    "SharedAddressLedger",
    "StandardPoliteness",
    "Verdict",
    "address_ledger",
    "base_delay_ms",
    "check_user_agent",
    "first_pace",
    "judge_robots",
    "mark_resumed",
    "names_contact",
    "next_pace",
    "observe",
    "parks",
    "parse_robots",
    "product_token",
    "retry_after_ms",
    "retry_wait_ms",
    "shared_ledger",
    "shared_table",
    "wait_ms",
    "with_crawl_delay",
]
