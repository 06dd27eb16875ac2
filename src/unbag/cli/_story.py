"""What a verb found in, its report page out."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from unbag.cli._check import diagnose_by_name, told_of
from unbag.cli._console import tell
from unbag.diagnosis import Diagnosis, Drift, drift
from unbag.metrics import Evaluation
from unbag.report import Story, curves_of, facts_of, page_of, write_page
from unbag.selection import Choice

WINDOWS = 12


def write_story(story: Story, path: Path | None, *, force: bool) -> None:
    """Write the page where one was asked for, and say so."""
    if path is not None:
        tell(f"report page: {write_page(page_of(story), path, force=force)}")


def training_story(
    line: str,
    bags: Any,
    model: Any,
    judge: Any,
    found: Evaluation | None,
    diagnosis: Diagnosis,
    over_time: Drift | None,
) -> Story:
    """From two tables to a model: all bags, the model, and the bags that judged it."""
    return Story(
        "A model learned from totals",
        line,
        tables=told_of(bags),
        facts=facts_of(bags),
        diagnosis=diagnosis,
        drift=over_time,
        choice=model.choice_,
        curves=curves_of(model.runs_, [model.run_]),
        evaluation=_of_reported(found, judge),
        predictions=None if judge is None else predicted(model, judge.X),
        trained=True,
        learned=len(model.learned_),
    )


def evaluation_story(
    line: str, bags: Any, model: Any, found: Evaluation, over_time: Drift | None
) -> Story:
    """A model judged by bags that it did not learn from."""
    return Story(
        "How good is this model?",
        line,
        tables=_told(bags),
        facts=facts_of(bags),
        diagnosis=diagnose_by_name(bags),
        drift=over_time,
        evaluation=_of_reported(found, bags),
        predictions=predicted(model, bags.X),
    )


def _of_reported(found: Evaluation | None, bags: Any) -> Any:
    """An evaluation that counts the events of bags with a report; the others only serve the means,
    told elsewhere."""
    return None if found is None else replace(found, instances=len(bags.reported().bag))


def selection_story(line: str, bags: Any, choice: Choice, over_time: Drift | None) -> Story:
    """Models compared by bags that none of them learned from."""
    known = {"tables": _told(bags), "facts": facts_of(bags), "diagnosis": diagnose_by_name(bags)}
    return Story("Which model?", line, choice=choice, drift=over_time, **known)


def _told(bags: Any) -> Any:
    """What the tables held, and how many bags were learned from and thus left out."""
    learned = bags.told.bags - len(bags)
    more = (
        f"{learned:,} bags were left out because a model had learned from them." if learned else ""
    )
    return bags.told._replace(left_out=(*bags.told.left_out, *([more] if more else [])))


def made_by(verb: str, *paths: Path) -> str:
    """The line below a title: the command, its files, and today's date."""
    return (
        f"unbag {verb} of {' and '.join(path.name for path in paths)}, {date.today().isoformat()}"
    )


def predicted(model: Any, X: np.ndarray) -> np.ndarray | None:
    """Probabilities or counts; None for several classes."""
    if model.kind_ == "histogram":
        return None
    return model.predict(X) if model.kind_ == "total" else model.predict_proba(X)[:, 1]


def prior_over_time(events: Any, column: str | None, bags: Any) -> Drift | None:
    """The prior in windows of time, where the events have a time and there are enough reports for
    windows."""
    if column is None:
        return None
    from unbag.tables import open_table
    from unbag.tables._values import as_moments, is_number

    table = open_table(events)
    time = as_moments(table.read([column])[column], name=column)[bags.rows]
    windows = min(WINDOWS, int(bags.observed.sum()) // 4)
    if windows < 2 or np.isnan(time).any():
        return None
    number = is_number(table.schema.field(column).type)
    try:
        return drift(bags, time if number else time.astype("datetime64[us]"), windows=windows)
    except ValueError:  # nearly all reports of one moment: there are no windows
        return None
