"""Messages into a stream of Valkey or Redis (5 or newer), one server or a cluster.

An entry has two fields, `id` and `message`. It is acknowledged when the server has it; how durable that is, is the
server's affair (append-only file, replicas). A server that is out of memory or of disk counts as away, and so does one
that fails over or lacks replicas: whoever fills the stream waits until somebody makes room, or another takes over.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Sequence
from typing import Any

import redis
from redis import exceptions as errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from nephila.interfaces.stream import Message
from nephila.model.errors import StreamAwayError, StreamRefusedError, UsageError
from nephila.model.settings import StreamSettings

from .attempts import LAST_TRY_S
from .secrets import Secret, split_address
from .tls import is_secured

USUAL_PORT = 6379
_AWAY_ANSWERS = ("BUSY", "MISCONF", "NOREPLICAS")
_AWAY_ERRORS = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.OutOfMemoryError,
    redis.ReadOnlyError,
    errors.ClusterDownError,
    errors.TryAgainError,
    errors.MasterDownError,
)
"""Answers that the library has types for: it takes the word they begin with away."""
_NO_ID = "0-0"
"""No entry can have it: one that is added under it is refused for that alone, where all else is well."""


class RedisStream:
    """Implements `interfaces.stream.MessageStream`. Connects when it is first asked to."""

    def __init__(self, settings: StreamSettings, password: Secret) -> None:
        parts = split_address(settings.url, ("redis",), "stream.url")
        self._host, self._port = parts.hostname or "localhost", parts.port or USUAL_PORT
        self._place = f"the stream {settings.name} at {self._host}:{self._port}"
        database = parts.path.strip("/") or "0"
        if not database.isdigit():
            raise UsageError("stream.url ends with no number of a database", hint="write redis://HOST:PORT/0")
        self._settings = settings
        self._database = int(database)
        self._options: dict[str, Any] = {
            "username": parts.username,
            "password": password.reveal() or None,
            "socket_timeout": settings.timeout_s,
            "socket_connect_timeout": min(10.0, settings.timeout_s),
            "retry": Retry(NoBackoff(), 0),  # waiting is the caller's
            **_tls(settings, self._host),
        }
        self._client: Any = None

    def publish(self, messages: Sequence[Message]) -> None:
        """As the interface."""
        keep = {"maxlen": self._settings.keep, "approximate": True} if self._settings.keep else {}
        try:
            if self._client is None:
                self._client = self._connected()
            if not messages:
                self._probe()
            pipeline = self._client.pipeline(transaction=False)
            for message in messages:
                pipeline.xadd(self._settings.name, {"id": message.id, "message": message.body}, **keep)
            # Raised by the library, an answer would come with a part of the message, and as another text.
            for answer in pipeline.execute(raise_on_error=False):
                if isinstance(answer, Exception):
                    raise answer
        except redis.AuthenticationError as error:
            raise self._refused(error) from error
        except (redis.RedisError, errors.RedisClusterException) as error:
            self.close()
            raise self._judged(error) from error
        except OSError as error:
            self.close()
            raise StreamAwayError(f"{self._place} cannot be reached: {error.strerror or error}") from error

    def hurry(self, patience_s: float) -> None:
        """As the interface: an answer that is waited for in vain is cut off, once."""
        if patience_s < self._settings.timeout_s:
            cutting = threading.Timer(max(patience_s, LAST_TRY_S), self._cut)
            cutting.daemon = True
            cutting.start()

    def _cut(self) -> None:
        client = self._client
        if isinstance(client, redis.Redis):
            client.connection_pool.disconnect(inuse_connections=True)

    def close(self) -> None:
        """As the interface."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Any:  # noqa: ANN401 - one of two
        client = redis.Redis(host=self._host, port=self._port, db=self._database, **self._options)
        if not client.info("cluster").get("cluster_enabled"):
            return client
        client.close()
        return redis.RedisCluster(host=self._host, port=self._port, **self._options)

    def _probe(self) -> None:
        """See whether an entry could be added, without adding one."""
        try:
            self._client.xadd(self._settings.name, {"id": ""}, id=_NO_ID)
        except redis.ResponseError as error:
            if "ID specified in XADD" not in str(error):
                raise

    def _judged(self, error: Exception) -> StreamAwayError | StreamRefusedError:
        if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return StreamRefusedError(
                f"the certificate of {self._place} is not trusted: {error}",
                hint="stream.authorities names the authority that signed it",
            )
        passing = isinstance(error, (*_AWAY_ERRORS, errors.RedisClusterException))
        if passing or str(error).startswith(_AWAY_ANSWERS):
            return StreamAwayError(f"{self._place} is away: {error}")
        return self._refused(error)

    def _refused(self, error: Exception) -> StreamRefusedError:
        return StreamRefusedError(
            f"{self._place} refused: {error}", hint="look at user, password, rights and what lies under that name"
        )


def _tls(settings: StreamSettings, host: str) -> dict[str, Any]:
    if not is_secured(settings.tls, [host]):
        return {}
    if settings.tls == "unverified":
        return {"ssl": True, "ssl_cert_reqs": "none", "ssl_check_hostname": False}
    return {"ssl": True, "ssl_cert_reqs": "required", "ssl_check_hostname": True} | (
        {"ssl_ca_certs": settings.authorities} if settings.authorities else {}
    )
