"""A model file and two tables in, how good the model is out, from the bags that it did not learn
from."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from unbag._rules import broken
from unbag.cli._console import plain_errors, print_json, tell
from unbag.cli._options import AsJson, Events, Force, Model, PageFile, Reports, takes_columns
from unbag.cli._outputs import check_page
from unbag.cli._story import evaluation_story, made_by, prior_over_time, write_story
from unbag.metrics import Evaluation
from unbag.metrics._evaluate import evaluate_and_note
from unbag.metrics._leakage import known_bags


@takes_columns(without=["kind", "prior"])
def evaluate(
    model: Model,
    events: Events,
    reports: Reports,
    said: dict[str, Any],
    page: PageFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """How good is a model? From reports of bags alone, each number with an interval. Bags that it
    learned from are left out.

    Example: unbag evaluate model.unbag new-events.parquet new-reports.parquet --on bag --total
    sales --json
    """
    with plain_errors("evaluate"):
        check_page(page, force=force)
        estimator = open_model(model)
        bags = bags_for(estimator, events, reports, said)
        fresh = unseen(bags, estimator.learned_)
        tell_learned(bags, fresh, estimator.learned_)
        found = evaluate_and_note(estimator, fresh)
        print_evaluation(found, as_json=as_json)
        if page is not None:
            line, over_time = (
                made_by("evaluate", model, events, reports),
                prior_over_time(events, said.get("time"), fresh),
            )
            write_story(
                evaluation_story(line, fresh, estimator, found, over_time), page, force=force
            )


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


def bags_for(model: Any, events: Any, reports: Any, said: dict[str, Any]) -> Any:
    """Bags with the features that the model knows, and with reports of its kind."""
    from unbag.tables import join

    classes = model.classes_.tolist() if model.kind_ == "histogram" else None
    if said.get("counts") != classes:
        raise broken(
            "Class counts must be those that the model learned from",
            f"{said.get('counts')} came for {classes}",
            "Name the same columns in the same order.",
        )
    return join(events, reports, plan=model.plan_, **said, kind=model.kind_)


def unseen(bags: Any, *learned: np.ndarray | None) -> Any:
    """The bags without those that were learned from, by one model or several."""
    new = ~np.any([known_bags(bags, each).bag for each in learned], axis=0)
    if not (new & bags.observed).any():
        raise broken(
            "An evaluation must have bags that the model did not learn from",
            f"it learned from all {len(bags)}",
            "Give other tables, or train with --test.",
        )
    return bags if new.all() else bags.take(np.flatnonzero(new))


def tell_learned(bags: Any, fresh: Any, learned: np.ndarray | None) -> None:
    """Say how many bags were left out, and how many of these would pass for new ones by their
    report."""
    if len(fresh) < len(bags):
        restated = int(known_bags(bags, learned).restated.sum())
        more = (
            f" {restated:,} of them came with another report or size than it learned from."
            if restated
            else ""
        )
        tell(f"{len(bags) - len(fresh):,} bags that the model learned from were left out.{more}")


def print_evaluation(found: Evaluation, *, as_json: bool) -> None:
    """An evaluation on stdout."""
    if as_json:
        print_json({field.name: getattr(found, field.name) for field in fields(found)})
    else:
        print(found)
