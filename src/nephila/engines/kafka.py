"""Messages to a topic of Kafka, by librdkafka, which is installed where it is asked for (`nephila[kafka]`).

The producer is idempotent and waits for all replicas in sync. A message has the fingerprint of its URL as key, so that
what concerns one URL stays in one partition and in order, and its id as a header.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from nephila.interfaces.stream import Message
from nephila.model.errors import StreamAwayError, StreamRefusedError, UsageError
from nephila.model.settings import StreamSettings

from .attempts import LAST_TRY_S
from .secrets import Secret, split_address
from .tls import is_secured

USUAL_PORT = 9092
_SCHEME = "kafka"


class KafkaStream:
    """Implements `interfaces.stream.MessageStream`. Connects when it is first asked to."""

    def __init__(self, settings: StreamSettings, password: Secret) -> None:
        try:
            import confluent_kafka  # noqa: PLC0415  # only where it is asked for
        except ImportError as error:
            raise UsageError(
                "messages to Kafka need the package confluent-kafka, which is not installed",
                hint="install it: pip install 'nephila[kafka]', or pip install confluent-kafka",
            ) from error
        self._library: Any = confluent_kafka
        self._settings = settings
        hosts, user = _brokers(settings)
        self._place = f"the topic {settings.name} at {','.join(hosts)}"
        self._config: dict[str, object] = {
            "bootstrap.servers": ",".join(hosts),
            "client.id": "nephila",
            "enable.idempotence": True,
            "message.timeout.ms": int(settings.timeout_s * 1000),
            "socket.connection.setup.timeout.ms": int(max(1.0, min(10.0, settings.timeout_s)) * 1000),
            "queue.buffering.max.messages": max(1_000, 2 * settings.batch),
            "linger.ms": 5,
            "log_level": 0,
            "error_cb": self._heard,
            **_security(settings, [host.rpartition(":")[0].strip("[]") for host in hosts], user, password),
        }
        self._trouble = ""
        self._give_up_at = float("inf")
        self._producer: Any = None

    def publish(self, messages: Sequence[Message]) -> None:
        """As the interface."""
        if self._producer is None:
            self._producer = self._library.Producer(self._config)
        self._trouble = ""
        if not messages:
            self._look()
        failures: list[Any] = []
        left = len(messages)

        def delivered(error: object, _message: object) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                failures.append(error)

        for message in messages:
            self._produce(message, delivered)
        began = time.monotonic()
        while left and time.monotonic() < self._deadline(began):
            self._producer.poll(0.1)
        if left or failures:
            self.close()
            raise self._judged(failures[0] if failures else None)

    def hurry(self, patience_s: float) -> None:
        """As the interface."""
        self._give_up_at = min(self._give_up_at, time.monotonic() + patience_s)

    def close(self) -> None:
        """As the interface."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(2)

    def _deadline(self, began: float) -> float:
        """Until when a batch that was begun then may take: a little longer than librdkafka gives it."""
        return min(began + self._settings.timeout_s + 5, max(self._give_up_at, began + LAST_TRY_S))

    def _look(self) -> None:
        """See whether anybody answers."""
        try:
            self._producer.list_topics(self._settings.name, timeout=self._settings.timeout_s)
        except self._library.KafkaException as error:
            self.close()
            raise self._judged(error.args[0]) from error

    def _produce(self, message: Message, delivered: object) -> None:
        headers = {"id": message.id.encode()}
        self._producer.produce(
            self._settings.name, message.body, key=message.key, headers=headers, on_delivery=delivered
        )
        self._producer.poll(0)

    def _heard(self, error: object) -> None:
        """What librdkafka says of its connections while it goes on trying."""
        self._trouble = str(error)

    def _judged(self, error: Any) -> StreamAwayError | StreamRefusedError:  # noqa: ANN401 - untyped
        kinds = self._library.KafkaError
        told = error.str() if error is not None else "no acknowledgement in time"
        why = f" ({self._trouble})" if self._trouble else ""
        refusals = {
            kinds._AUTHENTICATION,  # noqa: SLF001 - that is their name
            kinds._SSL,  # noqa: SLF001
            kinds._INVALID_ARG,  # noqa: SLF001
            kinds.TOPIC_AUTHORIZATION_FAILED,
            kinds.CLUSTER_AUTHORIZATION_FAILED,
            kinds.SASL_AUTHENTICATION_FAILED,
            kinds.MSG_SIZE_TOO_LARGE,
            kinds.TOPIC_EXCEPTION,
        }
        if error is not None and (error.code() in refusals or "authentication" in why.lower()):
            return StreamRefusedError(
                f"{self._place} refused: {told}{why}", hint="look at user, password, stream.mechanism and rights"
            )
        return StreamAwayError(f"{self._place} is away: {told}{why}")


def _brokers(settings: StreamSettings) -> tuple[list[str], str]:
    """HOST:PORT of each, and the user. Several stand in the URL with commas between them."""
    place = settings.url.partition("://")[2].partition("/")[0]
    user, _, listed = place.rpartition("@")
    hosts = []
    for one in listed.split(","):
        parts = split_address(f"{_SCHEME}://{one}", (_SCHEME,), "stream.url")
        if not parts.hostname:
            raise UsageError("stream.url names no broker", hint="write kafka://HOST:PORT,HOST:PORT")
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        hosts.append(f"{name}:{parts.port or USUAL_PORT}")
    split_address(f"{_SCHEME}://{user}@{hosts[0]}" if user else f"{_SCHEME}://{hosts[0]}", (_SCHEME,), "stream.url")
    return hosts, user


def _security(settings: StreamSettings, hosts: Sequence[str], user: str, password: Secret) -> dict[str, object]:
    secured = is_secured(settings.tls, hosts)
    protocol = ("SASL_" if user else "") + ("SSL" if secured else "PLAINTEXT")
    options: dict[str, object] = {"security.protocol": protocol}
    if secured:
        options["enable.ssl.certificate.verification"] = settings.tls != "unverified"
        options["ssl.endpoint.identification.algorithm"] = "none" if settings.tls == "unverified" else "https"
        if settings.authorities:
            options["ssl.ca.location"] = settings.authorities
    if user:
        options |= {
            "sasl.mechanism": settings.mechanism,
            "sasl.username": user,
            "sasl.password": password.reveal(),
        }
    return options
