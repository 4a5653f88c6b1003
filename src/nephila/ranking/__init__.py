"""Importance from the link graph (R3): PageRank of pages and of registrable domains, made anew while a crawl runs.

What captures say of links becomes rows (`row`), rows become runs on disk (`run`, `graph`); of these follow the pages
and what stands for what (`members`), the links by number (`adjacency`, `domains`), the ranks (`power`) and the files
that tell them (`results`, `grades`). Names are numbers (`words`). What memory it needs tells docs/importance.md.

Nothing here knows how a capture is stored: `node/importance` reads them.
"""

from .computing import compute
from .foremost import read_foremost, write_foremost
from .grades import GRADES, DomainGrades, GradesAfar, write_grades
from .graph import LinkGraph, held
from .results import (
    DOMAINS,
    HIGHEST_GRADE,
    PAGES,
    Computation,
    DomainRanks,
    PageRanks,
    RankedDomain,
    RankedPage,
)
from .row import Kind, Row
from .run import RunBuffer
from .sections import DamagedFileError
from .words import page_name, rest_of, text_name

__all__ = [
    "DOMAINS",
    "GRADES",
    "HIGHEST_GRADE",
    "PAGES",
    "Computation",
    "DamagedFileError",
    "DomainGrades",
    "DomainRanks",
    "GradesAfar",
    "Kind",
    "LinkGraph",
    "PageRanks",
    "RankedDomain",
    "RankedPage",
    "Row",
    "RunBuffer",
    "compute",
    "held",
    "page_name",
    "read_foremost",
    "rest_of",
    "text_name",
    "write_foremost",
    "write_grades",
]
