"""What objects show of themselves in a notebook, from the sections of the page."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from unbag.bags import Bags
from unbag.diagnosis import Diagnosis
from unbag.learners import Fitted
from unbag.metrics import Evaluation
from unbag.report._page import Grid, Section, Text, items, render_sections
from unbag.report._sections import calibration, compared, effects, fact_rows, good, random_bags
from unbag.report._story import Story, facts_of
from unbag.selection import Choice


def html_of(thing: Any) -> str:
    """An object as HTML for notebooks.

    Parameters
    ----------
    thing : Bags, Diagnosis, Evaluation, Choice or Fitted
        What to show.

    >>> "Are the bags random?" in html_of(Diagnosis("They look random.", True, ""))
    True
    """
    return render_sections([section for section in _sections(thing) if section is not None])


@singledispatch
def _sections(thing: Any) -> list[Section | None]:
    return [Section("thing", type(thing).__name__, [Text(repr(thing))])]


@_sections.register
def _(bags: Bags) -> list[Section | None]:
    facts = Grid("What is known of them", ["", ""], fact_rows(facts_of(bags), "bag"))
    return [Section("bags", "Bags", [Text(repr(bags)), facts])]


@_sections.register
def _(diagnosis: Diagnosis) -> list[Section | None]:
    return [random_bags(Story("", diagnosis=diagnosis))]


@_sections.register
def _(evaluation: Evaluation) -> list[Section | None]:
    story = Story("", evaluation=evaluation)
    return [good(story), calibration(story)]


@_sections.register
def _(choice: Choice) -> list[Section | None]:
    why = Section("choice", f"Chosen: {choice.name}", [Text(choice.reason)])
    return [why, compared(Story("", choice=choice))]


@_sections.register
def _(fitted: Fitted) -> list[Section | None]:
    story = Story("", evaluation=fitted.evaluation, effects=fitted.effects)
    verdict = [Text(sentence, strong=i == 0) for i, sentence in enumerate(fitted.verdict)]
    made = Text(f"Made of {fitted.combination} (weights of the learners).")
    notes = [items(*fitted.notes)] if fitted.notes else []
    head = Section("verdict", "A model learned from bags", [*verdict, made, *notes])
    return [head, good(story), effects(story)]
