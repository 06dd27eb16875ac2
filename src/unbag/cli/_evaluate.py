"""`unbag evaluate`: how good a model is, from the bags that it did not learn from."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import typer

from unbag._rules import broken
from unbag.cli._console import print_json, tell
from unbag.cli._options import AsJson, Events, Force, Model, PageFile, Reports, table_verb
from unbag.cli._outputs import check_page
from unbag.cli._story import evaluation_story, judged_by, write_story
from unbag.metrics import Evaluation, known_bags
from unbag.tables import Columns, JoinedBags, join

COMMAND = table_verb(without=("kind", "score"))  # the model file says them


def evaluate(
    ctx: typer.Context,
    model: Model,
    events: Events,
    reports: Reports,
    page: PageFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """How good is a model? From reports of bags alone, each number with an interval. Bags that it
    learned from are left out.

    Example: unbag evaluate model.unbag new-events.parquet new-reports.parquet --on bag --total
    sales --json
    """
    check_page(page, force=force)
    estimator = open_model(model)
    bags = bags_for(estimator, events, reports, ctx.obj)
    fresh = unseen(bags, estimator.learned_)
    tell_learned(bags, fresh, estimator.learned_)
    judged = judged_by(estimator, fresh)
    print_evaluation(judged.evaluation, as_json=as_json)
    if page is not None:
        files = (model, events, reports)
        write_story(evaluation_story(files, ctx.obj.time, judged), page, force=force)


def open_model(path: Path) -> Any:
    """A model that knows how its features are made."""
    from unbag.estimators import load

    model = load(path)
    if model.plan_ is None:
        raise broken(
            "A model for tables must have a plan of its features",
            f"{path.name} has none",
            "Make it with unbag train, or with fit(..., plan=bags.plan).",
        )
    return model


def bags_for(model: Any, events: Any, reports: Any, columns: Columns) -> JoinedBags:
    """Bags with the features that the model knows, and with reports of its kind."""
    counts, classes = columns.counts, None
    if counts is not None:
        counts = list(counts)
    if model.kind_ == "histogram":
        classes = model.classes_.tolist()
    if counts != classes:
        raise broken(
            "Class counts must be those that the model learned from",
            f"{counts} came for {classes}",
            "Name the same columns in the same order.",
        )
    old = getattr(model.old_score_, "column", None)
    return join(events, reports, columns, plan=model.plan_, kind=model.kind_, score=old)


def unseen(bags: Any, *learned: np.ndarray | None) -> Any:
    """The bags without those that were learned from, by one model or several."""
    new = ~np.any([known_bags(bags, each).bag for each in learned], axis=0)
    if not (new & bags.observed).any():
        raise broken(
            "An evaluation must have bags that the model did not learn from",
            f"it learned from all {len(bags)}",
            "Give other tables, or train with --test.",
        )
    if new.all():
        return bags
    return bags.take(np.flatnonzero(new))


def tell_learned(bags: Any, fresh: Any, learned: np.ndarray | None) -> None:
    """Say how many bags were left out, and how many of these would pass for new ones by their
    report."""
    left_out, more = len(bags) - len(fresh), ""
    if not left_out:
        return
    restated = int(known_bags(bags, learned).restated.sum())
    if restated:
        more = f" {restated:,} of them came with another report or size than it learned from."
    tell(f"{left_out:,} bags that the model learned from were left out.{more}")


def print_evaluation(evaluation: Evaluation, *, as_json: bool) -> None:
    """An evaluation on stdout."""
    if as_json:
        print_json({field.name: getattr(evaluation, field.name) for field in fields(evaluation)})
    else:
        print(evaluation)
