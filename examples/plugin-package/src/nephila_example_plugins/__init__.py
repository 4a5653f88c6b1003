"""Two plugins, found by their entry points; their options are their keyword arguments."""

from collections.abc import Sequence

from nephila.model.page import Link
from nephila.model.plugin import Glimpse, IncomingAnswer, OutgoingRequest, RequestAdvice


class Favourites:
    """A scorer: links with one of some words in their text or URL go first."""

    def __init__(self, words: Sequence[str] = (), points: int = 30) -> None:
        self.words = [word.lower() for word in words]
        self.points = points

    def score_links(self, page: Glimpse, links: Sequence[Link]) -> list[int]:
        """Points for each link."""
        return [self.points * any(word in f"{link.url} {link.text}".lower() for word in self.words) for link in links]


class Purpose:
    """A fetch hook: says what the crawl is for, and leaves some paths alone. Quick, so it needs no process."""

    quick = True

    def __init__(self, text: str = "", leave: Sequence[str] = ()) -> None:
        self.text = text
        self.leave = tuple(leave)

    def before_fetch(self, request: OutgoingRequest) -> RequestAdvice | None:
        """A header, or a veto."""
        if any(path in request.url for path in self.leave):
            return RequestAdvice(veto="it is left alone")
        return RequestAdvice(headers=(("X-Purpose", self.text),)) if self.text else None

    def after_fetch(self, answer: IncomingAnswer) -> None:
        """Nothing is done with it."""
