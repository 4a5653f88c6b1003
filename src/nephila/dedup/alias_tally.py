"""When a rule about aliases is believed: pure, from a tally and a piece of evidence to the tally after it (D4, T3).

A tally counts comparisons. One that speaks for the rule: two URLs that differ in what the rule is about, with the same
page behind them. One against it: two such URLs with different pages. The road of a parameter:

    watched --> tried --> in force --> suspended --> tried ...

- *Tried* after enough comparisons in a row speak for it, over enough different pages, with hardly any against it ever.
  Pages that are all alike prove nothing (a shell that scripts fill, an error page), so a page counts as another one
  only if its content differs from the one before.
- *In force* when leaving the parameter out was seen to make no difference either: a URL without it is what its aliases
  are admitted as, and a server may answer an error there. Nothing is refused before its stand-in was seen to be good.
- *Suspended* by a single comparison against it. Each one doubles what it takes to be believed again.

An origin that always redirects goes from watched to in force at once: what it is replaced by is where it led itself.

What must stay true: `after` reads no clock and forgets nothing that was undone; the same evidence in the same order
gives the same tally.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from nephila.model.alias import EVERYWHERE, AliasKind, AliasState

PLACES = 3
"""Different pages that must agree; one page is no rule."""
SHAPES = 3
"""Different shapes of paths that must agree before a parameter is believed to mean nothing anywhere."""
STAND_INS = 2
"""Pages on which leaving the parameter out was seen to change nothing."""
AGAINST = 0.02
"""The share of comparisons against it with which a rule may still be believed: pages change between two visits."""
DOUBLINGS = 5
"""A rule that failed so often needs 32 times the votes, and not more."""
SETTLED = 8
"""So many comparisons against it and none for it since: it makes a difference, and nobody needs to ask again."""
SHOWN = 200
"""Characters kept of an example."""


class Subject(NamedTuple):
    """What a rule is about."""

    kind: AliasKind
    scope: str
    """The shape of the path (`urls.skeleton`), `EVERYWHERE`, or the origin that redirects."""
    name: str
    """The parameter; empty for a host."""
    target: str = ""
    """The origin that is redirected to."""


class Evidence(NamedTuple):
    """One comparison."""

    subject: Subject
    agrees: bool
    at_s: int
    pair: tuple[str, str]
    content: bytes = b""
    """Names what was found, where it agrees."""
    place: bool = False
    """The first agreement about this page."""
    shape: bool = False
    """The first agreement about paths of this shape."""
    stand_in: bool = False
    """One of the two is without the parameter."""
    hint: bool = False
    """A site's own word (a canonical link, a redirect), not a comparison."""


class AliasTally(msgspec.Struct, array_like=True, frozen=True):
    """What is known about one subject; stored as it is."""

    kind: str
    scope: str
    name: str
    target: str
    state: str = AliasState.WATCHED
    since_s: int = 0
    last_s: int = 0
    agreed: int = 0
    against: int = 0
    hints: int = 0
    run: int = 0
    """Agreements since the last comparison against it."""
    places: int = 0
    stand_ins: int = 0
    """These two count from the last comparison against it as well."""
    shapes: int = 0
    content: bytes = b""
    """What was found at the last place that counted."""
    caught: int = 0
    example: tuple[str, str] = ("", "")
    counter_example: tuple[str, str] = ("", "")

    @property
    def subject(self) -> Subject:
        """What it is about."""
        return Subject(AliasKind(self.kind), self.scope, self.name, self.target)

    @property
    def acts(self) -> bool:
        """Whether links are looked at for it."""
        return self.state in (AliasState.TRIED, AliasState.IN_FORCE)

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to learn about it: more of the same would only cost."""
        if self.kind == AliasKind.HOST:
            return not self.run and self.against > 0  # one answer of its own is enough
        return not self.run and self.against >= SETTLED

    @property
    def doubtful(self) -> bool:
        """Whether what was compared speaks against it: then no wider rule may overrule it."""
        return self.against > AGAINST * (self.agreed + self.against)


def fresh(subject: Subject, at_s: int) -> AliasTally:
    """A tally of nothing yet."""
    return AliasTally(subject.kind, subject.scope, subject.name, subject.target, since_s=at_s)


def after(tally: AliasTally, evidence: Evidence, votes: int) -> AliasTally:
    """The tally with one more piece of evidence; `votes` agreements in a row are asked for."""
    pair = (evidence.pair[0][:SHOWN], evidence.pair[1][:SHOWN])
    if not evidence.agrees:
        counted = msgspec.structs.replace(
            tally, against=tally.against + 1, run=0, places=0, stand_ins=0, content=b"", counter_example=pair
        )
        return _moved(counted, _fallen(tally.state), evidence.at_s)
    place = evidence.place and evidence.content != tally.content
    counted = msgspec.structs.replace(
        tally,
        agreed=tally.agreed + 1,
        hints=tally.hints + evidence.hint,
        run=tally.run + 1,
        places=tally.places + place,
        shapes=tally.shapes + evidence.shape,
        stand_ins=tally.stand_ins + evidence.stand_in,
        content=evidence.content if place else tally.content,
        example=tally.example if tally.example[0] and not evidence.stand_in else pair,
    )
    return _moved(counted, _risen(counted, votes), evidence.at_s)


def undone(tally: AliasTally, at_s: int) -> AliasTally:
    """Taken back by a person."""
    return _moved(tally, AliasState.UNDONE, at_s)


def redone(tally: AliasTally, at_s: int, votes: int) -> AliasTally:
    """Given back to learning, with all that is known."""
    return _moved(tally, _risen(msgspec.structs.replace(tally, state=AliasState.WATCHED), votes), at_s)


def _fallen(state: str) -> str:
    if state == AliasState.IN_FORCE:
        return AliasState.SUSPENDED
    return AliasState.WATCHED if state == AliasState.TRIED else state


def _risen(tally: AliasTally, votes: int) -> str:
    """The state that the evidence is enough for; never a lower one than it has."""
    if tally.state in (AliasState.UNDONE, AliasState.IN_FORCE):
        return tally.state
    wanted = votes << min(tally.against, DOUBLINGS)
    if tally.run < wanted or tally.places < PLACES or tally.doubtful:
        return tally.state
    if tally.kind == AliasKind.HOST:
        return AliasState.IN_FORCE
    if tally.scope == EVERYWHERE and tally.shapes < SHAPES:
        return tally.state
    return AliasState.IN_FORCE if tally.stand_ins >= STAND_INS else AliasState.TRIED


def _moved(tally: AliasTally, state: str, at_s: int) -> AliasTally:
    since = tally.since_s if state == tally.state else at_s
    return msgspec.structs.replace(tally, state=str(state), since_s=since, last_s=at_s)
