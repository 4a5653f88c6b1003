"""The crawler in one sentence: fetch, parse, judge, store, settle. Read `sentence` first."""

from .judgement import Judge, Judgement
from .listing import capture_row, robots_row
from .parts import Conduct, CrawledPage, Stages
from .sentence import Pipeline

__all__ = ["Conduct", "CrawledPage", "Judge", "Judgement", "Pipeline", "Stages", "capture_row", "robots_row"]
