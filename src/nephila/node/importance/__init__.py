"""The ranks of a crawl directory (R3): the archive is read for links, ranks are computed, shown, and used.

`reading` makes rows of captures, `renewing` brings a crawl's graph and ranks up to date, `grades` is what the frontier
asks, `beside` has it done again and again while a crawl runs, in a process of its own (`birth`). What a graph and a
rank are is `nephila.ranking`.
"""
