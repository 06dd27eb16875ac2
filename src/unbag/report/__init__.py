"""Report pages: one self-contained HTML file each, in light and dark, on screens and on paper.

`page_of` makes the page on a model from a `Story`, `stream_page` that of a stream; `write_page`
writes either.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.report._notebook import html_of as html_of
    from unbag.report._page import Page as Page
    from unbag.report._page import Section as Section
    from unbag.report._page import Text as Text
    from unbag.report._page import render as render
    from unbag.report._page import value_of as value_of
    from unbag.report._page import write_page as write_page
    from unbag.report._sections import ends_of as ends_of
    from unbag.report._sections import held_intervals as held_intervals
    from unbag.report._sections import page_of as page_of
    from unbag.report._story import Facts as Facts
    from unbag.report._story import LearningCurve as LearningCurve
    from unbag.report._story import Story as Story
    from unbag.report._story import curves_of as curves_of
    from unbag.report._story import facts_of as facts_of
    from unbag.report._story import named as named
    from unbag.report._stream import stream_page as stream_page
    from unbag.report._svg import lean as lean
    from unbag.report._svg import picture_of as picture_of
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
