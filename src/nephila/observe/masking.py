"""What may be shown of the texts in an event (K4): secrets out of every URL, control characters out of log lines.

An event carries URLs in `url` and `via`, and sentences in `detail` that may quote a URL (a redirect's target) or what
a server sent. Both are strangers' bytes: a token in a query must not reach a log, and an escape sequence must not
reach a terminal.
"""

from __future__ import annotations

import re

from nephila.urls import mask_secrets

_URL = re.compile(r"""(?i)\bhttps?://[^\s"'<>]+""")


def mask_text(text: str) -> str:
    """The sentence with the secrets of all URLs in it masked."""
    if "://" not in text:
        return text
    return _URL.sub(lambda match: mask_secrets(match[0]), text)


def printable(text: str) -> str:
    """The text with everything that is not printable in an escaped spelling, so that it stays one harmless line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
