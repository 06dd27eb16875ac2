"""`unbag train`: a model file from two tables, and its evaluation from other bags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unbag._rules import broken
from unbag.cli._check import diagnose_by_name, summary_of
from unbag.cli._console import busy, tell
from unbag.cli._evaluate import print_evaluation
from unbag.cli._options import AsJson, Events, Features, Force, PageFile, Plan, Reports, table_verb
from unbag.cli._outputs import check_output, check_page
from unbag.cli._story import judged_by, training_story, write_story
from unbag.diagnosis import Diagnosis
from unbag.methods import FROM_BAGS
from unbag.report import remedy
from unbag.tables import Columns, JoinedBags, join

COMMAND = table_verb()
METHODS = f"{', '.join(FROM_BAGS)}; auto tries several and bags choose"


def train(
    ctx: typer.Context,
    events: Events,
    reports: Reports,
    out: Annotated[Path, typer.Option(help="the model, e.g. model.unbag")],
    features: Features = None,
    plan: Plan = None,
    prior: Annotated[
        float | None, typer.Option(help="the mean label, where it is known; else the mean report")
    ] = None,
    method: Annotated[str, typer.Option(help=METHODS)] = "anchored",
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
    check_output(out, force=force, table=False)
    check_page(page, force=force)
    widths = tuple(hidden or (32,))
    if linear:
        widths = ()
    bags = joined(events, reports, ctx.obj, plan=plan, features=features or None, prior=prior)
    tell(summary_of(bags))
    diagnosis = diagnose_by_name(bags)
    tell(_verdict(diagnosis, strata=ctx.obj.stratum is not None))
    learn, judge = parted(bags, test, seed)
    settings = {"method": method, "loss": loss, "hidden": widths, "epochs": epochs}
    settings |= {"held_out": held_out, "random_state": seed}
    with busy(f"learning from {len(learn.reported()):,} bags"):
        model = learned(learn, settings, ctx.obj.counts)
    model.save(out)  # before the evaluation, which may fail
    if method == "auto" and model.choice_ is not None:
        tell(f"chosen: {model.choice_.name}. {model.choice_.reason}")
    tell(f"learned from {len(learn.reported()):,} bags: {out}")
    judged = None
    if judge is not None:
        judged = judged_by(model, judge)
        print_evaluation(judged.evaluation, as_json=as_json)
    if page is not None:
        files = (events, reports)
        story = training_story(files, ctx.obj.time, bags, model, judged, diagnosis)
        write_story(story, page, force=force)


def joined(events: Any, reports: Any, columns: Columns, **how: Any) -> JoinedBags:
    """Bags with features."""
    bags = join(events, reports, columns, **how)
    if bags.plan is None:
        raise broken(
            "A model must have features",
            "the events have no column beside those you named",
            "Add some.",
        )
    return bags


def parted(bags: Any, test: float, seed: int) -> tuple[Any, Any]:
    """The bags to learn from, and those that only evaluate in the end, or None."""
    if test == 0:
        return bags, None
    return bags.split(1 - test, seed=seed)


def _verdict(diagnosis: Diagnosis, *, strata: bool) -> str:
    if diagnosis.random:
        return diagnosis.verdict
    advice = remedy(diagnosis, strata=strata)
    return f"warning: {diagnosis.verdict} {advice} unbag check tells more."


def learned(bags: Any, settings: dict[str, Any], classes: Any = None) -> Any:
    """An estimator that learned from these bags, with the plan of its features."""
    from unbag.estimators import BagClassifier, BagRegressor

    if bags.kind == "total":
        return BagRegressor(**settings, diagnose=False).fit_bags(bags)
    return BagClassifier(**settings, diagnose=False).fit_bags(bags, classes=classes)
