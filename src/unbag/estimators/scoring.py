"""A fitted model, rows and reports in, its log loss, AUC or Brier score out, from bags alone or from labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag import weights
from unbag.bags import Kind, as_components, from_rows
from unbag.training import default_loss


def estimate_loss(score: np.ndarray, y: Any, bag: Any, kind: Kind, *, sample_weight: Any = None) -> float:
    """Mean log loss (cross entropy, Poisson) from labels, or from bags with the model's own prediction as reference."""
    loss = default_loss("any", kind)
    if bag is None:
        return float(np.average(loss.value(score, y, kind=kind), weights=sample_weight))
    bags = from_rows(bag, y, kind=kind)
    report, prior = bags.components()
    form = loss.form(kind)
    g = np.exp(form.predict(score))
    g = g if kind == "histogram" else as_components(g[:, 1] if g.ndim > 1 else g, kind)
    W = weights.anchored(bags.bag, bags.size, report, prior, g)
    return float(np.sum(W * loss.components(score, kind=kind)))


class BagScorer:
    """A scorer for GridSearchCV and cross_validate that receives `bag`: log loss, AUC or Brier score from bags alone.

    A plain function never receives `bag` in a grid search, and every score is then NaN; this object asks for it.

    >>> BagScorer("auc")
    BagScorer('auc')
    """

    def __init__(self, metric: str) -> None:
        if metric not in METRICS:
            raise ValueError(f"A metric must be one of {', '.join(METRICS)}: {metric!r} came. Choose one of these.")
        self.metric = metric

    def __repr__(self) -> str:
        return f"BagScorer({self.metric!r})"

    def __call__(self, estimator: Any, X: Any, y: Any, bag: Any = None) -> float:
        """The score of a fitted estimator, the larger the better."""
        return METRICS[self.metric](estimator, X, np.asarray(y, float), bag)

    def get_metadata_routing(self) -> Any:
        """Ask for `bag` when scoring."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner="BagScorer")
        request.score.add_request(param="bag", alias=True)
        return request


def _expectation(estimator: Any, X: Any, y: np.ndarray, bag: Any, f: Any) -> tuple[float, float]:
    """E[y f(score)] and the prior, from bags (with the probability as reference) or labels."""
    h = estimator.predict_proba(X)[:, 1]
    value = f(h)
    bags = from_rows(np.arange(len(h)) if bag is None else bag, y)
    report, prior = bags.components()
    if bag is None:
        return float(np.mean(y * value)), float(y.mean())
    W = weights.anchored(bags.bag, bags.size, report, prior, as_components(h))
    return float(np.sum(W[:, 1] * value)), float(prior[1])


def _auc(estimator: Any, X: Any, y: np.ndarray, bag: Any) -> float:
    """AUC = (E[y F] - p^2 / 2) / (p (1 - p)), F the rank of the score."""

    def rank(h: np.ndarray) -> np.ndarray:
        ordered = np.sort(h)
        return (np.searchsorted(ordered, h, "left") + np.searchsorted(ordered, h, "right")) / (2 * len(h))

    joint, p = _expectation(estimator, X, y, bag, rank)
    if not 0 < p < 1:
        raise ValueError(f"The AUC must have both labels: the prior is {p:g}. Score by log loss or Brier instead.")
    return (joint - p**2 / 2) / (p * (1 - p))


def _brier(estimator: Any, X: Any, y: np.ndarray, bag: Any) -> float:
    h = estimator.predict_proba(X)[:, 1]
    joint, _ = _expectation(estimator, X, y, bag, lambda h: 1 - 2 * h)
    return -float(np.mean(h**2) + joint)


METRICS = {"log_loss": lambda estimator, X, y, bag: estimator.score(X, y, bag=bag), "auc": _auc, "brier": _brier}
