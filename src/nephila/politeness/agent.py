"""Who we say we are (P6): the User-Agent, and the token of it that robots.txt files name."""

from __future__ import annotations

import re

from nephila.model.errors import UsageError

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""RFC 9110, 5.6.2."""
_HEADER_TEXT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_CONTACT = re.compile(r"https?://\S+|\S+@\S+", re.IGNORECASE)


def product_token(user_agent: str) -> str:
    """The first product of a User-Agent, which is our name in robots.txt: ``Nephila`` of ``Nephila/0.1 (+https://...)``."""
    token = _TOKEN.match(user_agent)
    return token[0] if token else ""


def names_contact(user_agent: str) -> bool:
    """Whether a webmaster finds a URL or a mail address in it."""
    return _CONTACT.search(user_agent) is not None


def check_user_agent(user_agent: str) -> None:
    """Raise `UsageError` for a User-Agent that cannot be sent, or by which no robots.txt could name us."""
    if not _HEADER_TEXT.fullmatch(user_agent):
        raise UsageError(
            f"the User-Agent {user_agent!r} cannot be sent",
            "use printable ASCII characters on one line, without space at either end",
        )
    if not product_token(user_agent):
        raise UsageError(
            f"the User-Agent {user_agent!r} does not begin with a name",
            "begin it with a name such as Nephila/0.1: robots.txt files address a crawler by that",
        )
