"""Addresses of servers, which may hold what nobody is to see."""

from __future__ import annotations

import pytest

from nephila.engines.secrets import split_address, without_secrets
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


def test_who_reads_what_strangers_wrote_is_told_no_password() -> None:
    """K4, Q5: by their names, and by what stands in them."""
    harmless = {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": "/x",
        "NEPHILA_NATIVE": "0",
        "HTTP_PROXY": "http://p:80",
    }
    secret = {
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "s",
        "NEPHILA_API_TOKEN": "s",
        "NEPHILA_FETCH_PROXY": "http://ann:s@proxy.test:8080",
        "NEPHILA_STREAM_PASSWORD": "s",
        "PGPASSWORD": "s",
        "REDISCLI_AUTH": "s",
        "SSH_AUTH_SOCK": "/x/agent",
    }
    assert without_secrets({**harmless, **secret}) == harmless
