"""F1, F2, F3, F4, F5, F6, F7, F9, F10, R1, R2, R3, R4, R5, S4, S5, P1, P2, P4, T2, T7, T8: two frontiers, one answer.

The frontier on disk and the plain one in memory are given the same verbs under the same virtual clock, in any order:
they must give the same answers, lease the same hosts and URLs in the same order, count the same and tell the same
stories (`frontier_pairs`). The one on disk has a random secret in its keys: nothing that is compared may depend on it.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from frontier_pairs import Pair, some_deed, some_rules
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nephila.testing.repute import GivenRepute

some_random = st.integers(0, 2**32 - 1).map(Random)


class ModelMachine(RuleBasedStateMachine):
    """What can be done with a frontier as rules; `crawl` does many things, as a crawl does them."""

    robots = False

    @initialize(random=some_random)
    def open(self, random: Random) -> None:
        self.repute = GivenRepute({"a.test": 40, "b.test": 0}, {"a.test": 3, "c.test": 64}, turn=random.choice([0, 1]))
        self.pair = Pair(replace(some_rules(random, robots=self.robots), repute=self.repute))
        self.pair.do(some_deed(random, "admit"))

    def teardown(self) -> None:
        if hasattr(self, "pair"):
            self.pair.close()

    @rule(random=some_random, deeds=st.integers(1, 40))
    def crawl(self, random: Random, deeds: int) -> None:
        for _ in range(deeds):
            self.pair.do(some_deed(random))

    @rule(random=some_random)
    def admit(self, random: Random) -> None:
        self.pair.do(some_deed(random, "admit"))

    @rule(random=some_random)
    def claim(self, random: Random) -> None:
        self.pair.do(some_deed(random, "claim"))

    @rule()
    def rank_anew(self) -> None:
        """R3: the link graph was looked at once more, or its ranks were deleted."""
        self.repute.turn += 1

    @precondition(lambda self: self.pair.held)
    @rule(random=some_random)
    def settle(self, random: Random) -> None:
        self.pair.do(some_deed(random, "settle"))

    @rule(random=some_random, what=st.sampled_from(["set_policy", "block", "unblock", "release_trap", "revive"]))
    def operate(self, random: Random, what: str) -> None:
        self.pair.do(some_deed(random, what))

    @rule(random=some_random, what=st.sampled_from(["renew", "reap", "confirm", "lose", "settle_late"]))
    def keep_up(self, random: Random, what: str) -> None:
        self.pair.do(some_deed(random, what))

    @rule(random=some_random, what=st.sampled_from(["new_cycle", "end_cycle", "jump", "reopen"]))
    def begin_anew(self, random: Random, what: str) -> None:
        self.pair.do(some_deed(random, what))

    @rule(random=some_random)
    def let_time_pass(self, random: Random) -> None:
        self.pair.do(some_deed(random, "advance"))


class RobotsMachine(ModelMachine):
    """The same, where pages wait for the rules of their origin."""

    robots = True


LIMITS = settings(
    max_examples=90, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)
ModelMachine.TestCase.settings = LIMITS
RobotsMachine.TestCase.settings = LIMITS


class TestModel(ModelMachine.TestCase):  # type: ignore[misc,valid-type]
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, R1, R2, R4, R5, S4, S5, P2, P4, T2, T7, T8: see the module."""


class TestModelWithRobots(RobotsMachine.TestCase):  # type: ignore[misc,valid-type]
    """P1, F1, F2, F3, F4, F5, F6, F7, F9, F10, R1, R2, R4, R5, S4, S5, P2, P4, T2, T7, T8: see the module."""
