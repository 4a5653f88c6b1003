"""Messages for others: one for each page that is stored, sent at least once (W7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nephila.model.noun import noun


@noun
class Message:
    """One message. What its body says is told in docs/streams.md."""

    id: str
    """The same whenever it is sent again: whoever reads can tell a repetition by it."""
    key: bytes
    """The fingerprint of the URL: messages of one URL stay in order where a stream has parts."""
    body: bytes
    """JSON."""


class MessageStream(Protocol):
    """Where messages go. Blocks, so that it is called in a thread; one call at a time."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Return when all of them were acknowledged, in order.

        Raises `StreamAwayError` where the same may work later: some may have arrived, and all are to be sent again.
        Raises `StreamRefusedError` where only a person can help.
        """

    def hurry(self, patience_s: float) -> None:
        """The end has come: no call takes longer than that, or than a moment. From any thread, beside `publish`."""

    def close(self) -> None:
        """Let go of it; what was not acknowledged is the caller's to send again."""
