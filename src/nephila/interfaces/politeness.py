"""When we may, and what an answer means for it. Plain decisions: it returns times, the frontier keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nephila.model.exchange import Answer
from nephila.model.noun import noun
from nephila.model.outcome import Dead, OriginRules, Release, Retry, RulesLearned
from nephila.model.task import Pace, PageTask, RobotsTask


@noun
class Permission:
    """What robots.txt says of a URL."""

    allowed: bool
    line: int = 0
    """The line of the rule that decided; 0 when none did."""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class RobotsRedirect:
    """The robots.txt is elsewhere: an absolute URL, and the hops it took."""

    url: str
    hops: int


class Politeness(Protocol):
    """The rules of good conduct (P1-P3, H5).

    `user_agent` is what a policy has us say to a host (R4); empty stands for the crawl's own. Rules are those that a
    robots.txt has for the product that it begins with.
    """

    def permits(self, rules: OriginRules | None, url: str, user_agent: str = "") -> Permission:
        """Whether the agent may fetch a URL under these rules."""

    def signals(self, rules: OriginRules | None, user_agent: str = "") -> str:
        """The Content-Signal and AI-preference lines in force for the agent (X2)."""

    def sitemaps(self, rules: OriginRules) -> tuple[str, ...]:
        """What the Sitemap lines of a robots.txt name, as absolute URLs, each once (X3)."""

    def learn(
        self, task: RobotsTask, answer: Answer, last: OriginRules | None, now: int, wall_ms: int
    ) -> RulesLearned | RobotsRedirect:
        """What the answer to a robots.txt request comes to; `now` is on the frontier's timeline."""

    def release(
        self, pace: Pace, answer: Answer | None, rules: OriginRules | None, wall_ms: int, user_agent: str = ""
    ) -> Release:
        """How long the host rests after an exchange (or after none, when nothing was sent)."""

    def retry(self, task: PageTask, kind: str, detail: str) -> Retry | Dead:
        """What becomes of a URL after a passing failure."""
