"""What of a crawl leaves it, and in which form: chosen by plain rules, written whole or not at all (W4, W6).

`selection` says which captures are meant and why others are left out, `document` is what a writer is given. One module
a form: `lines` (JSON lines), `table` (Parquet), `tree` (files by host and path), `edges` (the link graph). WACZ is made
of records and therefore the store's (`store.wacz`). `target` lets a file or a folder appear when it is whole. Nothing
here knows where captures come from: `node.exporting` brings the two together.
"""

from .document import Document, DocumentWriter
from .preferences import Use, refuses
from .selection import Include, LeftOut, Selection

__all__ = ["Document", "DocumentWriter", "Include", "LeftOut", "Selection", "Use", "refuses"]
