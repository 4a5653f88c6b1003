"""Keeping what was fetched: WARC files, the CDXJ index beside them, the catalogue.

`LocalArchive` is the archive in a directory, `SpooledArchive` the one in a store of objects, `SqliteCatalogue` the
table of contents. The rest are their parts: records (`warc`, `metadata`, `capture`), files (`layout`, `rotation`,
`segment`), reading back (`reader`, `readback`, `recovery`, `remote`), the index (`surt`, `cdxj`), the spool (`journal`,
`place`), and S3 (`s3`, imported where it is asked for).
"""

from nephila.engines.disk import Disk, LocalDisk

from .catalogue import SqliteCatalogue
from .journal import RowJournal
from .layout import check_layout, first_characters
from .local import LocalArchive
from .place import MARKER, ArchivePlace
from .rotation import index_name, writer_of
from .spooled import SpooledArchive, spool_standing
from .trail import Trail
from .warc import CrawlIdentity

__all__ = [
    "MARKER",
    "ArchivePlace",
    "CrawlIdentity",
    "Disk",
    "LocalArchive",
    "LocalDisk",
    "RowJournal",
    "SpooledArchive",
    "SqliteCatalogue",
    "Trail",
    "check_layout",
    "first_characters",
    "index_name",
    "spool_standing",
    "writer_of",
]
