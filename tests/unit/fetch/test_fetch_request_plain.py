"""The short way to a target comes to the same as the long one."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from nephila.fetch.request import _read, target_of
from nephila.model.errors import UsageError

ORIGINS = st.sampled_from(
    (
        "http://a.test",
        "https://A.test",
        "http://0x7f.1",
        "https://a.test:443",
        "http://[::1]:8080",
        "http://u@a.test",
        "ftp://a.test",
        "http://a..test.",
    )
)
PATHS = st.lists(
    st.sampled_from(("/", "a", ".", "..", "?", "#", "%2e", " ", "x=1", "&", "\\", "é", "'", "(", "|")), max_size=6
).map("".join)


@given(ORIGINS, PATHS)
def test_targets_are_alike(origin: str, path: str) -> None:
    """U1, H6: what is asked for does not depend on the way that a URL was read."""
    url = f"{origin}/{path}"
    long_way = short_way = None
    with contextlib.suppress(UsageError):
        long_way = _read(url)
    with contextlib.suppress(UsageError):
        short_way = target_of(url)
    assert short_way == long_way
