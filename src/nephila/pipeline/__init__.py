"""The crawler in one sentence: fetch, parse, judge, store, settle. Read `sentence` first."""

from .judgement import Judge, Judgement
from .listing import capture_row, robots_row
from .sentence import Conduct, CrawledPage, Pipeline, Stages

__all__ = ["Conduct", "CrawledPage", "Judge", "Judgement", "Pipeline", "Stages", "capture_row", "robots_row"]
