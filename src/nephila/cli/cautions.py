"""What a user should know before the crawl starts: warnings for standard error, never a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nephila.model.settings import PolitenessSettings, Settings

CUSTOMARY_DELAY_S = PolitenessSettings().delay_s
"""One second (P2)."""
_CONTACT = re.compile(r"https?://|@")


def cautions(settings: Settings, *, public: bool) -> Iterator[str]:
    """One sentence each. `public` says whether hosts that are not our own may be asked."""
    if not settings.robots.obey:
        yield "robots.txt is not obeyed: do this with sites of your own only."
    if settings.fetch.bad_certificates:
        yield "bad certificates are accepted: who answers may not be who was asked."
    if not public:
        return
    if settings.politeness.delay_s < CUSTOMARY_DELAY_S:
        yield (
            f"a delay of {settings.politeness.delay_s:g} s is shorter than the customary "
            f"{CUSTOMARY_DELAY_S:g} s: sites that are not yours may take it ill."
        )
    agent = settings.fetch.user_agent
    if ".invalid" in agent or not _CONTACT.search(agent):
        yield (
            "the User-Agent names nobody who can be reached: set one with a contact, "
            'for example --user-agent "MyBot/1.0 (+https://example.org/bot)".'
        )
