"""Report pages: one self-contained HTML file each, in light and dark, on screens and on paper.

`page_of` makes the page on a model from a `Story`, `stream_page` that of a stream, and
`experiments_page` that of the lab's experiments; `write_page` writes any of them.
"""

from unbag.report._advice import remedy
from unbag.report._effects import ends_of
from unbag.report._experiments import Claim, experiments_page
from unbag.report._notebook import html_of
from unbag.report._numbers import value_of
from unbag.report._page import Page, Section, Text, render, write_page
from unbag.report._sections import page_of, verdicts
from unbag.report._story import Facts, LearningCurve, Story, curves_of, facts_of, named
from unbag.report._stream import stream_page
from unbag.report._svg import picture_of

__all__ = [
    "Claim",
    "Facts",
    "LearningCurve",
    "Page",
    "Section",
    "Story",
    "Text",
    "curves_of",
    "ends_of",
    "experiments_page",
    "facts_of",
    "html_of",
    "named",
    "page_of",
    "picture_of",
    "remedy",
    "render",
    "stream_page",
    "value_of",
    "verdicts",
    "write_page",
]
