"""`unbag train`: a model file from two tables, and its evaluation from other bags."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag._rules import broken, one_of, option_spelling, spelled
from unbag.cli._check import in_lines, readings
from unbag.cli._console import activity, print_evaluation, tell, tell_warnings
from unbag.cli._options import (
    COLUMN_NAMES,
    WORDS,
    AsJson,
    Encoding,
    Features,
    check_output,
    check_page,
    check_pair,
    numbers_of,
    table_verb,
)

if TYPE_CHECKING:
    from unbag.diagnosis import Diagnosis
    from unbag.tables import Columns, JoinedBags, OldScore

COMMAND = table_verb()
GOES_ON = (
    "Learning goes on: bags are compared within the columns that no bag mixes; where that does not "
    "make them random, learners that need random bags are left out, and the likelihood of held-out "
    "reports judges in place of a loss."
)
TRAINING = ("method", "loss", "epochs", "held_out", "hidden")
FEWEST = 4  # bags, two to learn from and two to judge
LEAST = "1MB"
OF_FILES = ("folds", "random_state", "learner")  # settings that the additive model from disk takes
TEST = 0.2  # the share of the bags that judges one network that was trained by itself
# the command for each next step of a verdict
NEXT = {
    "predict": "unbag predict {model} NEW_EVENTS --out scores.parquet",
    "recalibrate": "unbag recalibrate {model} NEW_EVENTS NEW_REPORTS {words} --out better.unbag",
    "more": "unbag plan --rate {rate} --regret 0.01 {noise}",
    "other": "unbag explain {model}",
}
# what `unbag plan` takes too
OF_PLAN = ("--kind", "--cap", "--noise", "--epsilon", "--mechanism", "--delta", "--sensitivity")
# what `unbag recalibrate` must be told of new tables as well
OF_REPORTS = {
    f"--{name.replace('_', '-')}"
    for name in COLUMN_NAMES
    if name not in ("kind", "score", "exposure", "cut", "accept_bias")
}


def train(
    ctx: typer.Context,
    events: Path,
    reports: Path,
    out: Annotated[Path, typer.Option()],
    marginal: list[Path] | None = None,
    below: float | None = None,
    features: Features = None,
    encoding: Encoding = None,
    prior: float | None = None,
    learner: list[str] | None = None,
    folds: Annotated[int, typer.Option(min=2)] = 5,
    time_limit: Annotated[float | None, typer.Option(min=0)] = None,
    test: Annotated[float | None, typer.Option(min=0, max=0.99)] = None,
    labels: Path | None = None,
    label: str | None = None,
    memory: str | None = None,
    seed: int = 0,
    method: str | None = None,
    loss: str | None = None,
    hidden: list[str] | None = None,
    linear: bool = False,
    epochs: Annotated[int | None, typer.Option(min=1)] = None,
    held_out: Annotated[float | None, typer.Option(min=0, max=0.99)] = None,
    page: Path | None = None,
    as_json: AsJson = False,
    force: bool = False,
) -> None:
    """Learn a model of single events from the totals of bags, and say how good it is.

    By default every bag teaches and every bag judges: learners are cross-fitted in folds of bags,
    combined, and evaluated by models that never saw the bag. With --method, --hidden, --linear,
    --epochs, --loss or --held-out one network is trained instead, and judged by a fifth of the
    bags. The model file holds all that prediction needs.

    With --memory the tables may be larger than memory: the additive model learns from parts on
    disk.

    With --marginal the totals are those of tables that count the same events by their columns, as
    sales by campaign and day; the additive model learns from all of them, and held-out cells judge.

    Example: unbag train events.parquet reports.parquet --on bag --total sales --id event --out
    model.unbag

    Parameters
    ----------
    out
        the model, e.g. model.unbag
    prior
        the mean label, where it is known; else the mean report
    learner
        auto (additive and trees; networks for images), additive, trees, stacked, network, or one of
        unbag.peers, such as mean_map; repeat
    folds
        of bags, in which learners are cross-fitted
    time_limit
        seconds after which no further learner begins
    test
        share of the bags that is kept untouched and evaluates in the end
    labels
        further events whose labels are known, to learn from too
    label
        labels: column with the label of each event
    memory
        for tables larger than memory, as 2GB: the additive model, from disk

    One network, trained by itself
    ------------------------------
    method
        anchored, upm, easy, matching, likelihood, or one of unbag.objectives, such as llp_fc; auto
        tries several and bags choose
    loss
        by default the method's usual one
    hidden
        widths of the hidden layers, as 64,32; 32
    linear
        no hidden layer
    epochs
        at most so many; 60
    held_out
        share of the training bags that chooses rate and epoch; 0.2
    """
    from unbag._progress import informed
    from unbag.diagnosis import diagnose

    check_output(out, force=force, table=False)
    check_page(page, force=force)
    settings = {"method": method, "loss": loss, "epochs": epochs, "held_out": held_out}
    widths = () if linear else numbers_of(hidden, "hidden")
    names = learner or None
    if names is not None and len(names) == 1:
        names = names[0]
    settings |= {"hidden": widths, "learner": names}
    settings = {name: value for name, value in settings.items() if value is not None}
    check_settings(settings)
    check_pair("label", label, "labels", labels)
    check_pair("below", below, "marginal", marginal)
    settings |= {"folds": folds, "time_limit": time_limit, "random_state": seed}
    said = {"features": features or None, "plan": encoding}
    if marginal:
        from unbag.cli._marginals import train_cells

        train_cells(ctx, ctx.obj | said, settings)
        return
    if memory is not None:
        train_files(ctx, said, settings)
        return
    # options of training ask for one network, which needs bags to judge it; folds judge themselves
    alone = learner in (None, [], ["auto"]) and not settings.keys().isdisjoint(TRAINING)
    share = TEST if test is None and alone else test or 0.0
    with activity("reading"):
        bags = joined(events, reports, ctx.obj, **said, prior=prior)
        diagnosis = diagnose(bags)
    tell(bags.summary)
    tell(in_lines(readings(bags, ctx.obj)))
    tell(_on_randomness(diagnosis, alone=alone))
    if bags.old_score is not None:
        tell(_on_old_score(bags.old_score))
    learn, judging = parted(bags, share, seed)
    learned_from = f"{len(learn.reported()):,} bags"
    if labels is not None:
        both = _with_labels(learn, labels, label, alone=alone)
        learned_from += f" and {len(both) - len(learn.reported()):,} labelled events"
        learn = both
    with activity("learning") as progress, informed(progress), tell_warnings():
        model = learned(learn, settings, ctx.obj.counts)
    keep_model(model, out, learned_from, force=force, judged=judging is not None)
    judged, evaluation, verdict = None, model.evaluation_, verdict_on(model, learn)
    if judging is not None:
        from unbag.cli._evaluate import judged_by

        judged = judged_by(model, judging)
        evaluation = judged.evaluation
        verdict = verdict or judged.verdict  # folds have more bags to say it with
    tell_judged(evaluation, verdict, as_json=as_json)
    if verdict is not None:
        tell(next_command(verdict.step, ctx, model, out, rate_of(bags)))
    if page is not None:
        from unbag.cli._page import training_story, write_story

        story = training_story((events, reports), ctx.obj, bags, model, judged, diagnosis, verdict)
        write_story(story, page, force=force)


def _with_labels(bags: Any, labels: Path, label: str | None, *, alone: bool) -> Any:
    """The bags and the events whose labels are known."""
    from unbag.learners import with_labels

    if label is None or alone:
        raise broken(
            "Labelled events must have a column of labels and be learned by learners",
            "none is named, or options ask for one network",
            "Name the column with {label}, and leave out the options of a network.",
        )
    return with_labels(bags, labels, label)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse a misspelt method, loss or learner before the tables are read."""
    from unbag.learners import make_learner
    from unbag.losses import named_loss
    from unbag.methods import METHODS

    if "method" in settings:
        one_of("A method", settings["method"], (*METHODS, "auto"))
    if "loss" in settings:
        named_loss(settings["loss"])
    learner = settings.get("learner", "auto")
    for name in [learner] if isinstance(learner, str) else learner:
        if name != "auto":
            make_learner(name)


def _on_old_score(old: OldScore) -> str:
    if old.exposure:
        return f"{old.column} holds exposures: expected counts are proportional to it."
    scale = {True: "probabilities", False: "logits or logarithms of rates"}[old.probability]
    return f"{old.column} holds {scale}: bags teach what is to be added to its scores."


def keep_model(
    model: Any, out: Path, what: str, *, force: bool, judged: bool = False, known: Any = ()
) -> None:
    """Save a model, before anything else may fail, and say where it is and how it was made.

    Parameters
    ----------
    model : BagEstimator
        Which has learned.
    out, force : Path, bool
        Where to, and whether to overwrite.
    what : str
        It learned from.
    judged : bool
        Whether bags that were kept untouched judge it.
    known : sequence of str
        Notes that were told already.
    """
    model.save(out, force=force)
    if model.choice_ is not None and model.method == "auto":
        tell(f"chosen: {model.choice_.name}. {model.choice_.reason}")
    tell(f"learned from {what}: {out}")
    if model.fitted_ is not None:
        tell(f"model: {model.fitted_.combination} (weights of the learners)")
        if judged:
            tell("The evaluation is from bags that were kept untouched.")
    for note in model.notes_:
        if note not in known:
            tell(f"note: {note}")


def verdict_on(model: Any, bags: Any) -> Any:
    """The verdict of the bags of training themselves, each judged by models that never saw it."""
    fitted = model.fitted_
    if fitted is None:
        return None
    if fitted.strengths or fitted.gain is None:
        return fitted.verdict
    from unbag.cli._evaluate import strengths_of

    return fitted.verdict_with(strengths_of(model, bags))


def tell_judged(evaluation: Any, verdict: Any, *, as_json: bool) -> None:
    """What bags or cells that had no part in learning say of a model."""
    if evaluation is None and verdict is None:
        tell("note: no bag was kept for an evaluation: how good this model is, is not known.")
    if evaluation is not None:
        print_evaluation(evaluation, as_json=as_json, verdict=verdict and list(verdict))
    if verdict is not None:
        tell(f"\n{verdict}")


def rate_of(bags: Any) -> float:
    """The mean report of all events; strata have priors of their own, and other sizes."""
    import numpy as np

    known = bags.reported()
    return float(np.mean(np.average(known.report, axis=0, weights=known.size)))


def next_command(step: str, ctx: typer.Context, model: Any, path: Path, rate: float | None) -> str:
    """The command for the next step, with what this one said of the columns.

    Parameters
    ----------
    step : str
        Of the verdict.
    ctx : typer.Context
        Of this command.
    model, path : BagEstimator, Path
        The model, and its file.
    rate : float or None
        The mean report, where it is known.
    """
    if step == "recalibrate" and path.is_dir():
        step = "predict"  # a stream corrects itself
    if step == "other" and not getattr(model.fitted_, "effects", None):
        step = "more"  # a network has no effects to explain
    said = list(pairwise(ctx.meta.get(WORDS, [])))
    columns = [word for pair in said if pair[0] in OF_REPORTS for word in pair]
    if model.old_score_ is not None:
        columns += ["--fit", "intercept"]  # its slope is not to be learned
    # a plan takes noise as a number, not as a column
    of_plan = [
        (option, value)
        for option, value in said
        if option in OF_PLAN and (option != "--noise" or value.replace(".", "", 1).isdigit())
    ]
    plan = [word for pair in of_plan for word in pair]
    most = {"total": math.inf}.get(model.kind_, 0.999)
    if model.kind_ == "total":  # a plan for totals needs both
        plan += ["--kind", "total"] * ("--kind" not in plan)
        plan += ["--cap", "LARGEST_COUNT"] * ("--cap" not in plan)
    words = {"words": shlex.join(columns), "noise": shlex.join(plan), "rate": "RATE"}
    if rate is not None:
        words["rate"] = f"{min(max(rate, 0.001), most):.3g}"
    return f"  {NEXT[step].format(model=shlex.quote(str(path)), **words)}".rstrip()


def joined(events: Any, reports: Any, columns: Columns, **how: Any) -> JoinedBags:
    """Bags with features."""
    from unbag.tables import join

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
    reported = bags.reported()
    if len(reported) < FEWEST:
        raise broken(
            f"There must be at least {FEWEST} bags to keep some of them for the evaluation",
            f"{len(reported)} given",
            "Learn from all of them, without an evaluation, with {test:0}.",
        )
    return bags.split(1 - test, seed=seed)


def _on_randomness(diagnosis: Diagnosis, *, alone: bool) -> str:
    if diagnosis.random:
        return diagnosis.verdict
    if not alone:
        return f"warning: {diagnosis.verdict} {GOES_ON}"
    advice = spelled(diagnosis.advice, option_spelling)
    return f"warning: {diagnosis.verdict} {advice} unbag check shows more."


def learned(bags: Any, settings: dict[str, Any], classes: Any = None) -> Any:
    """An estimator that learned from these bags, and knows how their columns are read."""
    from unbag import estimators

    if bags.kind == "total":
        return estimators.BagRegressor(**settings, diagnose=False).fit_bags(bags)
    return estimators.BagClassifier(**settings, diagnose=False).fit_bags(bags, classes=classes)


def train_files(ctx: typer.Context, said: dict[str, Any], settings: dict[str, Any]) -> None:
    """A model file from tables of any size, with its verdict and its page.

    Parameters
    ----------
    ctx : typer.Context
        Of the command, with its options, and what is said of the columns.
    said : dict
        Further arguments of `fit_files`.
    settings : dict
        Of the estimator; those that the additive model from disk does not take are refused.
    """
    from unbag.cli._page import trained_story, write_story
    from unbag.estimators import BagClassifier, BagRegressor
    from unbag.learners._files import bytes_of, fit_files

    given, force = ctx.params, ctx.params["force"]
    others = settings | {name: given[name] for name in ("prior", "test", "labels")}
    wrong = [name for name, value in others.items() if value is not None and name not in OF_FILES]
    if wrong or settings.get("learner", "additive") != "additive":
        raise broken(
            "With a limit of the memory the additive model must learn alone",
            f"{', '.join(wrong) or settings['learner']} given",
            "Leave it out, or {memory}.",
        )
    memory, files, columns = given["memory"], (given["events"], given["reports"]), ctx.obj
    if bytes_of(memory) < bytes_of(LEAST):
        raise broken(
            f"A memory must be at least {LEAST}",
            f"{memory} given",
            f"Give {{memory:{LEAST}}} or more: parts of a few rows only take longer.",
        )
    how = said | {"memory": memory, "folds": settings["folds"], "seed": settings["random_state"]}
    with activity("learning from parts on disk"), tell_warnings():
        fitted, plan, summary, old = fit_files(*files, columns, **how)
    tell(summary)
    door = {"total": BagRegressor}.get(fitted.kind, BagClassifier)
    kept = {name: settings[name] for name in OF_FILES if settings.get(name) is not None}
    model = door(**kept).of_fitted(fitted, plan, classes=columns.counts, old_score=old)
    keep_model(model, given["out"], f"{summary.observed:,} bags", force=force)
    tell_judged(fitted.evaluation, fitted.verdict, as_json=given["as_json"])
    mean = getattr(fitted.evaluation, "estimates", {}).get("mean_report")
    rate = getattr(mean, "value", None)
    tell(next_command(fitted.verdict.step, ctx, model, given["out"], rate))
    if given["page"] is not None:
        known = {"tables": summary, "learned": summary.observed, "verdict": fitted.verdict}
        write_story(trained_story(files, model, **known), given["page"], force=force)
