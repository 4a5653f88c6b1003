"""The functions as one library: the files of `lua/`, joined.

Its name holds a digest of its text, so that workers of two releases never call each other's functions: each release
loads its own beside the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

_FILES = (
    "arithmetic", "policy", "packed", "shard", "grades", "later", "known", "noting", "urls", "bundles", "queue",
    "returning", "hosts", "shelves", "traps", "links", "meeting", "arriving", "admit", "robots", "settle", "lending",
    "promoting", "claim", "upkeep", "orders", "forgetting", "spilling", "tell", "census", "moving",
)  # fmt: skip
_GLOBALS = (
    "local redis, math, string, table, struct, bit, cmsgpack, cjson = "
    "redis, math, string, table, struct, bit, cmsgpack, cjson\n"
    "local ipairs, pairs, tonumber, tostring, type, next, unpack, error, setmetatable = "
    "ipairs, pairs, tonumber, tostring, type, next, unpack, error, setmetatable\n"
)
"""Looked up once: a global of a function is behind two guarded tables."""
_WRITING = {
    "open": "Upkeep.open",
    "unpark": "Upkeep.unpark",
    "admit": "Admit.call",
    "claim": "Claim.call",
    "settle": "Settle.call",
    "elsewhere": "Settle.elsewhere",
    "renew": "Upkeep.renew",
    "reap": "Upkeep.reap",
    "confirm": "Upkeep.confirm",
    "lose": "Upkeep.lose",
    "begin_cycle": "Upkeep.begin_cycle",
    "rest": "Upkeep.rest",
    "cover": "Upkeep.cover",
    "set_policy": "Orders.set_policy",
    "block": "Orders.block",
    "unblock": "Orders.unblock",
    "release_trap": "Orders.release_trap",
    "bring_back": "Orders.bring_back",
    "forget": "Orders.forget",
    "move_load": "Move.load",
    "spill_pick": "Spill.pick",
    "spill_out": "Spill.out",
    "spill_back": "Spill.back",
    "spill_forget": "Spill.forget",
}
_MOVING = ("whole", "domains", "hosts", "queue", "chunks", "chunk", "records", "rest_of_host", "origins", "refused")
_SPILLING = ("look", "done", "strangers")
_READING = (
    "snapshot", "story", "dead", "tallies", "flagged", "rules", "holds", "host", "domain", "marks", "pending",
    "overdue", "now", "host_of", "census_hosts", "census_domains", "census_under", "census_named",
    "census_waits", "census_loan",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Library:
    """What is loaded into every primary."""

    name: str
    text: str

    def function(self, name: str) -> str:
        """What a function is called."""
        return f"{self.name}_{name}"


@cache
def library() -> Library:
    """The library of this release."""
    folder = files(__package__) / "lua"
    body = "".join(f"do\n{(folder / f'{name}.lua').read_text()}end\n" for name in _FILES)
    reading = {name: f"Tell.{name}" for name in _READING} | {f"move_{name}": f"Move.{name}" for name in _MOVING}
    reading |= {f"spill_{name}": f"Spill.{name}" for name in _SPILLING}
    calls = _WRITING | reading
    table = ", ".join(f"{name} = {value}" for name, value in calls.items())
    text = (
        f"{(folder / 'head.lua').read_text()}local CALLS\n"
        f"local function begin()\n{_GLOBALS}{body}CALLS = {{ {table} }}\nend\n"
        "local function run(name, keys, args)\nif not CALLS then begin() end\nreturn CALLS[name](keys, args)\nend\n"
    )
    name = f"nephila_{sha256(text.encode()).hexdigest()[:12]}"
    registered = "".join(
        f"redis.register_function({{ function_name = '{name}_{call}', callback = function(keys, args) "
        f"return run('{call}', keys, args) end{', flags = { %r }' % 'no-writes' if call in reading else ''} }})\n"  # noqa: UP031
        for call in calls
    )
    return Library(name, f"#!lua name={name}\n{text}{registered}")
