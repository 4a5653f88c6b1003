"""What is taken for the same: pages that say the same, and URLs that lead to the same page."""

from __future__ import annotations

from dataclasses import dataclass

from .declaration import setting


@dataclass(frozen=True, slots=True)
class DedupSettings:
    """Pages that say nearly what another one said before (D3)."""

    near: bool = setting(True, "look for near-duplicates, and mark them with their original", flag="near-duplicates")
    near_distance: int = setting(6, "bits of the 64-bit hash of the main text that may differ", low=0, high=7)
    near_resemblance: float = setting(
        0.6, "share of the text that must be the same, by the sketches; 0 decides by the hash alone", low=0, high=1
    )
    near_plain: bool = setting(False, "decide by the hash alone, at distance 3, whatever the two settings above say")
    near_min_words: int = setting(50, "pages with fewer words of main text are not compared", low=1)
    near_follow: bool = setting(True, "follow the links of near-duplicates")
    near_store: bool = setting(True, "store the bodies of near-duplicates; off stores their headers and links")


@dataclass(frozen=True, slots=True)
class AliasSettings:
    """What is learned of sites while crawling: aliases (D4, T3) and pages that stand for missing ones (T4)."""

    learn: bool = setting(
        True, "learn which parameters mean nothing and which hosts always redirect, and act on it", flag="aliases"
    )
    votes: int = setting(5, "comparisons in a row that must agree before a rule is believed", low=2, high=1000)
    verify_every: int = setting(
        50, "of the URLs that a rule catches, the first of so many is let through to test the rule; 0 for none", low=0
    )
    soft_404: bool = setting(
        True,
        "ask a suspicious host once for a page that cannot exist, and count pages like its answer as missing",
        flag="soft-404",
    )
