"""The report page of a verb: what the tables held, the model, and the bags that judged it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from unbag.cli._check import readings
from unbag.cli._console import tell
from unbag.cli._evaluate import JudgedModel
from unbag.diagnosis import Diagnosis, Drift, diagnose, drift
from unbag.learners import Verdict
from unbag.report import Story, curves_of, facts_of, page_of, write_page
from unbag.selection import Choice
from unbag.tables import Columns, as_moments, is_number, open_table

WINDOWS = 12
MOST_WITHIN = 0.1  # of the variance of time, within bags


def write_story(story: Story, path: Path, *, force: bool) -> None:
    """Write the page, and say so."""
    tell(f"report page: {write_page(page_of(story), path, force=force)}")


def trained_story(files: Sequence[Path], model: Any, **known: Any) -> Story:
    """What every page on a new model has; `known` are further fields of the story."""
    usual = {"title": "A model learned from totals", "evaluation": model.evaluation_}
    usual |= {"effects": getattr(model.fitted_, "effects", ())}
    return Story(**usual | {"line": made_by("train", *files), "trained": True} | known)


def training_story(
    files: Sequence[Path],
    columns: Columns,
    bags: Any,
    model: Any,
    judged: JudgedModel | None,
    diagnosis: Diagnosis,
    verdict: Verdict | None,
) -> Story:
    """From two tables to a model: all bags, the model, and the bags that judged it."""
    story = trained_story(
        files,
        model,
        verdict=verdict,
        readings=readings(bags, columns),
        tables=bags.summary,
        facts=facts_of(bags),
        diagnosis=diagnosis,
        drift=prior_over_time(files[0], columns.time, bags),
        choice=model.choice_,
        curves=curves_of(model.runs_, [model.run_]),
        learned=len(model.learned_),
    )
    if judged is not None:
        return replace(story, evaluation=judged.evaluation, predictions=judged.predictions)
    if model.fitted_ is None or bags.kind == "histogram":
        return story
    known = bags.reported()
    predictions = model.fitted_.predict(known.rows_for(model), offset=known.offset)
    return replace(story, predictions=predictions)


def evaluation_story(files: Sequence[Path], columns: Columns, judged: JudgedModel) -> Story:
    """A model judged by bags that it did not learn from; the files are model, events, reports."""
    return _of_bags(
        Story(
            "How good is this model?",
            made_by("evaluate", *files),
            verdict=judged.verdict,
            evaluation=judged.evaluation,
            predictions=judged.predictions,
        ),
        judged.scored.bags,
        files[1],
        columns.time,
    )


def selection_story(
    models: Sequence[Path], events: Path, time: str | None, bags: Any, choice: Choice
) -> Story:
    """Models compared by bags that none of them learned from."""
    story = Story("Which model?", made_by("select", *models), choice=choice)
    return _of_bags(story, bags, events, time)


def _of_bags(story: Story, bags: Any, events: Path, time: str | None) -> Story:
    """A story with the bags that judged, and how many were left out because of what was learned
    from them."""
    learned, left_out = bags.summary.bags - len(bags), bags.summary.left_out
    if learned:
        more = f"{learned:,} bags were left out because a model had learned from them."
        left_out = (*left_out, more)
    return replace(
        story,
        tables=bags.summary._replace(left_out=left_out),
        facts=facts_of(bags),
        diagnosis=diagnose(bags),
        drift=prior_over_time(events, time, bags),
    )


def made_by(verb: str, *paths: Path) -> str:
    """The line below a title: the command, its files, and today's date."""
    names = " and ".join(path.name for path in paths)
    return f"unbag {verb} of {names}, {date.today().isoformat()}"


def prior_over_time(events: Any, column: str | None, bags: Any) -> Drift | None:
    """The prior in windows of time, where the events have a time and there are enough reports for
    windows."""
    if column is None:
        return None
    table = open_table(events)
    time = as_moments(table.read([column])[column], name=column)[bags.rows]
    windows = min(WINDOWS, int(bags.observed.sum()) // 4)
    if windows < 2 or np.isnan(time).any():
        return None
    # the report of a bag with events of many times is of none of them
    mean = np.bincount(bags.bag, weights=time, minlength=len(bags)) / bags.size
    if np.mean((time - mean[bags.bag]) ** 2) > MOST_WITHIN * time.var():
        return None
    if not is_number(table.schema.field(column).type):
        time = time.astype("datetime64[us]")
    try:
        return drift(bags, time, windows=windows)
    except ValueError:  # nearly all reports of one moment: there are no windows
        return None
