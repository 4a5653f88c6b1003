"""Which server of a cluster keeps a key: the hash slots, and the answers that say where they are."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Sequence

from .valkey_servers import ServerAddress
from .valkey_wire import Reply

SLOTS = 16384
PASSING = frozenset(
    ("TRYAGAIN", "LOADING", "CLUSTERDOWN", "READONLY", "MASTERDOWN", "BUSY", "NOREPLICAS", "MISCONF", "OOM")
)
"""Errors that end by themselves, or when somebody makes room: a fail-over, a server that starts, a slot that moves."""


def slot_of(key: str) -> int:
    """The slot of a key: of the part in braces, where it has one."""
    begin = key.find("{")
    if begin >= 0:
        end = key.find("}", begin + 1)
        if end > begin + 1:
            key = key[begin + 1 : end]
    return crc_hqx(key.encode(), 0) % SLOTS


def read_slots(reply: Sequence[Reply], asked: ServerAddress) -> list[ServerAddress | None]:
    """The primary of every slot, from CLUSTER SLOTS."""
    slots: list[ServerAddress | None] = [None] * SLOTS
    for first, last, primary, *_ in reply:
        host = primary[0].decode() if primary[0] else asked.host
        address = ServerAddress(host, int(primary[1]))
        slots[first : last + 1] = [address] * (last - first + 1)
    return slots


def redirected(message: str, asked: ServerAddress) -> tuple[int, ServerAddress]:
    """Slot and server that MOVED or ASK names."""
    _, slot, where = message.split(" ")[:3]
    host, _, port = where.rpartition(":")
    return int(slot), ServerAddress(host.strip("[]") or asked.host, int(port))
