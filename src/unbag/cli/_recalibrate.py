"""`unbag recalibrate`: level and slope of a model corrected by reports of bags that it has not
seen."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from unbag._rules import broken
from unbag.cli._console import activity, print_json, tell
from unbag.cli._evaluate import fresh_bags, open_model
from unbag.cli._options import AsJson, check_output, table_verb

COMMAND = table_verb(without=("kind", "score", "exposure"))  # the model file says them


def recalibrate(
    ctx: typer.Context,
    model: Path,
    events: Path,
    reports: Path,
    out: Annotated[Path, typer.Option()],
    fit: str = "both",
    as_json: AsJson = False,
    force: bool = False,
) -> None:
    """Correct the level and slope of a model from reports of newer bags, and save it as another.

    Bags that the model learned from are left out. The corrected model remembers the bags of both,
    so that no evaluation uses them.

    Example: unbag recalibrate model.unbag new-events.parquet new-reports.parquet --on bag --total
    sales --out better.unbag

    Parameters
    ----------
    out
        the corrected model, e.g. better.unbag
    fit
        both (level and slope), or intercept where only the level moved
    """
    from unbag.diagnosis import diagnose
    from unbag.learners import within_constants
    from unbag.recalibration import recalibrate as estimate

    check_output(out, force=force, table=False)
    if model.is_dir():
        raise broken(
            "A model to recalibrate must be a file",
            f"{model} is a folder, as that of a stream",
            "A stream corrects itself: let it learn from these files.",
        )
    estimator = open_model(model)
    check_repair(estimator, fit)
    with activity("reading"):
        fresh = fresh_bags(estimator, events, reports, ctx.obj)
        within, notes = within_constants(fresh.as_read())  # as they judged at training
        fresh = replace(fresh, stratum=within.stratum)
        diagnosis = diagnose(fresh)
    for note in notes:
        tell(f"note: {note}")
    if not diagnosis.random:
        tell(f"warning: {diagnosis.verdict} The correction may be biased.")
    repair = estimate(estimator, fresh, fit=fit)  # pyright: ignore[reportArgumentType]
    recalibrated(estimator, repair).save(out, force=force)
    if as_json:
        parts = {"slope": repair.slope, "intercept": repair.intercept, "bags": repair.bags}
        print_json(parts | {"p_value": repair.p_value})
    else:
        print(repair)
    tell(f"{_in_words(repair)}\ncorrected model: {out}")


def _in_words(repair: Any) -> str:
    if repair.p_value < 0.05:
        return f"The old level and slope were off (p = {repair.p_value:.2g})."
    return (
        f"The old level and slope may have been right (p = {repair.p_value:.2g}): the correction "
        "is within what chance does. Keep the old model, or give more bags."
    )


def recalibrated(model: Any, repair: Any) -> Any:
    """The estimator with corrected scores; it remembers the bags of the correction too.

    a (level + sum of w (s - c)) + b is the same combination with a w, and a level of a level + b.
    """
    from unbag.metrics import join_marks

    def moved(one: Any) -> Any:
        weights = repair.slope.value * one.weights
        return replace(one, weights=weights, level=repair.apply(one.level))

    better, fitted = copy(model), model.fitted_
    better.learned_ = join_marks(model.learned_, repair.learned_)
    if fitted is None:
        better.model_ = moved(model.model_)
    else:
        combination = moved(fitted.combination)
        better.fitted_ = replace(fitted, combination=combination, learned_=None)
    return better


def check_repair(estimator: Any, fit: str) -> None:
    """Refuse a slope for a model that only corrects an old score."""
    if estimator.old_score_ is not None and fit == "both":
        raise broken(
            "A model that corrects an old score must be recalibrated by its level alone",
            "both were asked for",
            "Say {fit:intercept}.",
        )
