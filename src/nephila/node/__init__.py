"""Where the parts become a crawl: wiring, conducting, recovering, looking in from outside.

Nothing is imported here: a command that only looks at a crawl starts without the machinery that makes one.
"""
