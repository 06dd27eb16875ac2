"""`unbag train --memory`: the additive model of tables that are larger than memory."""

from __future__ import annotations

from typing import Any

import typer

from unbag._rules import broken
from unbag.cli._console import activity, tell, tell_warnings
from unbag.cli._story import made_by, write_story
from unbag.cli._train import keep_model, next_command, tell_judged
from unbag.learners import fit_files
from unbag.learners._files import bytes_of
from unbag.report import Story

LEAST = "1MB"
TAKEN = ("folds", "random_state", "learner")


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
    from unbag.estimators import BagClassifier, BagRegressor

    given, force = ctx.params, ctx.params["force"]
    others = settings | {name: given[name] for name in ("prior", "test", "labels")}
    wrong = [name for name, value in others.items() if value is not None and name not in TAKEN]
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
    kept = {name: settings[name] for name in TAKEN if settings.get(name) is not None}
    model = door(**kept).of_fitted(fitted, plan, classes=columns.counts, old_score=old)
    keep_model(model, given["out"], f"{summary.observed:,} bags", force=force)
    tell_judged(fitted.evaluation, fitted.verdict, as_json=given["as_json"])
    known = {} if fitted.evaluation is None else fitted.evaluation.estimates
    rate = known["mean_report"].value if "mean_report" in known else None
    tell(next_command(fitted.verdict.step, ctx, model, given["out"], rate))
    if given["page"] is not None:
        story = Story(
            "A model learned from totals",
            made_by("train", *files),
            tables=summary,
            trained=True,
            learned=summary.observed,
            evaluation=fitted.evaluation,
            verdict=fitted.verdict,
        )
        write_story(story, given["page"], force=force)
