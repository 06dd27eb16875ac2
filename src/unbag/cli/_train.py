"""Two tables in, a model file and its evaluation from bags that it has not seen out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from unbag._rules import broken
from unbag.cli._check import diagnose_by_name, told_of
from unbag.cli._console import busy, plain_errors, tell
from unbag.cli._evaluate import print_evaluation
from unbag.cli._options import (
    AsJson,
    Events,
    Features,
    Force,
    PageFile,
    Plan,
    Reports,
    takes_columns,
)
from unbag.cli._outputs import check_output, check_page
from unbag.cli._story import made_by, prior_over_time, training_story, write_story
from unbag.diagnosis import Diagnosis
from unbag.methods import FROM_BAGS
from unbag.metrics._evaluate import evaluate_and_note
from unbag.metrics._leakage import marks
from unbag.report import remedy


@takes_columns()
def train(
    events: Events,
    reports: Reports,
    out: Annotated[Path, typer.Option(help="the model, e.g. model.unbag")],
    said: dict[str, Any],
    features: Features = None,
    plan: Plan = None,
    method: Annotated[
        str, typer.Option(help=f"{', '.join(FROM_BAGS)}; auto tries several and bags choose")
    ] = "anchored",
    loss: Annotated[str | None, typer.Option(help="by default the method's usual one")] = None,
    hidden: Annotated[
        list[int] | None, typer.Option(help="width of a hidden layer; may be repeated; 32")
    ] = None,
    linear: Annotated[bool, typer.Option("--linear", help="no hidden layer")] = False,
    epochs: Annotated[int, typer.Option(help="at most so many")] = 60,
    seed: Annotated[int, typer.Option()] = 0,
    held_out: Annotated[
        float, typer.Option(help="share of the training bags that chooses rate and epoch")
    ] = 0.2,
    test: Annotated[
        float, typer.Option(help="share of all bags that only evaluates in the end; 0 for none")
    ] = 0.2,
    page: PageFile = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Learn a model of single events from the totals of bags, and tell how good it is from bags it
    has not seen.

    The model file holds the plan of the features too. Text of many values is hashed and gets
    embeddings.

    Example: unbag train events.parquet reports.parquet --on bag --total sales --id event --out
    model.unbag
    """
    settings = {
        "method": method,
        "loss": loss,
        "hidden": () if linear else tuple(hidden or (32,)),
        "epochs": epochs,
    }
    with plain_errors("train"):
        check_output(out, force=force, table=False)
        check_page(page, force=force)
        bags = joined(events, reports, said, plan, features)
        tell(told_of(bags))
        diagnosis = diagnose_by_name(bags)
        tell(_warning(diagnosis, strata="stratum" in said))
        learn, judge = parted(bags, test, seed)
        with busy(f"learning from {len(learn.reported()):,} bags"):
            model = learned(
                learn, settings | {"held_out": held_out, "random_state": seed}, said.get("counts")
            )
        model.save(out)  # before the evaluation, which may fail
        if method == "auto" and model.choice_ is not None:
            tell(f"chosen: {model.choice_.name}. {model.choice_.reason}")
        tell(f"learned from {len(learn.reported()):,} bags: {out}")
        found = None if judge is None else evaluate_and_note(model, judge)
        if found is not None:
            print_evaluation(found, as_json=as_json)
        if page is not None:
            line, over_time = (
                made_by("train", events, reports),
                prior_over_time(events, said.get("time"), bags),
            )
            write_story(
                training_story(line, bags, model, judge, found, diagnosis, over_time),
                page,
                force=force,
            )


def joined(events: Any, reports: Any, said: dict[str, Any], plan: Any, features: Any = None) -> Any:
    """Bags with features."""
    from unbag.tables import join

    bags = join(events, reports, plan=plan, features=features or None, **said)
    if bags.plan is None:
        raise broken(
            "A model must have features",
            "the events have no column beside those you named",
            "Add some.",
        )
    return bags


def parted(bags: Any, test: float, seed: int) -> tuple[Any, Any]:
    """The bags to learn from, and those that only evaluate in the end, or None."""
    return (bags, None) if test == 0 else bags.split(1 - test, seed=seed)


def _warning(found: Diagnosis, *, strata: bool) -> str:
    if found.random:
        return found.verdict
    return f"warning: {found.verdict} {remedy(found, strata=strata)} unbag check tells more."


def learned(bags: Any, settings: dict[str, Any], classes: Any = None) -> Any:
    """An estimator that learned from these bags, with the plan of its features and the marks of the
    bags."""
    from unbag.estimators import BagClassifier, BagRegressor

    bags = bags.reported()
    by_row = lambda values: None if values is None else values[bags.bag]
    model = (BagRegressor if bags.kind == "total" else BagClassifier)(**settings, diagnose=False)
    further = {
        "stratum": by_row(bags.stratum),
        "noise": by_row(bags.noise),
        "prior": bags.known_prior,
        "plan": bags.plan,
    }
    model.fit(bags.X, bags.report[bags.bag], bag=bags.names[bags.bag], **further)
    model.learned_ = marks(bags)  # also of bags of one, which fit takes for labels
    if bags.kind == "histogram":
        model.classes_ = np.array(classes)
    return model
