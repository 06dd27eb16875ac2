"""What bags say of a model: its scores of bags that it did not learn from, metrics and verdict."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unbag.learners import Verdict, column_strengths, judge
from unbag.metrics import Evaluation, ScoredBags, evaluate_scored, score_bags


class JudgedModel(NamedTuple):
    """Bags that a model did not learn from, with its scores, and what these say."""

    scored: ScoredBags
    evaluation: Evaluation
    verdict: Verdict | None = None

    @property
    def predictions(self) -> np.ndarray | None:
        """Probabilities or counts; None for several classes."""
        if self.scored.bags.kind == "histogram":
            return None
        return self.scored.prediction[:, 0]


def judged_by(model: Any, bags: Any) -> JudgedModel:
    """Score bags once, and evaluate: as at training, where its bags were not random."""
    scored = score_bags(model, bags)
    fitted = getattr(model, "fitted_", None)
    if fitted is not None and fitted.judged_by_counts:
        evaluation = fitted.evaluate(bags)
    else:
        evaluation = evaluate_scored(scored)
    known = np.flatnonzero(bags.observed)
    score, kept = scored.score[bags.rows_of(known)], bags.take(known)
    verdict = judge(score, kept, evaluation, strengths=strengths_of(model, kept))
    return JudgedModel(scored, evaluation, verdict)


def strengths_of(model: Any, bags: Any) -> dict[str, float]:
    """How much each column moves the scores of a model; nothing where columns are not known."""
    fitted, plan = getattr(model, "fitted_", None), getattr(model, "plan_", None)
    if fitted is not None and fitted.strengths:
        return fitted.strengths
    if plan is None or bags.table is None or model.kind_ == "histogram":
        return {}

    def scores(table: Any) -> np.ndarray:
        rows = table if model.takes_tables else plan.features(table)
        if model.kind_ == "total":
            return np.log(np.maximum(model.predict(rows), 1e-12))
        h = np.clip(model.predict_proba(rows)[:, 1], 1e-9, 1 - 1e-9)
        return np.log(h / (1 - h))

    return column_strengths(scores, bags.table)


def verdict_on(model: Any, bags: Any) -> Verdict | None:
    """The verdict of the bags of training themselves, each judged by models that never saw it."""
    fitted = model.fitted_
    if fitted is None:
        return None
    if fitted.strengths or fitted.gain is None:
        return fitted.verdict
    return fitted.verdict_with(strengths_of(model, bags))
