"""Building the stream that messages for others go to, and putting it before a catalogue (W7)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from nephila.engines.secrets import find_secret
from nephila.interfaces.catalogue import WholeCatalogue
from nephila.interfaces.stream import MessageStream
from nephila.model.errors import UsageError
from nephila.model.settings import StreamSettings
from nephila.store.messagefile import MessageFile
from nephila.store.publishing import Publisher, PublishingCatalogue

PASSWORD = "NEPHILA_STREAM_PASSWORD"  # noqa: S105 - the name of a variable


def telling(
    catalogue: WholeCatalogue,
    settings: StreamSettings,
    crawl: str,
    identity: str,
    tell: Callable[[str, str], None] | None = None,
) -> WholeCatalogue:
    """A catalogue that tells the stream of a page before it lists it; closing it closes both."""
    publisher = Publisher(open_stream(settings, os.environ), settings, crawl, identity, tell)
    try:
        publisher.open()
    except BaseException:
        publisher.close()
        raise
    return PublishingCatalogue(catalogue, publisher)


def open_stream(settings: StreamSettings, environ: Mapping[str, str]) -> MessageStream:
    """The stream that a URL names; nothing is connected yet. The clients are imported where they are asked for."""
    password = find_secret(settings.password_file, environ, (PASSWORD,), "stream.password_file")
    match urlsplit(settings.url).scheme:
        case "redis":
            from nephila.engines.streams import RedisStream  # noqa: PLC0415

            return RedisStream(settings, password)
        case "nats":
            from nephila.engines.nats import NatsStream  # noqa: PLC0415

            return NatsStream(settings, password)
        case "kafka":
            from nephila.engines.kafka import KafkaStream  # noqa: PLC0415

            return KafkaStream(settings, password)
        case "file":
            return MessageFile(settings.url)
        case other:
            raise UsageError(
                f"stream.url begins with {other or 'no scheme'}, which is no kind of stream",
                hint="there are redis://, nats://, kafka:// and file:///",
            )
