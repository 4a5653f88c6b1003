"""Whole crawls under virtual time with faults of every kind, each drawn from one number, and what must hold after them.

A *scenario* (`scenario`) is a small web, settings and a plan of faults, all drawn from a seed. A *world* (`world`)
lives through it: crawls begin, are killed, lose power, run out of disk, and go on, over a network (`weather`),
robots.txt files (`rulebook`), a disk (`trouble`) and processes (`owners`, `staff`) that fail as planned. At last the
sky clears, one crawl runs to its end, and `findings` holds what is left against what the servers saw and what the web
knows to be true.

What must stay true: the same seed does the same thing at the same time, in any process on any machine. So nothing here
may ask a real clock, a set for its order, or a source of chance that was not made from the seed.
"""

from .runner import Verdict, run_seed
from .scenario import Scenario, draw_scenario

__all__ = ["Scenario", "Verdict", "draw_scenario", "run_seed"]
