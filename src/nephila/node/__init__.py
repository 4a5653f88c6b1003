"""Where the parts become a crawl: wiring, conducting, recovering, looking in from outside."""

from .crawl import Crawl
from .run import run_crawl

__all__ = ["Crawl", "run_crawl"]
