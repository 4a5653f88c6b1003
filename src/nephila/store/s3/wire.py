"""One request over one connection, blocking: sent in pieces, answered in full, never longer silent than allowed.

Connections are kept and used again, as many as there are threads that ask. One that was closed meanwhile by the other
end is noticed only when it is used: a request on a kept connection that breaks before any answer is sent once more on a
new one (everything that is sent may be sent twice), and so is one whose answer breaks off in the middle. `abort` ends
whatever is under way, so that nobody waits for an upload at the end.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

import certifi

from nephila.interfaces.objects import ObjectBody
from nephila.model.errors import StoreAwayError, StoreRefusedError, UsageError
from nephila.model.settings import S3Settings

from .answers import Answer

PIECE_BYTES = 1 << 18
"""Read and sent at a time: large enough that Python is not what it waits for, small enough to be paced."""

MAX_ANSWER_BYTES = 1 << 27
"""A listing or an error has kilobytes, a stretch of an object some megabytes."""

Sleep = Callable[[float], None]


class Wire:
    """Connections to one endpoint."""

    def __init__(self, settings: S3Settings, endpoint: str, sleep: Sleep = time.sleep) -> None:
        parts = _parts_of(endpoint)
        self._secure = parts.scheme == "https"
        self._name = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._usual_port = parts.port in {None, 443 if self._secure else 80}
        self._settings = settings
        self._sleep = sleep
        self._context = _context(settings.authorities) if self._secure else None
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._busy: set[http.client.HTTPConnection] = set()
        self._aborted = False
        self._free_at = 0.0
        """When more may be sent, by what is allowed."""

    def host(self, name: str = "") -> str:
        """The Host header for this endpoint, or for a name below it."""
        host = f"[{self._name}]" if ":" in self._name else self._name
        host = f"{name}.{host}" if name else host
        return host if self._usual_port else f"{host}:{self._port}"

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: ObjectBody | None = None) -> Answer:
        """Send a request and read its answer; raises `StoreAwayError` where there is none."""
        host = headers["host"].rpartition(":")[0] if headers["host"].endswith(f":{self._port}") else headers["host"]
        cut = 0
        while True:
            connection, kept = self._connection(host)
            try:
                answer = self._exchange(connection, method, target, headers, body)
            except (OSError, http.client.HTTPException) as error:
                self._drop(connection)
                cut += isinstance(error, http.client.IncompleteRead)
                if (kept or cut == 1) and not self._aborted and not isinstance(error, TimeoutError):
                    continue
                raise self._away(error) from error
            except BaseException:
                self._drop(connection)
                raise
            self._keep(connection, reusable=answer.headers.get("connection", "").lower() != "close")
            return answer

    def abort(self) -> None:
        """Break off what is under way and allow nothing more."""
        with self._lock:
            self._aborted = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for connection in idle:
            connection.close()
        for connection in busy:
            opened = connection.sock
            if opened is not None:
                with suppress(OSError):
                    opened.shutdown(socket.SHUT_RDWR)

    # One exchange

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: ObjectBody | None,
    ) -> Answer:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None or method in {"PUT", "POST"}:
            connection.putheader("content-length", str(body.size if body is not None else 0))
        refused: OSError | None = None
        try:
            connection.endheaders()
            if body is not None:
                self._send(connection, body)
        except (BrokenPipeError, ConnectionResetError) as error:
            refused = error  # the other end may have said why before it hung up
        try:
            response = connection.getresponse()
        except (OSError, http.client.HTTPException):
            if refused is not None:
                raise refused from None
            raise
        data = response.read(MAX_ANSWER_BYTES)
        if response.length:  # `read` with a limit says nothing of an end that comes too early
            raise http.client.IncompleteRead(data, response.length)
        got = {name.lower(): value for name, value in response.getheaders()}
        if refused is not None or response.will_close:
            got["connection"] = "close"
        return Answer(response.status, got, data)

    def _send(self, connection: http.client.HTTPConnection, body: ObjectBody) -> None:
        sent = 0
        while sent < body.size:
            piece = body.read_at(sent, min(PIECE_BYTES, body.size - sent))
            if not piece:
                raise StoreRefusedError("a file of the spool is shorter than it was", hint="check the disk")
            self._wait_for(len(piece))
            connection.send(piece)
            sent += len(piece)

    def _wait_for(self, size: int) -> None:
        """Wait until so much more may be sent: what is allowed is shared by whoever sends."""
        allowed = self._settings.max_bytes_per_s
        if not allowed:
            return
        with self._lock:
            now = time.monotonic()
            begins_at = max(now, self._free_at)
            self._free_at = begins_at + size / allowed
        if begins_at > now:
            self._sleep(begins_at - now)

    # Connections

    def _connection(self, host: str) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._aborted:
                raise StoreAwayError("the archive's store is not asked any more")
            while self._idle:
                connection = self._idle.pop()
                if connection.host == host.strip("[]"):
                    self._busy.add(connection)
                    return connection, True
                connection.close()
        connection = self._new(host.strip("[]"))
        with self._lock:
            self._busy.add(connection)
        try:
            connection.connect()
            if connection.sock is not None:
                connection.sock.settimeout(self._settings.timeout_s)
        except (OSError, http.client.HTTPException) as error:
            self._drop(connection)
            if isinstance(error, ssl.SSLCertVerificationError):
                raise StoreRefusedError(
                    f"the certificate of {host} is not to be trusted: {error.verify_message}",
                    hint="name the certificate authority of the archive's store with s3.authorities",
                ) from error
            raise self._away(error) from error
        return connection, False

    def _new(self, host: str) -> http.client.HTTPConnection:
        timeout = self._settings.connect_timeout_s
        if self._context is not None:
            return http.client.HTTPSConnection(host, self._port, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(host, self._port, timeout=timeout)

    def _keep(self, connection: http.client.HTTPConnection, *, reusable: bool) -> None:
        with self._lock:
            self._busy.discard(connection)
            if reusable and not self._aborted and len(self._idle) < self._settings.uploads:
                self._idle.append(connection)
                return
        connection.close()

    def _drop(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._busy.discard(connection)
        connection.close()

    def _away(self, error: Exception) -> StoreAwayError:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, TimeoutError):
            reason = "it took too long"
        elif isinstance(error, http.client.IncompleteRead):
            reason = "its answer broke off"
        return StoreAwayError(
            f"the archive's store at {self.host()} does not answer: {str(reason).lower() or type(error).__name__}",
            hint="check s3.endpoint and the network",
        )


def _parts_of(endpoint: str) -> SplitResult:
    """Of a URL that names a server and nothing else. Raises `UsageError`."""
    if "@" in endpoint:
        raise UsageError(
            "s3.endpoint has credentials in it, where everybody can read them",
            "put them into the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or ~/.aws/credentials",
        )
    try:
        parts = urlsplit(endpoint)
        parts.port  # noqa: B018 - a port that is no number is told here
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.query:
        raise UsageError(f"s3.endpoint {endpoint!r} is not a URL", "write it like https://s3.example.org")
    return parts


def _context(authorities: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certifi.where())
    if authorities:
        try:
            context.load_verify_locations(cafile=authorities)
        except OSError as error:
            raise UsageError(
                f"s3.authorities: {authorities} cannot be read as certificates", "name a PEM file"
            ) from error
    return context
