"""Keeping what was fetched: WARC files, the CDXJ index beside them, the catalogue.

`LocalArchive` is the archive in a directory, `SqliteCatalogue` its table of contents. The rest are their parts: records
(`warc`, `metadata`, `capture`), files (`disk`, `rotation`, `segment`), reading back (`reader`, `readback`,
`recovery`), and the index (`surt`, `cdxj`).
"""

from .catalogue import SqliteCatalogue
from .disk import Disk, LocalDisk
from .local import LocalArchive
from .rotation import writer_of
from .trail import Trail
from .warc import CrawlIdentity

__all__ = ["CrawlIdentity", "Disk", "LocalArchive", "LocalDisk", "SqliteCatalogue", "Trail", "writer_of"]
