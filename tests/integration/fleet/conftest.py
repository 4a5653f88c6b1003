"""A real server for the tests of what workers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from valkey_servers import ValkeySingle


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeySingle]:
    """One for all: each test has a crawl of its own."""
    with ValkeySingle("--appendonly", "yes") as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def no_machine_of_amazon() -> Iterator[None]:
    """Whoever looks for credentials asks nobody outside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield
