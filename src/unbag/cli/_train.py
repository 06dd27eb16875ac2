"""`unbag train`: a model file from two tables, and its evaluation from other bags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag._rules import broken
from unbag.cli._check import diagnose_by_name, summary_of
from unbag.cli._console import busy, tell, tell_warnings
from unbag.cli._evaluate import print_evaluation
from unbag.cli._options import (
    AsJson,
    Below,
    Events,
    Features,
    Force,
    Marginal,
    PageFile,
    Plan,
    Reports,
    table_verb,
)
from unbag.cli._outputs import check_output, check_page
from unbag.cli._story import judged_by, training_story, write_story
from unbag.diagnosis import Diagnosis
from unbag.methods import FROM_BAGS
from unbag.report import remedy
from unbag.tables import Columns, JoinedBags, OldScore, join

if TYPE_CHECKING:
    from unbag.learners import Fitted

COMMAND = table_verb()
NETWORK = "One network, trained by itself"
GOES_ON = (
    "Learning goes on: bags are compared within the columns that no bag mixes; where that does not "
    "make them random, learners that need random bags are left out, and the likelihood of held-out "
    "reports judges in place of a loss."
)
METHODS = f"{', '.join(FROM_BAGS)}; auto tries several and bags choose"
LEARNERS = "auto (additive and trees; networks for images), additive, trees, network; repeat"
TRAINING = ("method", "loss", "epochs", "held_out", "hidden")
TEST = 0.2
"""The share of the bags that judges one network that was trained by itself."""


def train(
    ctx: typer.Context,
    events: Events,
    reports: Reports,
    out: Annotated[Path, typer.Option(help="the model, e.g. model.unbag")],
    marginal: Marginal = None,
    below: Below = None,
    features: Features = None,
    plan: Plan = None,
    prior: Annotated[
        float | None, typer.Option(help="the mean label, where it is known; else the mean report")
    ] = None,
    learner: Annotated[list[str] | None, typer.Option(help=LEARNERS)] = None,
    folds: Annotated[int, typer.Option(help="of bags, in which learners are cross-fitted")] = 5,
    time_limit: Annotated[
        float | None, typer.Option(help="seconds after which no further learner begins")
    ] = None,
    test: Annotated[
        float | None,
        typer.Option(help="share of the bags that is kept untouched and evaluates in the end"),
    ] = None,
    seed: Annotated[int, typer.Option()] = 0,
    method: Annotated[str | None, typer.Option(help=METHODS, rich_help_panel=NETWORK)] = None,
    loss: Annotated[
        str | None, typer.Option(help="by default the method's usual one", rich_help_panel=NETWORK)
    ] = None,
    hidden: Annotated[
        list[int] | None,
        typer.Option(help="width of a hidden layer; may be repeated; 32", rich_help_panel=NETWORK),
    ] = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="no hidden layer", rich_help_panel=NETWORK)
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(help="at most so many; 60", rich_help_panel=NETWORK)
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            help="share of the training bags that chooses rate and epoch; 0.2",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    page: PageFile = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Learn a model of single events from the totals of bags, and say how good it is.

    By default every bag teaches and every bag judges: learners are cross-fitted in folds of bags,
    combined, and evaluated by models that never saw the bag. With --method, --hidden, --linear,
    --epochs, --loss or --held-out one network is trained instead, and judged by a fifth of the
    bags. The model file holds all that prediction needs.

    With --marginal the totals are those of tables that count the same events by their columns, as
    sales by campaign and day; the additive model learns from all of them, and held-out cells judge.

    Example: unbag train events.parquet reports.parquet --on bag --total sales --id event --out
    model.unbag
    """
    check_output(out, force=force, table=False)
    check_page(page, force=force)
    settings = {"method": method, "loss": loss, "epochs": epochs, "held_out": held_out}
    settings |= {"hidden": _widths(hidden, linear=linear), "learner": _learners(learner)}
    settings = {name: value for name, value in settings.items() if value is not None}
    settings |= {"folds": folds, "time_limit": time_limit, "random_state": seed}
    if marginal:
        from unbag.cli._marginals import train_cells

        files, said = (events, *marginal), ctx.obj | {"features": features or None, "plan": plan}
        outputs = {"out": out, "page": page, "as_json": as_json, "force": force}
        train_cells(files, said, settings | {"prior": prior, "test": test}, **outputs)
        return
    bags = joined(events, reports, ctx.obj, plan=plan, features=features or None, prior=prior)
    tell(summary_of(bags))
    diagnosis = diagnose_by_name(bags)
    alone = trains_alone(settings)
    tell(_verdict(diagnosis, strata=ctx.obj.stratum is not None, alone=alone))
    if bags.old_score is not None:
        tell(_of_old_score(bags.old_score))
    learn, judge = parted(bags, _test_share(test, alone=alone), seed)
    with busy(f"learning from {len(learn.reported()):,} bags"), tell_warnings():
        model = learned(learn, settings, ctx.obj.counts)
    model.save(out, force=force)  # before the evaluation, which may fail
    if method == "auto" and model.choice_ is not None:
        tell(f"chosen: {model.choice_.name}. {model.choice_.reason}")
    tell(f"learned from {len(learn.reported()):,} bags: {out}")
    judged, evaluation = None, model.evaluation_
    if judge is not None:
        judged = judged_by(model, judge)
        evaluation = judged.evaluation
    if evaluation is not None:
        print_evaluation(evaluation, as_json=as_json)
    if model.fitted_ is not None:
        tell("\n".join(said_of(model.fitted_, tested=judge is not None)))
    if page is not None:
        files = (events, reports)
        story = training_story(files, ctx.obj.time, bags, model, judged, diagnosis)
        write_story(story, page, force=force)


def _widths(hidden: list[int] | None, *, linear: bool) -> tuple[int, ...] | None:
    if linear:
        return ()
    if hidden:
        return tuple(hidden)
    return None


def _learners(named: list[str] | None) -> Any:
    """One learner by its name, or several."""
    if not named:
        return None
    if len(named) == 1:
        return named[0]
    return named


def trains_alone(settings: Mapping[str, Any]) -> bool:
    """Whether options ask for one network that is trained by itself."""
    return settings.get("learner", "auto") == "auto" and not settings.keys().isdisjoint(TRAINING)


def _test_share(test: float | None, *, alone: bool) -> float:
    """Folds judge by themselves; one network needs bags that it has not seen."""
    if test is None and alone:
        return TEST
    return test or 0.0


def _of_old_score(old: OldScore) -> str:
    scale = {True: "probabilities", False: "logits or logarithms of rates"}[old.probability]
    return f"{old.column} holds {scale}: bags teach what is to be added to its scores."


def said_of(fitted: Fitted, *, tested: bool) -> list[str]:
    """How the model was made, and the verdict.

    Parameters
    ----------
    fitted : Fitted
        The model.
    tested : bool
        Whether bags that were kept untouched evaluated it.
    """
    lines = [f"model: {fitted.combination} (weights of the learners)"]
    notes = fitted.notes
    if tested:
        lines.append("The evaluation above is from bags that were kept untouched.")
    return [*lines, *(f"note: {note}" for note in notes), *fitted.verdict]


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


def _verdict(diagnosis: Diagnosis, *, strata: bool, alone: bool) -> str:
    if diagnosis.random:
        return diagnosis.verdict
    if not alone:
        return f"warning: {diagnosis.verdict} {GOES_ON}"
    advice = remedy(diagnosis, strata=strata)
    return f"warning: {diagnosis.verdict} {advice} unbag check tells more."


def learned(bags: Any, settings: dict[str, Any], classes: Any = None) -> Any:
    """An estimator that learned from these bags, with the plan of its features."""
    from unbag.estimators import BagClassifier, BagRegressor

    if bags.kind == "total":
        return BagRegressor(**settings, diagnose=False).fit_bags(bags)
    return BagClassifier(**settings, diagnose=False).fit_bags(bags, classes=classes)
