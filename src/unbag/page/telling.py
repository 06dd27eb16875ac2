"""A story in, its page out."""

from __future__ import annotations

from unbag.page import sections
from unbag.page.advising import next_steps, summary
from unbag.page.holding import Page
from unbag.page.story import Story


def page_of(story: Story) -> Page:
    """The page on a model: from what came in to what to do next, without the sections that have nothing to tell.

    >>> page_of(Story("A page")).sections[0].title
    'In short'
    """
    parts = [
        summary(story), sections.came(story), sections.random_bags(story), sections.compared(story),
        sections.good(story), sections.revealed(story), sections.learning(story), sections.calibration(story),
        sections.scores(story), sections.prior_over_time(story), next_steps(story), sections.glossary(),
    ]  # fmt: skip
    return Page(story.title, story.line, [part for part in parts if part is not None])
