"""The embedded frontier counted anew, for tests and simulations: counters and indexes against the tables themselves."""

from .whole import check_tables

__all__ = ["check_tables"]
