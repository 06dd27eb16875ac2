"""Log loss, AUC and Brier score of a fitted estimator, from bags alone or from labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag._rules import one_of
from unbag.bags import Kind, from_rows
from unbag.estimators._fit import flat
from unbag.methods import usual_loss
from unbag.metrics import evaluate, evaluate_labels


def estimate_loss(
    score: np.ndarray, y: Any, bag: Any, kind: Kind, *, sample_weight: Any = None, **further: Any
) -> float:
    """Mean log loss (cross entropy, Poisson) from labels, or from bags with the model's own
    prediction as reference.

    Parameters
    ----------
    score : array
        Scores of the rows.
    y : array
        Of each row the report of its bag, or its label.
    bag : array, optional
        Id of each row's bag.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    sample_weight : array, optional
        Of labelled rows.
    **further : array
        `stratum` and `noise` of the rows' bags.
    """
    loss = usual_loss("any", kind)
    if bag is None:
        return float(np.average(loss.value(score, y, kind=kind), weights=sample_weight))
    bags = from_rows(bag, y, kind=kind, **further)
    estimates = evaluate(score, bags, losses=[loss], scale="score").estimates
    return next(iter(estimates.values())).value


class BagScorer:
    """A scorer for GridSearchCV and cross_validate that receives `bag`: log loss, AUC or Brier
    score from bags alone.

    A plain function never receives `bag` in a grid search, and every score is then NaN; this object
    asks for it, and for the `stratum` and `noise` of the rows' bags where there are any.

    >>> BagScorer("auc")
    BagScorer('auc')
    """

    def __init__(self, metric: str) -> None:
        one_of("A metric", metric, METRICS)
        self.metric = metric

    def __repr__(self) -> str:
        return f"BagScorer({self.metric!r})"

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        bag: Any = None,
        stratum: Any = None,
        noise: Any = None,
    ) -> float:
        """The score of a fitted estimator, the larger the better."""
        return METRICS[self.metric](estimator, X, flat(y), bag=bag, stratum=stratum, noise=noise)

    def get_metadata_routing(self) -> Any:
        """Ask for `bag`, `stratum` and `noise` when scoring."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner="BagScorer")
        for name in ("bag", "stratum", "noise"):
            request.score.add_request(param=name, alias=True)
        return request


def _by(metric: str, sign: int) -> Any:
    def score(estimator: Any, X: Any, y: np.ndarray, *, bag: Any, **further: Any) -> float:
        h = estimator.predict_proba(X)[:, 1]
        if bag is None:
            labels = y == estimator.classes_[1]
            return sign * evaluate_labels(h, labels, scale="probability")[metric].value
        bags = from_rows(bag, y.astype(float), **further)
        return sign * evaluate(h, bags, scale="probability")[metric].value

    return score


def _log_loss(estimator: Any, X: Any, y: np.ndarray, **bags: Any) -> float:
    return estimator.score(X, y, **bags)


METRICS = {"log_loss": _log_loss, "auc": _by("auc", 1), "brier": _by("brier", -1)}
