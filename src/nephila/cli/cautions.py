"""What a user should know before the crawl starts: warnings for standard error, never a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nephila.model.settings import PolitenessSettings, Settings

CUSTOMARY_DELAY_S = PolitenessSettings().delay_s
"""One second (P2)."""
_PAGES = ("text/html", "application/xhtml+xml")
_CONTACT = re.compile(r"https?://|@")


def cautions(settings: Settings, *, public: bool) -> Iterator[str]:
    """One sentence each. `public` says whether hosts that are not our own may be asked."""
    if not settings.robots.obey:
        yield "robots.txt is not obeyed: do this with sites of your own only."
    if settings.fetch.bad_certificates:
        yield "bad certificates are accepted: who answers may not be who was asked."
    yield from _to_no_end(settings)
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


def _to_no_end(settings: Settings) -> Iterator[str]:
    """What was asked for and comes to nothing without something else; plugins may read what is not told here."""
    types, scope = settings.fetch.types, settings.scope
    if settings.plugins.enabled or scope.requisites:
        return
    if settings.limits.max_depth and not _reads(types, *_PAGES):
        yield (
            f"HTML is not among the types that are read ({', '.join(types)}), so no links are found in pages: "
            "add --type text/html."
        )
    if scope.images and not any(one == "*/*" or one.startswith("image/") for one in types):
        yield "--images asks for pictures, but none is stored by their type: add --type text/html --type 'image/*'."
    if settings.pdf.keep and not settings.pdf.links and not _reads(types, "application/pdf"):
        yield "--keep-pdf by itself fetches no PDFs: add --pdf-links."
    if settings.office.keep and not settings.office.links and not _reads(types, "application/zip"):  # as they all are
        yield "--keep-office by itself fetches no office documents: add --office-links."


def _reads(types: Sequence[str], *wanted: str) -> bool:
    """Whether one of the wanted media types is among those that are read."""
    return any(one in {kind, kind.partition("/")[0] + "/*", "*/*"} for one in types for kind in wanted)
