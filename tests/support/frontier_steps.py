"""What the state machine of the frontier draws from: a small web, its links, its answers, and the settings of a run.

Everything is small so that things meet: three hosts of two domains, budgets of a few URLs, traps after two wasted
fetches, a pause after a few errors.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from nephila.frontier.estimated import EstimatedRecrawl
from nephila.frontier.policy import Policy
from nephila.frontier.schedule import SimpleRecrawl
from nephila.model.outcome import Done
from nephila.model.policy import DomainPolicy, Tier
from nephila.model.record import RecordRef
from nephila.model.settings import (
    BudgetSettings,
    FrontierSettings,
    PolitenessSettings,
    RecrawlSettings,
    TrapSettings,
)
from nephila.model.task import Candidate, Level
from nephila.testing.repute import GivenRepute
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

HOSTS = ("a.test", "www.a.test", "b.test")
DOMAINS = ("a.test", "b.test")
PATHS = ("", "1/", "2", "c/1", "c/2", "c/3")
URLS = tuple(f"{scheme}://{host}/{path}" for host in HOSTS for scheme in ("http", "https") for path in PATHS)
BLOCKS = ("a.test", "www.a.test", "b.test", "https://a.test/c/", "http://b.test/")
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())

SMALL_BUDGET = BudgetSettings(
    queued_per_host=6,
    first_urls=5,
    urls_per_page=2,
    urls_per_referrer=3,
    first_hosts=1,
    hosts_per_useful_host=1,
    hosts_per_referrer=1,
)
SMALL_TRAPS = TrapSettings(slow_after=1, stop_after=2, slow_s=30.0, probe_s=3600.0)
TOUCHY = PolitenessSettings(pause_window=4, pause_share=0.5, pause_s=600.0, demote_after=2)
RECRAWL = RecrawlSettings(gone_over_s=3600.0, gone_after=2)


def address(url: str) -> Address:
    """The address of a URL of this web."""
    found = IDENTIFIER.identify(url)
    assert isinstance(found, Address)
    return found


ADDRESSES = {url: address(url) for url in URLS}


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """The settings of a run."""
    frontier = FrontierSettings(
        sync=False,
        linger_ms=0,
        map_bytes=1 << 26,
        cooldown_s=draw(st.sampled_from([0.0, 0.0, 500.0])),
        max_refusals=5,
        urls_per_lease=3,
    )
    return Policy(
        frontier,
        draw(st.sampled_from([0, 1000])),
        draw(st.sampled_from([0, 0, 3])),
        robots=draw(st.booleans()),
        ordered=draw(st.booleans()),
        budget=draw(st.sampled_from([SMALL_BUDGET, BudgetSettings()])),
        traps=draw(st.sampled_from([SMALL_TRAPS, TrapSettings()])),
        politeness=TOUCHY,
        recrawl=draw(st.sampled_from([SimpleRecrawl(RECRAWL), EstimatedRecrawl(RECRAWL), None])),
        repute=draw(st.sampled_from([None, GivenRepute({"a.test": 50, "b.test": 0})])),
        target_domains=draw(st.sampled_from([0, 0, 2])),
        lease_span_ms=draw(st.sampled_from([0, 1000, 60_000])),
    )


some_candidates = st.lists(
    st.builds(
        Candidate,
        st.sampled_from(list(ADDRESSES.values())),
        st.integers(0, 3),
        st.sampled_from([None, None, *Level]),
        st.integers(0, 1),
        st.sampled_from([0, 15, -20]),
    ),
    max_size=8,
)
some_orders = st.builds(
    DomainPolicy,
    delay_s=st.sampled_from([None, 0.0, 2.0]),
    max_depth=st.sampled_from([None, 0, 2]),
    tier=st.sampled_from(Tier),
    recrawl_s=st.sampled_from([None, 60.0]),
    hours=st.sampled_from([(), (), ((22, 4),), ((0, 12),)]),
    paused=st.sampled_from([False, False, True]),
    quality=st.sampled_from([0.1, 1.0, 5.0]),
)


@dataclass(frozen=True)
class Answer:
    """What a page said."""

    status: int = 200
    page: bool = True
    changed: bool = True
    duplicate: bool = False
    text: bytes = b""
    shape: bytes = b""
    outlinks: int = 0

    def stored(self, ref: RecordRef) -> Done:
        """The page as it is settled."""
        return Done(
            ref,
            self.status,
            b"d" * 32,
            changed=self.changed,
            page=self.page,
            duplicate=self.duplicate,
            text=self.text,
            shape=self.shape,
            outlinks=self.outlinks,
        )


some_pages = st.builds(
    Answer,
    status=st.just(200),
    page=st.just(value=True),
    changed=st.booleans(),
    duplicate=st.sampled_from([False, False, True]),
    text=st.sampled_from([b"", b"text-one", b"text-two", b"text-333"]),
    shape=st.sampled_from([b"", b"shape-01", b"shape-02"]),
    outlinks=st.sampled_from([0, 1, 20]),
)
some_answers = st.one_of(
    some_pages, some_pages, st.just(Answer(404, page=False)), st.just(Answer(301, page=False, outlinks=1))
)


def forbidden(candidate: Candidate, blocks: set[str], order: DomainPolicy | None) -> bool:
    """Whether a person's word keeps a candidate out."""
    if order is not None and order.max_depth is not None and candidate.depth > order.max_depth:
        return True
    return blocked(candidate.address.host, candidate.address.url, blocks)


def blocked(host: str, url: str, blocks: set[str]) -> bool:
    """Whether a block names a host or the beginning of a URL."""
    names = {host, host.removeprefix("www.")}
    return bool(names & blocks) or any("://" in pattern and url.startswith(pattern) for pattern in blocks)
