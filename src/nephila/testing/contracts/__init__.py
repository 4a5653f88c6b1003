"""One suite per interface: what every adapter must keep, ours or a plugin's.

A suite is a tuple of checks named `CHECKS`. Each check takes a factory that opens the adapter, again and again on the
same storage, and asserts; any test runner can call them.
"""
