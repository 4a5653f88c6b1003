"""How the servers of a frontier are entered: what is advised is what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nephila.config import load
from nephila.model.errors import UsageError
from nephila.node.fleet.access import valkey_servers


def entry(environ: dict[str, str], *assignments: str) -> tuple[str, ...]:
    """What is said of user and password, by an environment and settings."""
    given = ("fleet.servers=redis://127.0.0.1:6379", *assignments)
    return valkey_servers(load(environ=environ, assignments=given).settings, environ).entry


def test_every_variable_and_setting_that_the_advice_names_is_taken(tmp_path: Path) -> None:
    """C4, K4: an address with a password is refused with what to do instead, and that can be done."""
    with pytest.raises(UsageError, match="must not hold user or password") as told:
        entry({}, "fleet.servers=redis://spider:silk@127.0.0.1:6379")
    file = tmp_path / "password"
    file.write_text("silk\n")
    taken = {
        "NEPHILA_FLEET_USERNAME": ("spider", ("AUTH", "spider", "")),
        "NEPHILA_FLEET_PASSWORD_FILE": (str(file), ("AUTH", "silk")),
        "REDISCLI_AUTH": ("silk", ("AUTH", "silk")),
        "fleet.username": ("spider", ("AUTH", "spider", "")),
        "fleet.password_file": (str(file), ("AUTH", "silk")),
    }
    named = re.findall(r"[A-Z]+(?:_[A-Z]+)+|fleet\.\w+", told.value.hint)
    assert set(named) == set(taken)
    for name, (value, said) in taken.items():
        is_setting = "." in name
        assert entry({} if is_setting else {name: value}, *([f"{name}={value}"] if is_setting else [])) == said
