"""`unbag evaluate`: how good a model is, from the bags that it did not learn from."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from unbag._rules import broken, option_spelling
from unbag.cli._console import activity, print_evaluation, tell
from unbag.cli._options import AsJson, check_page, table_verb

if TYPE_CHECKING:
    import numpy as np

    from unbag.learners import Verdict
    from unbag.metrics import Evaluation, ScoredBags
    from unbag.tables import Columns, JoinedBags

COMMAND = table_verb(without=("kind", "score", "exposure"))  # the model file says them
# how files begin that are easily given for a model
TABLES = {b"PAR1": "a Parquet file", b"\x1f\x8b": "a compressed file"}


def evaluate(
    ctx: typer.Context,
    model: Path,
    events: Path,
    reports: Path,
    page: Path | None = None,
    force: bool = False,
    as_json: AsJson = False,
) -> None:
    """Estimate how good a model is, from reports of bags alone, each number with an interval. Bags
    that it learned from are left out.

    Example: unbag evaluate model.unbag new-events.parquet new-reports.parquet --on bag --total
    sales --json
    """
    from unbag.cli._train import next_command, rate_of

    check_page(page, force=force)
    estimator = open_model(model)
    with activity("reading"):
        fresh = fresh_bags(estimator, events, reports, ctx.obj)
        judged = judged_by(estimator, fresh)
    print_evaluation(judged.evaluation, as_json=as_json)
    tell(judged.verdict)
    tell(next_command(judged.verdict.step, ctx, estimator, model, rate_of(fresh)))
    if page is not None:
        from unbag.cli._page import evaluation_story, write_story

        files = (model, events, reports)
        write_story(evaluation_story(files, ctx.obj, judged), page, force=force)


def open_model(path: Path) -> Any:
    """A model that knows how its features are made."""
    if path.is_dir():
        from unbag.stream import StreamModel

        return StreamModel(path)
    check_is_model(path)
    from unbag.estimators import load

    model = load(path)
    if model.plan_ is None:
        raise broken(
            "A model for tables must know how columns become features",
            f"{path.name} does not",
            "Make it with unbag train, or with fit_bags(bags).",
        )
    return model


def check_is_model(path: Path) -> None:
    """Refuse a table that is given in place of a model."""
    if not path.is_file():
        return  # the reader says it
    with path.open("rb") as file:
        start = file.read(4)
    kind = next((words for first, words in TABLES.items() if start.startswith(first)), None)
    if path.suffix.lower() in (".csv", ".tsv", ".txt"):
        kind = "a CSV file"
    if kind is not None:
        raise broken(
            "The model must come first: a file that unbag train wrote",
            f"{path.name} is {kind}",
            "Give the model, then the events.",
        )


def bags_for(model: Any, events: Any, reports: Any, columns: Columns) -> JoinedBags:
    """Bags with the features that the model knows, and with reports of its kind."""
    from unbag.tables import join

    counts, classes = columns.counts, None
    if counts is not None:
        counts = list(counts)
    if model.kind_ == "histogram":
        classes = model.classes_.tolist()
    if counts != classes:
        given, learned = (", ".join(names or ["no classes"]) for names in (counts, classes))
        wanted = " ".join(option_spelling("counts", str(name)) for name in classes or ())
        raise broken(
            "Class counts must be those that the model learned from, in their order",
            f"{given} given for {learned}",
            f"Say {wanted or '--total COLUMN, without --counts'}.",
        )
    old, offset = model.old_score_, {}
    if old is not None:
        offset = {{True: "exposure", False: "score"}[old.exposure]: old.column}
    columns = replace(columns, kind=model.kind_, score=None, exposure=None)
    return join(events, reports, columns, plan=model.plan_, **offset)


def as_cells(bags: Any, reports: Path, columns: Columns) -> Any:
    """The bags under the names that they have as cells of a marginal table: a model may have
    learned from the same file as such."""
    import numpy as np

    names, keys = [str(name) for name in bags.names], columns.keys
    if len(keys) == 1:
        values = [[name] for name in names]
    else:  # commas in values were doubled when they were joined
        values = [[v.replace(",,", ",") for v in re.split("(?<!,), ", name)] for name in names]
    each = [", ".join(f"{k}={v}" for k, v in zip(keys, own, strict=False)) for own in values]
    return replace(bags.bare(), names=np.array([f"{reports.stem}: {words}" for words in each]))


def unseen(bags: Any, *learned: np.ndarray | None, cells: Any = None) -> Any:
    """The bags without those that were learned from, by one model or several, as bags or as cells
    of a marginal table."""
    import numpy as np

    from unbag.metrics import known_bags

    forms = [bags] if cells is None else [bags, cells]
    new = ~np.any([known_bags(form, each).bag for form in forms for each in learned], axis=0)
    if not (new & bags.observed).any():
        raise broken(
            "An evaluation must have bags that the model did not learn from",
            f"it learned from all {len(bags)}",
            "Give other tables, or train with --test.",
        )
    if new.all():
        return bags
    return bags.take(np.flatnonzero(new))


def fresh_bags(model: Any, events: Path, reports: Path, columns: Columns) -> Any:
    """The bags of two tables that a model did not learn from; it is said how many it did."""
    bags = bags_for(model, events, reports, columns)
    fresh = unseen(bags, model.learned_, cells=as_cells(bags, reports, columns))
    tell_learned(bags, fresh, model.learned_)
    return fresh


def tell_learned(bags: Any, fresh: Any, learned: np.ndarray | None) -> None:
    """Say how many bags were left out, and how many of these would pass for new ones by their
    report."""
    from unbag.metrics import known_bags

    if learned is None:
        tell(
            "note: this model does not know which bags it learned from. Where these are among "
            "them, what follows is too favourable."
        )
    left_out, more = len(bags) - len(fresh), ""
    if not left_out:
        return
    restated = int(known_bags(bags, learned).restated.sum())
    if restated:
        more = f" {restated:,} of them have another report or size than it learned from."
    tell(f"{left_out:,} bags that the model learned from were left out.{more}")


class JudgedModel(NamedTuple):
    """Bags that a model did not learn from, with its scores, and what these say."""

    scored: ScoredBags
    evaluation: Evaluation
    verdict: Verdict

    @property
    def predictions(self) -> np.ndarray | None:
        """Probabilities or counts; None for several classes."""
        if self.scored.bags.kind == "histogram":
            return None
        return self.scored.prediction[:, 0]


def judged_by(model: Any, bags: Any) -> JudgedModel:
    """Score bags once, and evaluate as at training: by losses only where bags are random."""
    import numpy as np

    from unbag.learners import evaluate_further, judge
    from unbag.metrics import score_bags

    scored = score_bags(model, bags)
    fitted = getattr(model, "fitted_", None)
    by_counts = fitted is not None and fitted.judged_by_counts
    evaluation = evaluate_further(scored, by_counts=by_counts)
    known = np.flatnonzero(bags.observed)
    score, kept = scored.score[bags.rows_of(known)], bags.take(known)
    verdict = judge(score, kept, evaluation, strengths=strengths_of(model, kept))
    return JudgedModel(scored, evaluation, verdict)


def strengths_of(model: Any, bags: Any) -> dict[str, float]:
    """How much each column moves the scores of a model; nothing where columns are not known."""
    from unbag.learners import column_strengths
    from unbag.metrics import scores_of

    fitted, plan = getattr(model, "fitted_", None), getattr(model, "plan_", None)
    if fitted is not None and fitted.strengths:
        return fitted.strengths
    if plan is None or bags.table is None or model.kind_ == "histogram":
        return {}

    def scores(table: Any) -> np.ndarray:
        rows = table if model.takes_tables else plan.features(table)
        if getattr(model, "offset_apart", False):  # what columns add to an old score
            return model.scores_at(rows, None)
        return scores_of(model, rows, model.kind_)

    return column_strengths(scores, bags.table)
