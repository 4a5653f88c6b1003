"""Messages to a subject of NATS that a JetStream stream keeps.

Each is published under its id (`Nats-Msg-Id`), by which the server itself drops repetitions within its window, two
minutes unless the stream says otherwise. Where no stream keeps the subject, one is made, on disk. The client runs on a
loop of its own, without reconnecting by itself: what is away is the caller's to wait for.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress

from nats import errors as nats_errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js import errors as stream_errors
from nats.js.api import PubAck

from nephila.interfaces.stream import Message
from nephila.model.errors import StreamAwayError, StreamRefusedError
from nephila.model.settings import StreamSettings

from .attempts import Attempts
from .own_loop import OwnLoop
from .secrets import Secret, split_address
from .tls import context_for

USUAL_PORT = 4222
CONNECT_S = 10.0
CLOSE_S = 2.0


class NatsStream:
    """Implements `interfaces.stream.MessageStream`. Connects when it is first asked to."""

    def __init__(self, settings: StreamSettings, password: Secret) -> None:
        parts = split_address(settings.url, ("nats",), "stream.url")
        self._settings = settings
        self._host, self._port, self._user = parts.hostname or "localhost", parts.port or USUAL_PORT, parts.username
        self._place = f"the subject {settings.name} at {self._host}:{self._port}"
        self._password = password
        self._tls = context_for(settings.tls, settings.authorities, self._host)
        self._own = OwnLoop("nats")
        self._attempts = Attempts(self._own.loop, settings.timeout_s)
        self._client: Client | None = None
        self._stream: JetStreamContext | None = None
        self._lost = asyncio.Event()
        self._trouble: Exception | None = None

    def publish(self, messages: Sequence[Message]) -> None:
        """As the interface."""
        self._own.run(self._publish(messages))

    def hurry(self, patience_s: float) -> None:
        """As the interface."""
        if not self._own.is_closed:
            self._own.loop.call_soon_threadsafe(self._attempts.give_up_in, patience_s)

    def close(self) -> None:
        """As the interface."""
        if not self._own.is_closed:
            self._own.close(self._disconnect())

    # On the loop

    async def _publish(self, messages: Sequence[Message]) -> None:
        try:
            async with self._attempts.one():
                stream = await self._connected()
                sent = [await self._send(stream, message) for message in messages]
                await self._acknowledged(sent)
        except ssl.SSLCertVerificationError as error:
            await self._disconnect()
            raise StreamRefusedError(
                f"the certificate of {self._place} is not trusted: {error.verify_message}",
                hint="stream.authorities names the authority that signed it",
            ) from error
        except (OSError, TimeoutError, nats_errors.Error) as error:
            await self._disconnect()
            raise self._judged(error) from error

    async def _send(self, stream: JetStreamContext, message: Message) -> asyncio.Future[PubAck]:
        """Send one; the acknowledgement is to be awaited."""
        headers = {"Nats-Msg-Id": message.id}
        return await stream.publish_async(self._settings.name, message.body, headers=headers)

    async def _acknowledged(self, sent: Sequence[asyncio.Future[PubAck]]) -> None:
        """Wait for all, as long as there is a connection that they may come over."""
        lost = asyncio.ensure_future(self._lost.wait())
        all_of_them = asyncio.ensure_future(_all(sent))
        try:
            await asyncio.wait({lost, all_of_them}, return_when=asyncio.FIRST_COMPLETED)
            if not all_of_them.done():
                raise nats_errors.ConnectionClosedError
            all_of_them.result()
        finally:
            lost.cancel()
            all_of_them.cancel()

    async def _has_lost(self) -> None:
        self._lost.set()

    async def _heard(self, error: Exception) -> None:
        """What the client says of its tries."""
        self._trouble = error

    async def _connected(self) -> JetStreamContext:
        if self._client is not None and self._stream is not None and self._client.is_connected:
            return self._stream
        await self._disconnect()
        client, self._lost = Client(), asyncio.Event()
        self._client = client
        await client.connect(
            f"{'tls' if self._tls else 'nats'}://{self._host}:{self._port}",
            name="nephila",
            allow_reconnect=False,
            connect_timeout=CONNECT_S,  # type: ignore[arg-type]  # it is waited for so many seconds, whole or not
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=self._heard,
            closed_cb=self._has_lost,
            user=self._user,
            password=self._password.reveal() or None,
            tls=self._tls,
            tls_hostname=self._host if self._tls else None,
        )
        stream = client.jetstream(timeout=self._settings.timeout_s, publish_async_max_pending=self._settings.batch)
        await self._keep_subject(stream)
        self._stream = stream
        return stream

    async def _keep_subject(self, stream: JetStreamContext) -> None:
        """See that somebody keeps what is published."""
        try:
            await stream.find_stream_name_by_subject(self._settings.name)
        except stream_errors.NotFoundError:
            name = "".join(c if c.isalnum() else "_" for c in self._settings.name)
            await stream.add_stream(name=name, subjects=[self._settings.name])

    def _judged(self, error: Exception) -> StreamAwayError | StreamRefusedError:
        if isinstance(error, nats_errors.NoServersError) and self._trouble is not None:
            error = self._trouble  # which is why there is none
        told = str(error) or type(error).__name__
        if isinstance(error, nats_errors.AuthorizationError) or "authorization violation" in told.lower():
            return StreamRefusedError(f"{self._place} refused: {told}", hint="look at user and password")
        if isinstance(error, stream_errors.BadRequestError | nats_errors.MaxPayloadError | nats_errors.BadSubjectError):
            return StreamRefusedError(f"{self._place} refused: {told}", hint="look at the stream that keeps it")
        return StreamAwayError(f"{self._place} is away: {told}")

    async def _disconnect(self) -> None:
        client, self._client, self._stream = self._client, None, None
        if client is not None:
            with suppress(OSError, TimeoutError, nats_errors.Error):
                async with asyncio.timeout(CLOSE_S):
                    await client.close()


async def _all(sent: Sequence[asyncio.Future[PubAck]]) -> bool:
    await asyncio.gather(*sent)
    return True
