"""How often pages change, and what visits buy: histories and a population that others made."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import exp
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from nephila.frontier.change import after_visit, first_belief
from nephila.frontier.estimated import interval_for

Tell = Callable[[str, int, int], None]
DAY = 86_400


@pytest.fixture(scope="module")
def histories(material: Path) -> list[dict[str, Any]]:
    """Visits at irregular times, with the true rate and what maximum likelihood makes of them."""
    text = (material / "09-freshness" / "estimator_vectors_dev.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def test_rates_are_found_about_as_well_as_by_maximum_likelihood(histories: list[dict[str, Any]], tell: Tell) -> None:
    """R2: from two numbers, and by an estimate that follows shifts, which these histories do not have."""
    errors, likeliest = [], []
    for history in histories:
        rate = history["true_rate"]
        if not 0.05 < rate < 3 or not history["mle_smoothed"]:
            continue
        belief = first_belief(2 * DAY)
        for gap, changed in zip(history["intervals"], history["changed"], strict=True):
            belief = after_visit(belief, gap * DAY, changed=bool(changed))
        errors.append(abs(belief.rate * DAY - rate) / rate)
        likeliest.append(abs(history["mle_smoothed"] - rate) / rate)
    tell("change rates, mean relative error in thousandths", round(1000 * fmean(errors)), 1000)
    tell("change rates, the same by maximum likelihood", round(1000 * fmean(likeliest)), 1000)
    assert fmean(errors) < 1.1 * fmean(likeliest)


def freshness(rates: Sequence[float], intervals: Sequence[float]) -> float:
    """The mean share of time in which copies are up to date that are renewed at these intervals."""
    spans = [rate * interval for rate, interval in zip(rates, intervals, strict=True)]
    return fmean((1 - exp(-span)) / span for span in spans)


def best_interval(rate: float, price: float) -> float:
    """Where freshness alone is bought, and pages that cost more than they can be worth are given up."""
    if rate * price >= 1:
        return 1e9
    low, high = 1e-9, 60.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - (1 + middle) * exp(-middle) < rate * price else (low, middle)
    return low / rate


def test_visits_are_spent_nearly_as_well_as_they_could_be(material: Path, tell: Tell) -> None:
    """R2: better than in proportion to the rates, and near the best, which leaves fast pages out altogether."""
    text = (material / "09-freshness" / "pages_uniform-importance-gamma.json").read_text(encoding="utf-8")
    rates: list[float] = json.loads(text)["change_rate"]
    for budget in (0.05, 0.2, 1.0):

        def at_budget(interval_of: Callable[[float, float], float], budget: float = budget) -> list[float]:
            low, high = 1e-6, 1e6
            for _ in range(60):
                price = (low * high) ** 0.5
                visits = fmean(1 / interval_of(rate, price) for rate in rates)
                low, high = (price, high) if visits > budget else (low, price)
            return [interval_of(rate, low) for rate in rates]

        ours = freshness(rates, at_budget(interval_for))
        best = freshness(rates, at_budget(best_interval))
        proportional = freshness(rates, at_budget(lambda rate, price: price / rate))
        tell(f"freshness at {budget}, in proportion", round(1000 * proportional), round(1000 * best))
        tell(f"freshness at {budget} visits a day and page, in thousandths", round(1000 * ours), round(1000 * best))
        assert ours > 0.8 * best
        assert ours > 1.02 * proportional
