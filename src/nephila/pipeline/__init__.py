"""The crawler in one sentence: fetch, parse, judge, store, settle. Read `sentence` first."""

from .capturing import NOTE_LANGUAGE, NOTE_LISTING, NOTE_TITLE, requisites_in, sizes_in
from .extending import extracts_in, links_in
from .holding import Holding
from .judgement import Judge, Judgement
from .learning import Learning
from .listed import ListClause
from .listing import Beside, capture_row, part_row, robots_row
from .lists import Formats, Lists
from .near import NOTE_SIMHASH, NearPages, original_of
from .notfound import MissingPages
from .parts import Conduct, CrawledPage, Stages
from .rendering import NOTE_PUT_OFF, NOTE_RENDERED, WAIT_MS, RenderClause, rendered_view
from .resources import ResourceNotes
from .resting import ANOTHERS_CLOCK_MS
from .sentence import Pipeline

__all__ = [
    "ANOTHERS_CLOCK_MS",
    "NOTE_LANGUAGE",
    "NOTE_LISTING",
    "NOTE_PUT_OFF",
    "NOTE_RENDERED",
    "NOTE_SIMHASH",
    "NOTE_TITLE",
    "WAIT_MS",
    "Beside",
    "Conduct",
    "CrawledPage",
    "Formats",
    "Holding",
    "Judge",
    "Judgement",
    "Learning",
    "ListClause",
    "Lists",
    "MissingPages",
    "NearPages",
    "Pipeline",
    "RenderClause",
    "ResourceNotes",
    "Stages",
    "capture_row",
    "extracts_in",
    "links_in",
    "original_of",
    "part_row",
    "rendered_view",
    "requisites_in",
    "robots_row",
    "sizes_in",
]
