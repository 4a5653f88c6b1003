"""An archive on a simulated disk, under a virtual clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nephila.model.record import SegmentId
from nephila.model.settings import ArchiveSettings
from nephila.store import CrawlIdentity, LocalArchive
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.archive import decode_sample
from nephila.testing.disk import ForgetfulDisk

DIRECTORY = Path("/archive")
_DEFAULTS = ArchiveSettings()


def _last_two_labels(host: str) -> str:
    return ".".join(host.split(".")[-2:])


@dataclass
class ArchiveWorld:
    """Opens archives on one disk, as restarted processes would."""

    disk: ForgetfulDisk = field(default_factory=ForgetfulDisk)
    clock: VirtualClock = field(default_factory=VirtualClock)
    closed: list[SegmentId] = field(default_factory=list)
    domain_of: Callable[[str], str] = _last_two_labels

    def open(self, settings: ArchiveSettings = _DEFAULTS, writer: int = 0) -> LocalArchive:
        identity = CrawlIdentity(secret=99, user_agent="Nephila/0.1", writer=writer)
        archive = LocalArchive(DIRECTORY, settings, self.clock, identity, self.disk, decode_sample, self.domain_of)
        archive.on_roll(self.closed.append)
        return archive

    def bytes_of(self, segment: SegmentId) -> bytes:
        return self.disk.contents(DIRECTORY / segment)

    def path(self, segment: SegmentId) -> Path:
        return DIRECTORY / segment


@pytest.fixture
def world() -> ArchiveWorld:
    return ArchiveWorld()
