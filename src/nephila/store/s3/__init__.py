"""S3 and what speaks like it, in a small client of its own on the standard library (decision 0035).

`credentials` finds keys where S3 tools look for them; `signing` signs requests;
`wire` sends one and reads its answer; `answers` turns refusals into sentences; `client` is the `ObjectStore`.
Imported only by a crawl whose archive goes there.
"""

from .client import S3ObjectStore
from .credentials import CredentialChain

__all__ = ["CredentialChain", "S3ObjectStore"]
