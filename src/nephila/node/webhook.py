"""Alerts posted to a URL of the operator's own choosing.

The URL comes from the settings, never from a request or a page. All the same it is treated as any address of the web
is: its name is resolved, every address is judged by the guard that the fetcher has, and the one that was judged is the
one that is dialled, so that no name can lead elsewhere in between. Nothing is followed: a redirect is a failure.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from urllib.parse import urlsplit

import msgspec

from nephila import VERSION
from nephila.fetch import AddressGuard
from nephila.model.errors import UsageError
from nephila.urls import resolve

TIMEOUT_S = 10.0
_READ_BYTES = 4096


class Webhook:
    """Posts JSON to one URL. Blocking: to be called in a thread."""

    def __init__(self, url: str, guard: AddressGuard) -> None:
        parts = urlsplit(resolve(None, url) or "")  # as browsers write it: what is not ASCII is encoded
        if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
            shown = "it" if "@" in url else repr(url)  # there may be a password in it
            hint = "write it like https://example.org/hook, without user and password"
            raise UsageError(f"alerts.webhook: {shown} is no URL to post to", hint)
        self._parts = parts
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._guard = guard

    def post(self, document: object) -> str:
        """Post a document; an empty text when it was taken, else what went wrong in one sentence."""
        try:
            address = self._address()
            if isinstance(address, str):
                return address
            return self._post(address, msgspec.json.encode(document))
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last: no name that could be looked up
            return f"{self._host} did not take it: {error}"

    def _address(self) -> tuple[int, tuple[str, int]] | str:
        """Where to connect to, or why not."""
        for family, _, _, _, place in socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM):
            address = str(place[0])
            if self._guard.refuses(address) is None:
                return family, (address, self._port)
        return f"the address of {self._host} is not public (--allow-address opens a range)"

    def _post(self, address: tuple[int, tuple[str, int]], body: bytes) -> str:
        family, place = address
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        plain = socket.socket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(TIMEOUT_S)
            plain.connect(place)
            if self._parts.scheme == "https":
                plain = ssl.create_default_context().wrap_socket(plain, server_hostname=self._host)
            connection.sock = plain
            path = self._parts.path or "/"
            target = f"{path}?{self._parts.query}" if self._parts.query else path
            headers = {"Content-Type": "application/json", "User-Agent": f"Nephila/{VERSION}"}
            connection.request("POST", target, body, headers)
            answer = connection.getresponse()
            answer.read(_READ_BYTES)
            return "" if 200 <= answer.status < 300 else f"{self._host} answered {answer.status}"
        finally:
            plain.close()
            connection.close()
