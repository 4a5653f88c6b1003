"""Addresses of servers, which may hold what nobody is to see."""

from __future__ import annotations

import pytest

from nephila.engines.secrets import split_address
from nephila.model.errors import UsageError


@pytest.mark.parametrize(
    "url",
    ["redis://user:secret@host/0", "redis://user:secret/more@host/0", "redis://user:secret#more@host/0"],
    ids=("whole", "with a slash", "with a number sign"),
)
def test_an_address_with_a_password_is_refused_and_not_shown(url: str) -> None:
    """K4: nor a part of it, where it ends the host too early and stands where a port would."""
    with pytest.raises(UsageError) as refused:
        split_address(url, ("redis",), "stream.url")
    assert "secret" not in f"{refused.value} {refused.value.hint}"
