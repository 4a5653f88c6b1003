"""The frontier on LMDB: one directory, no server, several processes may share it.

`records` are the packed nouns, `tables` the named databases and their keys, `book` one open transaction with what it
needs to know; `admission`, `claiming`, `settling` and `upkeep` are the verbs as plain functions on a book; `group` runs
them in group commits; `engine` is the `Frontier` itself and `view` its reading side.
"""

from .engine import LmdbFrontier
from .view import LmdbFrontierView

__all__ = ["LmdbFrontier", "LmdbFrontierView"]
