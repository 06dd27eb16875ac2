"""Log loss, AUC and Brier score of a fitted estimator, from bags alone or from labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag._rules import broken, one_of
from unbag.bags import Kind, from_rows
from unbag.estimators._targets import RowReports, row_reports
from unbag.methods import usual_loss
from unbag.metrics import evaluate, evaluate_labels, learner


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


def refuse_cut_bags(model: Any, rows: RowReports) -> None:
    """Refuse rows that are the rest of bags of which other rows were learned from.

    Two tables may be numbered alike by chance; then their reports are not all the same.

    Parameters
    ----------
    model : estimator
        Which remembers the bags that it learned from.
    rows : RowReports
        What it is to be judged by.
    """
    known = getattr(learner(model), "bags_", None)
    if known is None or rows.bag is None or known.names is None:
        return
    names, first, size = np.unique(np.asarray(rows.bag), return_index=True, return_counts=True)
    shared, i, j = np.intersect1d(known.names, names, return_indices=True)
    same = np.isclose(known.report[i], rows.y[first[j]].astype(float)).all()
    cut = np.flatnonzero(known.size[i] != size[j])
    if len(shared) > 1 and same and len(cut):
        one = cut[0]
        raise broken(
            "A bag must stay whole, to learn from or to judge by",
            f"bag {shared[one]} had {known.size[i][one]} rows at fit and has {size[j][one]} others "
            f"here ({len(cut)} such)",
            "Split by bag: cv=unbag.BagKFold(), or GroupKFold() with groups=bag.",
        )


class BagScorer:
    """A scorer for GridSearchCV and cross_validate that receives `bag`: log loss, AUC or Brier
    score from bags alone.

    A plain function never receives `bag` in a grid search, and every score is then NaN; this object
    asks for it, for the `stratum` and `noise` of the rows' bags, and for the rows' `offset`, where
    there are any.

    >>> BagScorer("auc")
    BagScorer('auc')
    """

    def __init__(self, metric: str) -> None:
        one_of("A metric", metric, SIGNS)
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
        offset: Any = None,
    ) -> float:
        """The score of a fitted estimator, the larger the better."""
        given = {"bag": bag, "stratum": stratum, "noise": noise}
        beside = {} if offset is None else {"offset": offset}  # pipelines take only what there is
        if self.metric == "log_loss":
            known = {name: value for name, value in given.items() if value is not None}
            return estimator.score(X, y, **known, **beside)
        rows = row_reports(y, **given)
        refuse_cut_bags(estimator, rows)
        probability = estimator.predict_proba(X, **beside)[:, 1]
        return _estimate(self.metric, probability, rows, estimator.classes_)

    def get_metadata_routing(self) -> Any:
        """Ask for `bag`, `stratum`, `noise` and `offset` when scoring."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner="BagScorer")
        for name in ("bag", "stratum", "noise", "offset"):
            request.score.add_request(param=name, alias=True)
        return request


def _estimate(metric: str, h: np.ndarray, rows: RowReports, classes: Any) -> float:
    """A metric of probabilities, with the sign that makes the larger the better."""
    if rows.bag is None:
        evaluation = evaluate_labels(h, rows.y == classes[1], scale="probability")
    else:
        bags = from_rows(rows.bag, rows.y.astype(float), stratum=rows.stratum, noise=rows.noise)
        evaluation = evaluate(h, bags, scale="probability")
    return SIGNS[metric] * evaluation[metric].value


SIGNS = {"log_loss": -1, "auc": 1, "brier": -1}
