"""What was found in, one self-contained HTML page out: readable without the paper, in light and dark, on paper too.

`story` holds what a page on a model may tell, `sections` and `advising` turn it into words and pictures, `drawing`
draws, `rendering` writes. Streams and the paper's experiments have pages of their own.
"""

from unbag.page.holding import Page, Section, Text
from unbag.page.rendering import render, write_page
from unbag.page.story import Curve, Facts, Story, curves_of, facts_of
from unbag.page.telling import page_of

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
