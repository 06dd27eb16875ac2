"""What was found in, one self-contained HTML page out: readable without the paper, in light and
dark, on paper too.

`story` holds what a page on a model may tell, `sections` and `advising` turn it into words and
pictures, `drawing` draws, `rendering` writes. Streams and the paper's experiments have pages of
their own.
"""

from unbag.report._html import render, write_page
from unbag.report._model_page import page_of
from unbag.report._page import Page, Section, Text
from unbag.report._story import Curve, Facts, Story, curves_of, facts_of

__all__ = [
    "Curve",
    "Facts",
    "Page",
    "Section",
    "Story",
    "Text",
    "curves_of",
    "facts_of",
    "page_of",
    "render",
    "write_page",
]
