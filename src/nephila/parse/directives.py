"""What a page asks of crawlers: meta robots and X-Robots-Tag (X2).

Both speak the same language, a list of words, of which three concern us. What is said to everybody and what is said to
our own agent add up: the more restrictive wins, as with the large search engines. A word with a value
(`max-image-preview: none`, `unavailable_after: ...`) is never one of the three, though its value may look like one.

What must stay true: any text is read; a word that is not understood means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from nephila.model.page import Directives

_VALUED = re.compile(r"(?<![\w-])[\w-]++\s*+:[^,]*+")
_WORD = re.compile(r"[\w-]+")
_AGENT_PREFIX = re.compile(r"\s*([a-z_*][\w*.-]*)\s*:\s*(.*)", re.DOTALL)
_VALUED_RULES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
"""Words before a colon that are rules and not the name of a crawler (Google's list of robots meta rules)."""

_LONGEST_VALUE = 4096
"""Characters of one header or meta content that are read; our own choice."""

_NONE = Directives()


@lru_cache(maxsize=16)  # of which a crawl has one
def agent_token(agent: str) -> str:
    """The product token of a User-Agent, in lower case: what pages call a crawler by."""
    return re.split(r"[/\s]", agent.strip(), maxsplit=1)[0].lower()


def _words_of_header(value: str, token: str) -> set[str]:
    """The words of one X-Robots-Tag that concern us; a name with a colon says whom the words after it concern."""
    words: set[str] = set()
    concerns_us = True
    for item in value[:_LONGEST_VALUE].lower().split(","):
        rule = item
        prefix = _AGENT_PREFIX.match(item)
        if prefix is not None and prefix[1] not in _VALUED_RULES:
            concerns_us = prefix[1] in {token, "*", "robots"}
            rule = prefix[2]
        if concerns_us:
            words.update(_WORD.findall(_VALUED.sub(" ", rule)))
    return words


def directives_of(metas: Sequence[tuple[str, str]], robots_tags: Sequence[str], agent: str) -> Directives:
    """The directives for `agent`, from (name, content) of meta elements and the values of X-Robots-Tag headers."""
    if not metas and not robots_tags:
        return _NONE
    token = agent_token(agent)
    words: set[str] = set()
    for name, content in metas:
        if name.strip().lower() in {"robots", token}:
            words.update(_WORD.findall(_VALUED.sub(" ", content[:_LONGEST_VALUE].lower())))
    for value in robots_tags:
        words |= _words_of_header(value, token)
    if not words:
        return _NONE
    none = "none" in words
    return Directives(
        nofollow=none or "nofollow" in words,
        noindex=none or "noindex" in words,
        noarchive="noarchive" in words,
    )
