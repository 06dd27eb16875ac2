"""Calibration repaired from bags: a slope and an intercept for the scores of a model.

The log loss of a z + b (z the old score) is convex in (a, b), and all that it needs of the labels
are E[y] and E[y z], which bags give without bias, with intervals. The same holds for class scores
(a temperature and one intercept per class) and for log rates of counts.

`level_design` and `newton` also serve `unbag.learners`, which fits level and slope by the
likelihood of the counts: that needs no random bags, and this needs no model of the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from unbag._rules import broken, one_of
from unbag.bags import Bags, Kind
from unbag.losses import proper_loss
from unbag.metrics import (
    Estimate,
    Estimated,
    Evaluable,
    Judge,
    Scale,
    empty_sums,
    interval,
    join_marks,
    learner,
    loss_sums,
    marks,
    predict,
    score_bags,
    scores_of,
)

STEPS, LONGEST = 50, 2.0


@dataclass(frozen=True)
class Recalibration:
    """New score = slope * score + intercept, each with its interval.

    Parameters
    ----------
    slope : Estimate
        1 / slope is what others call temperature.
    intercept : tuple of Estimate
        One, or one for each class but the last, whose intercept is 0.
    p_value : float
        Of "no change is needed", slope 1 and intercept 0 together (Hotelling's test over bags).
    kind : {"binary", "total", "histogram"}
        The kind of report.
    bags : int
        How many bags it was estimated from.
    learned_ : array or None
        Marks of these bags, where they have names.
    scale : {"score", "probability"} or None
        Of what the model gives.
    """

    slope: Estimate
    intercept: tuple[Estimate, ...]
    p_value: float
    kind: Kind = field(repr=False)
    bags: int
    learned_: np.ndarray | None = field(default=None, repr=False, compare=False)
    scale: Scale | None = field(default=None, repr=False)

    def __str__(self) -> str:
        intercepts = ", ".join(str(one) for one in self.intercept)
        return (
            f"slope {self.slope}, intercept {intercepts}, from {self.bags} bags; p = "
            f"{self.p_value:.2g} for no change"
        )

    def apply(self, score: Any) -> np.ndarray:
        """Recalibrated scores."""
        shift: Any = self.intercept[0].value
        if self.kind == "histogram":
            shift = np.array([*(one.value for one in self.intercept), 0.0])
        return self.slope.value * np.asarray(score, float) + shift

    def wrap(self, model: Any) -> Recalibrated:
        """The model with recalibrated scores."""
        return Recalibrated(model, self)


@dataclass(frozen=True)
class Recalibrated:
    """A model whose scores are recalibrated.

    Parameters
    ----------
    model : Evaluable
        The model.
    recalibration : Recalibration
        The repair.
    """

    model: Any
    recalibration: Recalibration

    @property
    def learned_(self) -> np.ndarray | None:
        """Marks of the bags that the model or its repair learned from, so that nobody evaluates on
        them."""
        model = learner(self.model)
        known = getattr(model, "learned_", None)
        if getattr(model, "bags_", None) is not None:
            known = _marks(model.bags_)
        return join_marks(known, self.recalibration.learned_)

    @property
    def takes_tables(self) -> bool:
        """Whether the model reads tables."""
        return getattr(self.model, "takes_tables", False)

    @property
    def offset_apart(self) -> bool:
        """Whether the model takes the offset of the rows beside them."""
        return getattr(self.model, "offset_apart", False)

    def scores_at(self, X: Any, offset: Any) -> np.ndarray:
        """Recalibrated scores of rows with this offset.

        Parameters
        ----------
        X, offset : array
            See `BagClassifier.fit`.
        """
        return self.recalibration.apply(self.model.scores_at(X, offset))

    def scores(self, X: Any) -> np.ndarray:
        """Recalibrated scores of rows."""
        repair = self.recalibration
        return repair.apply(scores_of(self.model, X, repair.kind, repair.scale or "score"))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class; for counts, the expected count."""
        kind = self.recalibration.kind
        h = predict(self.scores(X), proper_loss(kind), kind)
        if kind == "binary":
            return np.concatenate([1 - h, h], axis=1)
        return h


def recalibrate(
    model: Evaluable,
    bags: Bags,
    *,
    fit: Literal["both", "intercept"] = "both",
    level: float = 0.95,
    scale: Scale | None = None,
    trained_on: Bags | None = None,
) -> Recalibration:
    """Slope and intercept that make a model's scores calibrated, from bags alone.

    Minimises the log loss (cross entropy, Poisson) of slope * score + intercept as the bags
    estimate it, with the model's own prediction as reference. Take bags that the model has not
    learned from: after training, held-out ones; after a drift, recent ones.

    Parameters
    ----------
    model : Evaluable
        See `evaluate`.
    bags : Bags
        Bags that the model has not learned from.
    fit : {"both", "intercept"}
        "intercept" where only the level has moved, or bags are few.
    level : float
        Of the intervals, which are Student's t over bags from the sandwich formula.
    scale : {"score", "probability"}, optional
        See `evaluate`.
    trained_on : Bags, optional
        See `evaluate`.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100_000)
    >>> y = rng.uniform(size=100_000) < 1 / (1 + np.exp(1 - x))
    >>> repair = recalibrate(2 * x, random_bags(None, y, size=10, seed=0))
    >>> print(repair.slope, *repair.intercept)               # the truth: half of the score, minus 1
    0.5254 [0.4893, 0.5616] -1.0250 [-1.0515, -0.9985]
    """
    one_of("What a recalibration fits", fit, ("both", "intercept"))
    _, score, g, _ = score_bags(model, bags, scale=scale, trained_on=trained_on)
    judge, kind = Judge(empty_sums(bags, g)), bags.kind
    z, offset, centre, spread = score.reshape(1, len(score), -1), 0.0, 0.0, 1.0
    if fit == "intercept":
        design, offset = level_design(z[:0], kind), z[0]
    else:  # scaled, so that Newton's steps have the right length
        if score.std() > 0:
            spread = float(score.std())
            centre = float(score.mean()) * (kind != "histogram")
        design = level_design((z - centre) / spread, kind)
    theta, curvature, h = _solve(design, offset, g, judge, bags)
    gradient = [_gap(design[..., q], h, g, judge, bags).parts() for q in range(len(theta))]
    parts = -np.einsum("pq,qij->pij", np.linalg.inv(curvature), np.stack(gradient))
    unchanged = np.zeros(len(theta))
    if fit == "both":
        # back to the scores as they were: b + a (z - c) / s = (b - a c / s) + (a / s) z
        back = np.eye(len(theta))
        back[-1, -1], back[:-1, -1] = 1 / spread, -centre / spread
        theta, parts = back @ theta, np.einsum("pq,qij->pij", back, parts)
        unchanged[-1] = 1.0
    slope = Estimate(1.0, 0.0, 1.0, 1.0)
    estimates = [
        interval(Estimated(float(t), *part), judge, level=level)
        for t, part in zip(theta, parts, strict=True)
    ]
    if fit == "both":
        *estimates, slope = estimates
    count = int(bags.observed.sum())
    p_value = _hotelling(theta - unchanged, parts[:, 0], count)
    return Recalibration(slope, tuple(estimates), p_value, kind, count, _marks(bags), scale)


def _marks(bags: Bags) -> np.ndarray | None:
    if bags.names is None:
        return None
    return marks(bags)


def _hotelling(difference: np.ndarray, psi: np.ndarray, count: int) -> float:
    """p-value of a difference of 0, psi being what each bag contributes to its error."""
    from scipy.special import fdtrc

    q = len(difference)
    if count <= q:
        return 1.0
    covariance = psi @ psi.T * count / (count - 1)
    squared = difference @ np.linalg.lstsq(covariance, difference, rcond=None)[0]
    return float(fdtrc(q, count - q, squared * (count - q) / (q * (count - 1))))


def level_design(scores: np.ndarray, kind: Kind) -> np.ndarray:
    """What each parameter adds to each score, (instances, components, parameters), levels first.

    Parameters
    ----------
    scores : numpy.ndarray
        Of each slope: (slopes, instances, components).
    kind : {"binary", "total", "histogram"}
        A histogram has a level for each class but the last, the others have one.
    """
    levels = np.ones((1, 1))
    if kind == "histogram":
        levels = np.eye(scores.shape[2])[:, :-1]
    levels = np.broadcast_to(levels, (scores.shape[1], *levels.shape))
    return np.concatenate([levels, np.moveaxis(scores, 0, -1)], axis=2)


def newton(
    derivatives: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    *,
    longest: float,
    enough: float,
) -> np.ndarray:
    """The lowest point of a convex function by Newton's method, with steps of bounded length.

    Parameters
    ----------
    derivatives : callable
        Gradient and curvature at a point.
    start : numpy.ndarray
        Where to begin.
    longest : float
        What no coordinate moves further than in a step: far away the curvature misleads.
    enough : float
        A step in which all coordinates move less is the last.
    """
    theta = start
    for _ in range(STEPS):
        gradient, curvature = derivatives(theta)
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        step *= min(1.0, longest / max(float(np.abs(step).max()), 1e-300))
        theta = theta - step
        if np.abs(step).max() < enough or not np.isfinite(theta).all():
            break
    return theta


def _gap(column: np.ndarray, h: np.ndarray, g: np.ndarray, judge: Judge, bags: Bags) -> Estimated:
    """E[(h - y) column], the slope of the loss along one parameter, as the bags estimate it."""
    own, nothing = np.sum(h * column, axis=1), np.zeros_like(g)
    if bags.kind != "histogram":
        T, S, _ = loss_sums(np.stack([own, -column[:, 0]], axis=1), g, nothing, bags)
        return judge.expectation(T, S)
    T, S, _ = loss_sums(-column, g, nothing, bags)
    return judge.expectation(T + np.bincount(bags.bag, weights=own, minlength=len(bags)), S)


def _solve(
    design: np.ndarray, offset: Any, g: np.ndarray, judge: Judge, bags: Bags
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parameters, the curvature and the predictions there; no answer lies where nothing is in
    doubt.

    offset : added to all scores for free.
    """
    count, kind = design.shape[2], bags.kind
    columns = [_gap(design[..., q], 0 * g, g, judge, bags).value for q in range(count)]
    wanted, loss = np.array(columns), proper_loss(kind)

    def predicted(theta: np.ndarray) -> np.ndarray:
        eta = offset + design @ theta
        if kind != "histogram":
            eta = eta[:, 0]
        return predict(eta, loss, kind)

    def derivatives(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the mean loss; the second are the variance of the label under the prediction, between
        directions."""
        h = predicted(theta)
        slope = np.einsum("nc,ncq->q", h, design) / len(h) + wanted
        if kind == "histogram":
            mean = np.einsum("nc,ncq->nq", h, design)
            square = np.einsum("nc,ncq,ncr->qr", h, design, design)
            return slope, (square - mean.T @ mean) / len(h)
        variance, flat = h, design[:, 0]
        if kind == "binary":
            variance = h * (1 - h)
        return slope, (flat * variance).T @ flat / len(h)

    theta = newton(derivatives, np.zeros(count), longest=LONGEST, enough=1e-10)
    slope, curvature = derivatives(theta)
    flat = np.abs(curvature).max() < 1e-9 or np.linalg.cond(curvature) > 1e12
    if not np.isfinite(theta).all() or np.abs(slope).max() > 1e-6 or flat:
        what, remedy = "intercept", ""
        if count > max(design.shape[1] - 1, 1):  # the slope is fitted too
            what, remedy = "slope and intercept", ", or {fit:intercept}"
        raise broken(
            "A recalibration must have a finite answer",
            f"these {int(bags.observed.sum())} bags estimate label means that no {what} can meet, "
            "or the scores are all the same",
            f"Give more bags{remedy}.",
        )
    return theta, curvature, predicted(theta)
