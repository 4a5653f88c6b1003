"""Where URLs come from: arguments, text files, standard input, CSV files of domains (S1).

A *source* yields `Seed`s: a piece of text with its origin, not yet judged. `read_seeds` turns each into a verdict:
an address to admit, or a refusal with a reason. Another kind of seed is another source, nothing else changes.
"""

from .arguments import ArgumentSeeds
from .domains import DomainSeeds
from .lines import FileLines, StreamLines
from .reading import SeedAccepted, SeedRefused, SeedVerdict, read_seeds
from .report import SeedReport, SeedTally
from .seed import Seed, SeedSource
from .spelling import SeedFault, SeedUrl, spell
from .textlist import TextSeeds
from .twin import CONNECTION_LEVEL, http_twin

__all__ = [
    "CONNECTION_LEVEL",
    "ArgumentSeeds",
    "DomainSeeds",
    "FileLines",
    "Seed",
    "SeedAccepted",
    "SeedFault",
    "SeedRefused",
    "SeedReport",
    "SeedSource",
    "SeedTally",
    "SeedUrl",
    "SeedVerdict",
    "StreamLines",
    "TextSeeds",
    "http_twin",
    "read_seeds",
    "spell",
]
