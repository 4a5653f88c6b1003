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

MOST_SERVERS = 2048
"""How many servers are remembered: a session takes 21 KB, most of it the certificate. When more of them come round,
each is forgotten before it comes again, so that no session is taken in vain."""

MOST_REFUSALS = 3
"""A server that has taken none of so many sessions in a row is brought no more: its tickets are good for nothing."""

_Key = tuple[ssl.SSLContext, str, int]


class _Server:
    """What is known of one."""

    __slots__ = ("refusals", "session")

    def __init__(self) -> None:
        self.session: ssl.SSLSession | None = None
        self.refusals = 0


class TlsSessions:
    """What is known of servers that were called before; those that were not called for longest are forgotten first."""

    def __init__(self, size: int = MOST_SERVERS) -> None:
        self._size = size
        self._known: dict[_Key, _Server] = {}

    def __len__(self) -> int:
        return len(self._known)

    def call(self, context: ssl.SSLContext, name: str, port: int) -> Call:
        """Another connection is about to be opened."""
        key = (context, name, port)
        known = self._known.pop(key, None)
        server = self._known[key] = known or _Server()
        if len(self._known) > self._size:
            del self._known[next(iter(self._known))]
        return Call(server, again=known is not None)


class Call:
    """One connection's part in it."""

    __slots__ = ("_again", "_server", "session")

    def __init__(self, server: _Server, *, again: bool) -> None:
        self._server = server
        self._again = again
        self.session = server.session
        """To resume; None for a whole handshake."""

    def ended(self, tls: ssl.SSLObject) -> None:
        """The connection was good to its end: remember its session, if it is worth it."""
        server = self._server
        if self.session is not None:
            server.refusals = 0 if tls.session_reused else server.refusals + 1
            if tls.session_reused or server.session is not self.session:
                return
            server.session = None
        if not self._again or server.session is not None or server.refusals >= MOST_REFUSALS:
            return
        found = tls.session
        if found is not None and (found.has_ticket or (found.id and tls.version() != "TLSv1.3")):
            server.session = found

    def failed(self) -> None:
        """The handshake failed, and maybe because of the session: the server is brought none any more."""
        self.session = self._server.session = None
        self._server.refusals = MOST_REFUSALS
