"""What was seen before: bodies, pages that say nearly the same, aliases of URLs, pages that stand for missing ones."""

from .absences import LmdbAbsences, MemoryAbsences
from .alias_lmdb import LmdbAliasStorage
from .alias_storage import AliasStorage, MemoryAliasStorage
from .aliases import LearnedAliases, LearningRules
from .digests import LmdbDigestIndex, MemoryDigestIndex
from .learned import LearnedEnvironment
from .listings import LmdbListings, MemoryListings
from .near import LmdbNearIndex
from .near_memory import MemoryNearIndex
from .near_rule import NearRule
from .renderings import LmdbRenderings, MemoryRenderings
from .shared_digests import SharedDigestIndex, forget_shared
from .shared_learning import SharedLearning
from .shared_notes import SharedNotes

__all__ = [
    "AliasStorage",
    "LearnedAliases",
    "LearnedEnvironment",
    "LearningRules",
    "LmdbAbsences",
    "LmdbAliasStorage",
    "LmdbDigestIndex",
    "LmdbListings",
    "LmdbNearIndex",
    "LmdbRenderings",
    "MemoryAbsences",
    "MemoryAliasStorage",
    "MemoryDigestIndex",
    "MemoryListings",
    "MemoryNearIndex",
    "MemoryRenderings",
    "NearRule",
    "SharedDigestIndex",
    "SharedLearning",
    "SharedNotes",
    "forget_shared",
]
