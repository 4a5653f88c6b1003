"""The archive's promises, on a real directory and on the simulated disk."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nephila.model.settings import ArchiveSettings
from nephila.store import CrawlIdentity, LocalArchive, LocalDisk
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.archive import CHECKS, OpenArchive, decode_sample
from nephila.testing.disk import ForgetfulDisk


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("layout", ["rolling", "domain-hour"])
@pytest.mark.parametrize("medium", [LocalDisk, ForgetfulDisk])
def test_local_archive_keeps_the_contract(
    check: Callable[[OpenArchive], None], layout: str, medium: type[LocalDisk] | type[ForgetfulDisk], tmp_path: Path
) -> None:
    """W1, F10: every check of the suite, whatever is underneath."""
    disk, clock = medium(), VirtualClock()

    def open_archive() -> LocalArchive:
        settings = ArchiveSettings(layout=layout)
        return LocalArchive(
            tmp_path, settings, clock, CrawlIdentity(secret=7), disk, decode_sample, lambda host: "one.example"
        )

    check(open_archive)
