"""Many seeds, one after the other, and what they came to: a file remembers it, so that they add up over days.

The file holds which seeds were lived through, as ranges, and totals. A seed that failed is not among them: it comes
first when the campaign goes on, until it passes.
"""

from __future__ import annotations

import gc
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nephila.model.errors import StorageError, UsageError

from .runner import Verdict, run_seed

FORMAT = "nephila sim 1"
SAVE_S = 5.0
COLLECT_EVERY = 16
"""Seeds between two looks for garbage: looking every few thousand allocations would cost a third of the time."""


@dataclass(slots=True)
class Campaign:
    """What was lived through so far."""

    done: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of seeds that passed, in order: first, and the one after the last."""
    failed: dict[int, str] = field(default_factory=dict)
    """Seeds that did not, each with the first thing that broke."""
    happened: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    pages: int = 0
    virtual_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def count(self) -> int:
        """Seeds that passed."""
        return sum(end - first for first, end in self.done)

    def add(self, verdict: Verdict) -> None:
        """Count one more."""
        if verdict.found:
            self.failed[verdict.seed] = verdict.found[0]
            return
        self.failed.pop(verdict.seed, None)
        self.done = _with(self.done, verdict.seed)
        self.happened.update(verdict.happened)
        self.requests += verdict.requests
        self.pages += verdict.pages
        self.virtual_s += verdict.virtual_s
        self.cpu_s += verdict.cpu_s

    def seeds(self, start: int) -> Iterator[int]:
        """What is to be lived through: what failed before, then what is new, from `start` on."""
        again = sorted(seed for seed in self.failed if seed >= start)
        yield from again
        seed = start
        while True:
            beyond = next((end for first, end in self.done if first <= seed < end), None)
            if beyond is not None:
                seed = beyond
                continue
            if seed not in again:
                yield seed
            seed += 1

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            "format": FORMAT,
            "seeds": self.count,
            "done": self.done,
            "failed": {str(seed): told for seed, told in sorted(self.failed.items())},
            "happened": dict(self.happened.most_common()),
            "requests": self.requests,
            "pages": self.pages,
            "virtual_s": round(self.virtual_s, 3),
            "cpu_s": round(self.cpu_s, 3),
        }


def _with(done: list[tuple[int, int]], seed: int) -> list[tuple[int, int]]:
    """Ranges with one more seed in them."""
    joined: list[tuple[int, int]] = []
    for first, end in sorted([*done, (seed, seed + 1)]):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((first, end))
    return joined


def load(path: Path) -> Campaign:
    """The campaign that a file remembers; a new one where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Campaign()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    try:
        return _read(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path} is no state file of nephila sim", hint="name another one, or remove it") from error


def _read(kept: dict[str, Any]) -> Campaign:
    if kept["format"] != FORMAT:
        raise ValueError(kept["format"])
    return Campaign(
        [(int(first), int(end)) for first, end in kept["done"]],
        {int(seed): str(told) for seed, told in kept["failed"].items()},
        Counter({str(kind): int(count) for kind, count in kept["happened"].items()}),
        int(kept["requests"]),
        int(kept["pages"]),
        float(kept["virtual_s"]),
        float(kept["cpu_s"]),
    )


def save(campaign: Campaign, path: Path) -> None:
    """Keep it; a reader sees the old file or the new one."""
    draft = path.with_name(path.name + ".new")
    try:
        draft.write_text(json.dumps(campaign.to_json(), indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", hint="name another --state FILE") from error


def go_on(
    state: Path | None, runs: int, start: int, tell: Callable[[Verdict, Campaign], None] = lambda _verdict, _all: None
) -> Campaign:
    """Live through so many more seeds. Whatever ends it (Ctrl-C, too), what was lived through is kept."""
    campaign = Campaign() if state is None else load(state)
    if state is not None:
        save(campaign, state)  # a file that cannot be written is found out now, not after an hour
    saved_at = time.monotonic()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for number, seed in zip(range(runs), campaign.seeds(start), strict=False):
            verdict = run_seed(seed)
            campaign.add(verdict)
            tell(verdict, campaign)
            if number % COLLECT_EVERY == COLLECT_EVERY - 1:
                gc.collect()
            if state is not None and time.monotonic() - saved_at > SAVE_S:
                save(campaign, state)
                saved_at = time.monotonic()
    finally:
        gc.enable()
        gc.unfreeze()
        if state is not None:
            save(campaign, state)
    return campaign
