"""What became of the seeds, for the answer to whoever gave them (S1): added, already known, refused and why.

`SeedTally` gathers while seeds are read and admitted; `SeedReport` is the frozen end of it. Of the refused ones a few
examples of each reason are kept, shortened and with secrets masked, however many there are; all are told as they come.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from nephila.interfaces.frontier import Admission
from nephila.urls import mask_secrets

from .reading import SeedRefused
from .spelling import SeedFault

_EXAMPLES_PER_REASON = 3
_SHOWN = 160
"""Characters of an example."""
_LOOKED_AT = 4_096
"""Characters of a text that are looked at for that: a line may be very long, and have quotes without end in it."""
_PASSWORD = re.compile(r"""(?<![^\s/"'@])[^\s/"'@:]+:[^\s/@]+@""")
"""A name and password before a host, in a text that is no URL and that `mask_secrets` therefore leaves alone. It is
tried at the beginning of a word only: a line may be very long."""
_URL = re.compile(r"""(?i)\bhttps?://[^\s"'<>]+""")


@dataclass(frozen=True, slots=True)
class SeedReport:
    """The figures, and some of the refused seeds to look at."""

    added: int
    known: int
    refused: Mapping[str, int]
    """How many, by reason."""
    examples: tuple[SeedRefused, ...]
    """The first few of each reason, fit to be shown."""

    def sentence(self) -> str:
        """All of it in one line: ``12 added, 3 already known, 2 refused (1 malformed, 1 too long)``."""
        line = f"{self.added:,} added, {self.known:,} already known, {sum(self.refused.values()):,} refused"
        if self.refused:
            line += " (" + ", ".join(f"{n:,} {_in_words(reason)}" for reason, n in self.refused.items()) + ")"
        return line


class SeedTally:
    """Counts while seeds are read."""

    def __init__(self, tell: Callable[[SeedRefused], None] | None = None) -> None:
        """`tell` hears of every refused seed, fit to be shown."""
        self._tell = tell
        self._added = 0
        self._known = 0
        self._refused: Counter[str] = Counter()
        self._examples: list[SeedRefused] = []

    def admit(self, admission: Admission) -> None:
        """Take what the frontier said to a batch of accepted seeds; those that cool are among the known ones."""
        self._added += admission.added
        self._known += admission.known

    def refuse(self, refused: SeedRefused) -> None:
        """Take a seed that was refused, by its spelling or by a rule of the scope."""
        self._refused[refused.reason] += 1
        shown = replace(refused, text=_presentable(refused.text), detail=_presentable(refused.detail))
        if self._refused[refused.reason] <= _EXAMPLES_PER_REASON:
            self._examples.append(shown)
        if self._tell is not None:
            self._tell(shown)

    def report(self) -> SeedReport:
        """The figures up to now, the most frequent reasons first."""
        return SeedReport(self._added, self._known, dict(self._refused.most_common()), tuple(self._examples))


def _in_words(reason: str) -> str:
    return "unsupported scheme" if reason == SeedFault.SCHEME else reason.replace("_", " ")


def _presentable(text: str) -> str:
    """A seed or sentence that may be shown: one printable line, short, without passwords and tokens."""
    text = text[:_LOOKED_AT]
    masked = _URL.sub(lambda match: mask_secrets(match[0]), text) if "://" in text else mask_secrets(text)
    masked = _PASSWORD.sub("***@", masked)
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in masked)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "\N{HORIZONTAL ELLIPSIS}"
