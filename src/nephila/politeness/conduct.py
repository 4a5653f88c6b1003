"""The rules of good conduct as one object: what the pipeline asks before and after every request.

Nothing is decided here that is not decided in `robots_answer`, `robots_match`, `pace` or `retry`; this binds those to
the settings of a crawl and remembers robots.txt files that were parsed a short while ago.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from random import Random

from nephila.interfaces.politeness import Permission, RobotsRedirect
from nephila.model.exchange import Answer, FailureKind, Fetched, Truncation
from nephila.model.outcome import Dead, DeferReason, OriginRules, Release, Retry, RulesKind, RulesLearned
from nephila.model.settings import FrontierSettings, PolitenessSettings, RobotsSettings
from nephila.model.task import Pace, PageTask, RobotsTask
from nephila.urls import resolve

from .agent import check_user_agent, product_token
from .pace import Usual, heavy_ms, next_pace, observe, parks, retry_after_ms, wait_ms, with_crawl_delay
from .retry import retry_wait_ms
from .robots import parse_robots
from .robots_answer import judge_robots
from .robots_match import FREE, Rules

REMEMBERED_BYTES = 24_000_000
"""Of memory, about, for rules that are kept parsed: some two thousand different texts of ordinary length. Most of the
web's robots.txt files are copies of one another, and a copy takes nothing; parsing an ordinary one takes 0.1 ms."""
PARSED_BYTES, PARSED_RATIO = 600, 12
"""What parsed rules take: so much each, and so many times their text (8 to 15 were measured)."""

AT_HAND = 16_384
AT_HAND_BYTES = 16_000_000
"""Versions of rules that are found without a look at their text: so many, of so many bytes in all. A polite crawl goes
round its hosts: were they fewer than its hosts, not one would be found again."""

NOTICE_MS = 250
"""An exchange that we broke off ends, for the server, when it notices: a round trip or so is added to the delay."""

_ALLOWED = Permission(allowed=True)
_NO_RULES = Rules()


class StandardPoliteness:
    """Implements `interfaces.politeness.Politeness`."""

    def __init__(
        self,
        politeness: PolitenessSettings,
        robots: RobotsSettings,
        frontier: FrontierSettings,
        user_agent: str,
        random_seed: int = 0,
    ) -> None:
        """UsageError for a User-Agent that cannot be sent."""
        check_user_agent(user_agent)
        self._politeness = politeness
        self._usual = Usual(politeness)
        self._robots = robots
        self._frontier = frontier
        self._user_agent = user_agent
        self._random = Random(random_seed)  # noqa: S311 - jitter, not secrets
        self._parsed: OrderedDict[tuple[bytes, str], tuple[Rules, int]] = OrderedDict()
        """By digest of the text and agent; each with what it weighs."""
        self._remembered_bytes = 0
        self._at_hand: dict[int, tuple[OriginRules, str, Rules]] = {}
        """By the identity of rules that are asked for several times a page; each is kept alive while it is here."""
        self._at_hand_bytes = 0

    def permits(self, rules: OriginRules | None, url: str, user_agent: str = "") -> Permission:
        """Whether our agent, or another that a policy has us use, may fetch a URL under these rules."""
        if rules is None or rules.kind is RulesKind.ALLOW_ALL:
            return _ALLOWED
        if rules.kind is not RulesKind.RULES:
            return Permission(allowed=False, rule=f"robots.txt is unavailable: {rules.detail}")
        path = url[url.find("/", 8) :]
        verdict = self._rules(rules, user_agent).allows(path)
        return _ALLOWED if verdict is FREE else Permission(verdict.allowed, verdict.line, verdict.rule)

    def signals(self, rules: OriginRules | None, user_agent: str = "") -> str:
        """The Content-Signal and AI-preference lines in force for the agent."""
        return "" if rules is None else self._rules(rules, user_agent).signal_lines

    def sitemaps(self, rules: OriginRules) -> tuple[str, ...]:
        """What the Sitemap lines of a robots.txt name; a path is meant on its own origin."""
        if rules.kind is not RulesKind.RULES:
            return ()
        if b"map" not in rules.body.lower() and b"\0" not in rules.body:  # with zeros it may be UTF-16
            return ()
        named = parse_robots(rules.body).sitemaps
        found = (resolve(f"{rules.origin}/robots.txt", text.strip()) for text in named)
        return tuple(dict.fromkeys(url.partition("#")[0] for url in found if url and url.startswith("http")))

    def learn(
        self, task: RobotsTask, answer: Answer, last: OriginRules | None, now: int, wall_ms: int
    ) -> RulesLearned | RobotsRedirect:
        """What the answer to a robots.txt request comes to."""
        return judge_robots(task, answer, last, self._robots, now, wall_ms)

    def release(
        self, pace: Pace, answer: Answer | None, rules: OriginRules | None, wall_ms: int, user_agent: str = ""
    ) -> Release:
        """How long the host rests after an exchange."""
        if rules is not None:
            pace = with_crawl_delay(pace, self._rules(rules, user_agent).crawl_delay_s)
        if self._usual.leaves(answer, pace, rules):
            return Release(pace.delay_ms, pace, answer.elapsed_ms)
        asked = None
        if answer is not None:
            pace = next_pace(pace, observe(answer), self._politeness)
        if isinstance(answer, Fetched) and answer.status >= 300 and answer.header("retry-after"):
            asked = _asked_ms(answer, wall_ms)
        wait = wait_ms(pace, self._politeness, asked)
        if answer is not None:
            size = len(answer.body) if isinstance(answer, Fetched) else 0
            wait = max(wait, heavy_ms(size, len(rules.body) if rules is not None else 0, self._politeness))
        if wait and answer is not None and _broken_off(answer):
            wait += NOTICE_MS
        reason = DeferReason.CRAWL_DELAY if parks(pace, self._politeness) else None
        if asked is not None and asked > wait_ms(pace, self._politeness):
            reason = DeferReason.RETRY_AFTER
        return Release(wait, pace, answer.elapsed_ms if answer is not None else 0, reason)

    def retry(self, task: PageTask, kind: str, detail: str) -> Retry | Dead:
        """What becomes of a URL after a passing failure."""
        wait = retry_wait_ms(task.retries, self._frontier, self._random.random())
        return Dead(kind, detail) if wait is None else Retry(wait, kind, detail)

    def _rules(self, rules: OriginRules, user_agent: str) -> Rules:
        """What a robots.txt says to an agent; remembered by text and agent."""
        if rules.kind is not RulesKind.RULES:
            return _NO_RULES
        known = self._at_hand.get(id(rules))
        if known is not None and known[0] is rules and known[1] == user_agent:
            return known[2]
        found = self._remembered(rules.body, product_token(user_agent or self._user_agent))
        if len(self._at_hand) >= AT_HAND or self._at_hand_bytes >= AT_HAND_BYTES:
            self._at_hand.clear()
            self._at_hand_bytes = 0
        self._at_hand[id(rules)] = (rules, user_agent, found)
        self._at_hand_bytes += _weight(rules.body)
        return found

    def _remembered(self, body: bytes, agent: str) -> Rules:
        key = (sha256(body).digest(), agent)
        known = self._parsed.get(key)
        if known is not None:
            self._parsed.move_to_end(key)
            return known[0]
        parsed, weight = parse_robots(body).rules_for(agent), _weight(body)
        self._parsed[key] = (parsed, weight)
        self._remembered_bytes += weight
        while self._remembered_bytes > REMEMBERED_BYTES and len(self._parsed) > 1:
            _, (_, gone) = self._parsed.popitem(last=False)
            self._remembered_bytes -= gone
        return parsed


def _weight(body: bytes) -> int:
    """Bytes that the rules of a robots.txt take in memory, about."""
    return PARSED_BYTES + PARSED_RATIO * len(body)


def _asked_ms(answer: Fetched, wall_ms: int) -> int | None:
    """The longest wait that its Retry-After headers ask for."""
    asked = [retry_after_ms(value, wall_ms) for name, value in answer.headers if name == "retry-after"]
    return max((one for one in asked if one is not None), default=None)


def _broken_off(answer: Answer) -> bool:
    """Whether it was us who ended the exchange: out of time, too long, or of a type that was not wanted."""
    if isinstance(answer, Fetched):
        return answer.truncated in {Truncation.TIME, Truncation.LENGTH, Truncation.UNSPECIFIED}
    return answer.kind in {FailureKind.TIMEOUT, FailureKind.TOO_LARGE, FailureKind.PROTOCOL}
