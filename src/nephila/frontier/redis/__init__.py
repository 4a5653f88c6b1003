"""The frontier on Valkey or Redis, for a fleet: the same verbs, as functions in Lua on hash-tagged shards (N1, N2).

A crawl is cut into shards by the registrable domain, so that all that politeness and budgets need lies in one of them;
a verb is one call of one function in each shard it touches, and a call is atomic. Nothing is locked across shards or
machines. Links to other shards are admitted before their page is settled: admission may be repeated, so a crash
anywhere means a page fetched again, never a hole.

`lua/` is the engine, `library` joins its files; `shards` says where things are; `asking` and `telling` are the words
exchanged; `engine` holds the verbs, `view` the reading side, `presence` who else is at work.
"""

from .engine import RedisFrontier
from .view import RedisFrontierView

__all__ = ["RedisFrontier", "RedisFrontierView"]
