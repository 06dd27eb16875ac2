"""A story in, its page out."""

from __future__ import annotations

from unbag.report import _sections
from unbag.report._advice import next_steps, summary
from unbag.report._page import Page
from unbag.report._story import Story


def page_of(story: Story) -> Page:
    """The page on a model: from what came in to what to do next, without the sections that have
    nothing to tell.

    >>> page_of(Story("A page")).sections[0].title
    'In short'
    """
    parts = [
        summary(story), _sections.came(story), _sections.random_bags(story), _sections.compared(story),
        _sections.good(story), _sections.revealed(story), _sections.learning(story), _sections.calibration(story),
        _sections.scores(story), _sections.prior_over_time(story), next_steps(story), _sections.glossary(),
    ]  # fmt: skip
    return Page(story.title, story.line, [part for part in parts if part is not None])
