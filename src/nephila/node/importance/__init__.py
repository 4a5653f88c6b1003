"""The ranks of a crawl (R3): the archive is read for links, ranks are computed, shown, and used.

`reading` makes rows of captures, `renewing` brings a crawl's graph and ranks up to date, `premises` finds what it needs
in a crawl directory (`node.fleet.ranking` in a fleet), `grades` is what the frontier asks, `beside` has it done again
and again while a crawl runs, in a process of its own (`birth`). What a graph and a rank are is `nephila.ranking`.
"""
