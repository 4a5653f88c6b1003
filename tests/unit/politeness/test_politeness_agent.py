"""Who we say we are."""

from __future__ import annotations

import pytest

from nephila.model.errors import UsageError
from nephila.model.settings import FetchSettings
from nephila.politeness import check_user_agent, names_contact, product_token


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        (FetchSettings().user_agent, "Nephila"),
        ("My-Bot_2.1 x", "My-Bot_2.1"),
        ("Bot", "Bot"),
        ("(x)", ""),
        ("", ""),
    ],
)
def test_our_name_is_the_first_product(user_agent: str, token: str) -> None:
    """P1, P6: what robots.txt files call us."""
    assert product_token(user_agent) == token


@pytest.mark.parametrize(
    "user_agent", ["", " Bot", "Bot ", "Bot\r\nX: y", "Bot\n", "Bot\x00", "Böt/1", "(no name)", "/1.0"]
)
def test_a_user_agent_that_cannot_be_sent_is_told(user_agent: str) -> None:
    """P6: before the first request, in a sentence, with what to do."""
    with pytest.raises(UsageError) as told:
        check_user_agent(user_agent)
    assert "User-Agent" in str(told.value)
    assert told.value.hint


@pytest.mark.parametrize("user_agent", [FetchSettings().user_agent, "B", "Bot/1.0\t(x; y)"])
def test_an_ordinary_user_agent_is_accepted(user_agent: str) -> None:
    """P6: printable ASCII that begins with a name."""
    check_user_agent(user_agent)


def test_a_contact_is_a_url_or_a_mail_address() -> None:
    """P6: a webmaster must be able to reach somebody."""
    assert names_contact(FetchSettings().user_agent)
    assert names_contact("Bot (bot@x.example)")
    assert not names_contact("Bot/1.0")
