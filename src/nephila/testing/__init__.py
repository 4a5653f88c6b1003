"""Shipped with the package: a world in which a crawler can be proven.

A simulated web that knows the truth about itself (`web`), virtual time (`clock`, `loop`) and contract suites for every
interface (`contracts`). Plugins and adapters written elsewhere are tested with the same means as our own.
"""
