"""URLs as they may stand in a log (O1, K4): without what would let a reader in, or tell who somebody is.

A URL that is logged is read by more people than the page it leads to: reset links, signed downloads and unsubscribe
links carry secrets and names in their query. Their values are replaced, the parameters stay, so that a line can still
be understood. The archive keeps the URL as it is; this is for events, logs and messages alone.

What must stay true: time linear in the length of the URL, whoever wrote it, and next to none where there is no query.
"""

from __future__ import annotations

import re

MASK = "***"
TAKEN_DOWN = "/***"
"""What the event log says in the place of a path, and all after it, of which nothing may be told any more (K2)."""

_SECRET_NAMES = frozenset(
    {
        *("auth", "authorization", "bearer", "code", "hash", "hmac", "jwt", "key", "nonce", "otp", "sig", "sign"),
        *("pass", "passcode", "passwd", "password", "pin", "pwd", "login", "user", "username", "mail", "phone", "tel"),
        *("sid", "state", "ticket", "tok", "access_key", "auth_key", "awsaccesskeyid", "key-pair-id", "samlresponse"),
    }
)
"""Parameter names, in lower case, whose value is masked."""

_SECRET_PART = re.compile(
    r"token|secret|passw|signature|credential|api[_-]?key|sess(?:ion)?_?id|session|e-?mail|csrf", re.IGNORECASE
)
"""Parts of names that give a parameter away whatever else it is called."""

_MAIL_ADDRESS = re.compile(
    r"(?<![\w.+-])(?:[\w.+-]|%(?!40)[0-9A-F]{2})+(?:@|%40)[\w-]++\.[\w.-]++",  # possessive: nothing is tried twice
    re.IGNORECASE,
)
"""The group is not: before Python 3.11.5 a possessive one that fails halfway has eaten what it tried (gh-106052). There
is one way only to read what it takes, so that going back costs a look at each character, and no more."""
_USERINFO = re.compile(r"^([a-z][a-z0-9+.-]*:)?//[^/?#\\]*@", re.IGNORECASE)
_SEPARATORS = re.compile(r"([&;])")


def is_taken_down(url: str) -> bool:
    """Whether a URL is one of which only the origin is told (see `TAKEN_DOWN`)."""
    return any(url.endswith(TAKEN_DOWN[:end]) for end in range(2, len(TAKEN_DOWN) + 1))


def mask_secrets(url: str) -> str:
    """The URL with userinfo removed and the values of telling query parameters replaced by ``***``."""
    if "@" in url:
        url = _USERINFO.sub(r"\1//", url)
    if "?" not in url:
        return url
    address, _, query = url.partition("?")
    return f"{address}?{''.join(map(_masked, _SEPARATORS.split(query)))}"


def _masked(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    if value and (name.lower() in _SECRET_NAMES or _SECRET_PART.search(name)):
        return name + equals + MASK
    if "@" in parameter or "%40" in parameter:
        return _MAIL_ADDRESS.sub(MASK, parameter)
    return parameter
