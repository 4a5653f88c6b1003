"""Taking what a crawl has stored out of it, in a form that others read (W4, W6, K3): `nephila export`.

The catalogue says what there is and is asked for whole segments at a time, in the order of the archive; each file of
that is read once, from its beginning to its end, but for the bytes of copies, which lie elsewhere (`store.originals`).
A crawl may run meanwhile: what it had listed when the export began is what counts, and nothing of it is written to.
"""

from .order import ExportOrder, Form, View
from .run import Exported, Looked, export
from .source import Source, source_of_directory

__all__ = ["ExportOrder", "Exported", "Form", "Looked", "Source", "View", "export", "source_of_directory"]
