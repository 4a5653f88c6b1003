"""What a page is there for: each role is one thing that the web does to crawlers."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The role of one page; decided by the spec's shares, the same for ever."""

    ARTICLE = "article"
    """Ordinary, always answers, carries the links that hold the web together."""

    NOT_FOUND = "not_found"
    GONE = "gone"
    ERROR = "error"
    """500, always."""
    BUSY_ONCE = "busy_once"
    """503 with Retry-After, then 200."""
    BUSY_TWICE = "busy_twice"
    """503 without a word, twice, then 200."""
    LIMITED = "limited"
    """429 with Retry-After, then 200."""
    RESET = "reset"
    """The connection is reset before the first byte, always."""
    RESET_BODY = "reset_body"
    """The connection is reset in the middle of the body, always."""
    CUT = "cut"
    """The connection is closed before the promised Content-Length, always."""
    HANG = "hang"
    """The request is taken and nothing comes back, ever."""
    HANG_BODY = "hang_body"
    """The answer stops in the middle, the connection stays open, always."""
    DRIP = "drip"
    """Slow, but it arrives."""

    HOP = "hop"
    """Redirects to an article of the same host."""
    ACROSS = "across"
    """Redirects to an article of another host."""
    CHAIN = "chain"
    """The first of several redirects; the last leads to a page that nothing else leads to."""
    LOOP = "loop"
    """Two URLs that redirect to each other."""
    SELF = "self"
    """Redirects to itself."""
    CLEANED = "cleaned"
    """Asked with a tracking parameter it redirects to itself without; its links are written with one."""

    DUPLICATE = "duplicate"
    NEAR = "near"
    """Says what the other members of its family say, but for the time and an advertisement."""
    PDF = "pdf"
    PNG = "png"
    JSON = "json"
    FORBIDDEN = "forbidden"
    NOINDEX = "noindex"
    NOFOLLOW = "nofollow"
    HIDDEN = "hidden"
    EXCLUDED = "excluded"
    CANONICAL = "canonical"


FAILING_ROLES = (
    Role.NOT_FOUND,
    Role.GONE,
    Role.ERROR,
    Role.BUSY_ONCE,
    Role.BUSY_TWICE,
    Role.LIMITED,
    Role.RESET,
    Role.RESET_BODY,
    Role.CUT,
    Role.HANG,
    Role.HANG_BODY,
)
REDIRECTING_ROLES = (Role.HOP, Role.ACROSS, Role.CHAIN, Role.LOOP, Role.SELF, Role.CLEANED)
RECOVERING = {Role.BUSY_ONCE: 1, Role.BUSY_TWICE: 2, Role.LIMITED: 1}
"""Roles that fail so many times before they answer."""
