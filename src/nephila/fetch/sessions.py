"""TLS sessions of servers that are called again: a resumed handshake brings no certificates to read and to verify.

That saves a third to a half of what a new connection costs us, and the server its signature. Taking a session out of a
connection and putting it into another one costs a fifth of a handshake each (the ssl module copies it, certificate
included), so that is not done for everybody: the first connection to a server is only noted, the second one leaves its
session behind, and those that come after it resume that same session until the server no longer knows it.

A session belongs to the context that it was begun under: one that was begun without verification is never resumed with.
What the certificate was worth is known from the handshake that showed it (RFC 8446 4.6.1: for seven days at most).
"""

from __future__ import annotations

import ssl

MOST_SERVERS = 4096
"""How many servers are remembered: a session takes some 6 KB."""

_Key = tuple[ssl.SSLContext, str, int]


class TlsSessions:
    """What is known of servers that were called before; those that were not called for longest are forgotten first."""

    def __init__(self, size: int = MOST_SERVERS) -> None:
        self._size = size
        self._known: dict[_Key, ssl.SSLSession | None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def call(self, context: ssl.SSLContext, name: str, port: int) -> Call:
        """Another connection is about to be opened."""
        key = (context, name, port)
        known = key in self._known
        session = self._known.pop(key, None)
        self._known[key] = session
        if len(self._known) > self._size:
            del self._known[next(iter(self._known))]
        return Call(self, key, session, again=known)

    def keep(self, key: _Key, session: ssl.SSLSession | None) -> None:
        """Resume this session from now on, or none."""
        if key in self._known:
            self._known[key] = session


class Call:
    """One connection's part in it."""

    __slots__ = ("_again", "_key", "_sessions", "session")

    def __init__(self, sessions: TlsSessions, key: _Key, session: ssl.SSLSession | None, *, again: bool) -> None:
        self._sessions = sessions
        self._key = key
        self._again = again
        self.session = session
        """To resume; None for a whole handshake."""

    def ended(self, tls: ssl.SSLObject) -> None:
        """The connection was good to its end: remember its session, if it is worth it."""
        if not self._again or (self.session is not None and tls.session_reused):
            return
        found = tls.session
        resumable = found is not None and (found.has_ticket or (found.id and tls.version() != "TLSv1.3"))
        self._sessions.keep(self._key, found if resumable else None)

    def failed(self) -> None:
        """The handshake failed: the next one is a whole one."""
        self.session = None
        self._sessions.keep(self._key, None)
