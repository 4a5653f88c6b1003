"""What was seen before: bodies by their digests, URLs that are aliases of others, pages that stand for missing ones."""

from .absences import LmdbAbsences, MemoryAbsences
from .alias_lmdb import LmdbAliasStorage
from .alias_storage import MemoryAliasStorage
from .aliases import LearnedAliases, LearningRules
from .digests import LmdbDigestIndex, MemoryDigestIndex
from .learned import LearnedEnvironment

__all__ = [
    "LearnedAliases",
    "LearnedEnvironment",
    "LearningRules",
    "LmdbAbsences",
    "LmdbAliasStorage",
    "LmdbDigestIndex",
    "MemoryAbsences",
    "MemoryAliasStorage",
    "MemoryDigestIndex",
]
