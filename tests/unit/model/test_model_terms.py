from __future__ import annotations

from dataclasses import replace

import pytest

from nephila.model.settings import Settings
from nephila.model.terms import Terms


def test_terms_are_read_back_as_they_were_written() -> None:
    """K1: on one line of ASCII."""
    settings = replace(Settings(), fetch=replace(Settings().fetch, allow_addresses=("10.0.0.0/8",), user_agent="Ä/1"))
    terms = Terms.of(settings)
    text = terms.to_json()
    assert Terms.from_json(text) == terms
    assert text.isascii()
    assert "\n" not in text


@pytest.mark.parametrize("text", ["", "x", "[]", "1", '{"delay_ms": "1"}', '{"allow_addresses": 3}', '{"proxied": 1}'])
def test_what_is_no_terms_is_none(text: str) -> None:
    """K1, Q5: nothing that lies in a file is believed unread."""
    assert Terms.from_json(text) is None


def test_what_another_version_adds_is_passed_over() -> None:
    """K1: older and newer trails are read alike."""
    assert Terms.from_json('{"delay_ms": 7, "address_rate": 3, "new": 1}') == Terms(delay_ms=7, address_rate=3)
