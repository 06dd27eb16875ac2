"""`unbag train --memory`: the additive model of tables that are larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unbag._rules import broken
from unbag.cli._console import activity, tell, tell_warnings
from unbag.cli._story import made_by, write_story
from unbag.cli._train import keep_model, next_command, tell_judged
from unbag.learners import fit_files
from unbag.learners._files import bytes_of
from unbag.report import Story
from unbag.tables import Columns

LEAST = "1MB"
TAKEN = ("folds", "random_state", "learner")


def train_files(
    ctx: Any,
    files: Sequence[Path],
    said: dict[str, Any],
    settings: dict[str, Any],
    *,
    out: Path,
    page: Path | None,
    as_json: bool,
    force: bool,
) -> None:
    """A model file from tables of any size, with its verdict and its page.

    Parameters
    ----------
    ctx : typer.Context
        Of the command, with what is said of the columns.
    files : sequence of Path
        Events and reports.
    said : dict
        Further arguments of `fit_files`.
    settings : dict
        Of the estimator; those that the additive model from disk does not take are refused.
    out, page, as_json, force
        See `unbag train`.
    """
    from unbag.estimators import BagClassifier, BagRegressor

    given = [name for name, value in settings.items() if value is not None and name not in TAKEN]
    if given or settings.get("learner", "additive") != "additive":
        raise broken(
            "With a limit of the memory the additive model must learn alone",
            f"{', '.join(given) or settings['learner']} given",
            "Leave it out, or {memory}.",
        )
    if bytes_of(said["memory"]) < bytes_of(LEAST):
        raise broken(
            f"A memory must be at least {LEAST}",
            f"{said['memory']} given",
            f"Give {{memory:{LEAST}}} or more: parts of a few rows only take longer.",
        )
    how = {"folds": settings["folds"], "seed": settings["random_state"]}
    columns: Columns = ctx.obj
    with activity("learning from parts on disk"), tell_warnings():
        events, reports = files
        fitted, plan, summary, old = fit_files(events, reports, columns, **said, **how)
    tell(summary)
    door = {"total": BagRegressor}.get(fitted.kind, BagClassifier)
    kept = {name: settings[name] for name in TAKEN if settings.get(name) is not None}
    model = door(**kept).of_fitted(fitted, plan, classes=columns.counts, old_score=old)
    keep_model(model, out, f"{summary.observed:,} bags", force=force)
    tell_judged(fitted.evaluation, fitted.verdict, as_json=as_json)
    known = {} if fitted.evaluation is None else fitted.evaluation.estimates
    rate = known["mean_report"].value if "mean_report" in known else None
    tell(next_command(fitted.verdict.step, ctx, model, out, rate))
    if page is not None:
        story = Story(
            "A model learned from totals",
            made_by("train", *files),
            tables=summary,
            trained=True,
            learned=summary.observed,
            evaluation=fitted.evaluation,
            verdict=fitted.verdict,
        )
        write_story(story, page, force=force)
