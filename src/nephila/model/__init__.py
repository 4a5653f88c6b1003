"""The nouns of the crawler, all frozen: a newcomer reads this folder first.

Each file holds one noun and its close relatives. Nothing here does I/O, reads a clock or knows an adapter.
"""
