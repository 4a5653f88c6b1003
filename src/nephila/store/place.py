"""``s3://bucket/prefix``: where in a store of objects an archive lies, and under which keys.

The key of a file is the prefix and its name, with nothing derived from anything else: whoever has the name that the
catalogue and the index tell, has the key. Names may have folders in them (`layout`). Below a prefix there may be those
of other crawls: a folder that has a marker or a trail of its own is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from nephila.model.errors import UsageError
from nephila.model.noun import noun

MARKER = "nephila-crawl"
"""The object that says whose prefix it is. Written first, so that two crawls never share one."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_MAX_PREFIX_BYTES = 700
"""Keys have 1,024 bytes; a name has up to 320, an index's no more."""
_ANOTHER = re.compile(rf"(.+?/)(?:{MARKER}|trail/[^/]+/(?:chain|events)-[^/]+\.jsonl)")
"""What only the prefix of a crawl has directly in it."""


@noun
class ArchivePlace:
    """A bucket and a prefix in it."""

    bucket: str
    prefix: str
    """Without slashes at its ends; empty for the bucket itself."""

    @classmethod
    def parse(cls, url: str, called: str = "archive.url") -> ArchivePlace:
        """Read ``s3://bucket/prefix``; raises `UsageError` for anything else, with what it is called."""
        hint = "write it like s3://bucket/prefix"
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise UsageError(f"{called} is not a URL", hint) from error
        if "@" in parts.netloc or ":" in parts.netloc:  # a slash in a key ends what stands before the @ too early
            raise UsageError(
                f"{called} has credentials in it, where everybody can read them",
                "put them into the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or ~/.aws/credentials",
            )
        if parts.scheme != "s3" or parts.query or parts.fragment:
            raise UsageError(f"{called} {url!r} does not name a place in an S3 store", hint)
        if not _BUCKET.fullmatch(parts.netloc):
            raise UsageError(f"{parts.netloc!r} in {called} is not the name of a bucket", hint)
        prefix = unquote(parts.path).strip("/")
        if len(prefix.encode()) > _MAX_PREFIX_BYTES or "//" in prefix or not prefix.isprintable():
            raise UsageError(f"the prefix in {called} {url!r} cannot be used", hint)
        return cls(parts.netloc, prefix)

    def key(self, name: str) -> str:
        """The key of a file of the archive."""
        return f"{self.prefix}/{name}" if self.prefix else name

    def names(self, keys: Iterable[str]) -> dict[str, str]:
        """What lies under the prefix, without what belongs to other crawls below it: keys by their names."""
        cut = len(self.key(""))
        found = {key[cut:]: key for key in keys}
        others = tuple({match[1] for name in found if (match := _ANOTHER.fullmatch(name))})
        return {name: key for name, key in found.items() if not name.startswith(others)} if others else found

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")
