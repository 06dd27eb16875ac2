"""Scores of a model and bags in, a slope and an intercept for its scores out: calibration repaired
without labels.

The log loss of a z + b (z the old score) is convex in (a, b), and all that it needs of the labels
are E[y] and E[y z], which bags give without bias, with intervals. The same holds for class scores
(a temperature and one intercept per class) and for log rates of counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, Kind
from unbag.metrics._estimate import Estimated, Judge
from unbag.metrics._evaluate import chosen_losses
from unbag.metrics._intervals import Estimate, interval
from unbag.metrics._leakage import check_apart, join_marks, learner, marks
from unbag.metrics._scores import scores_of
from unbag.metrics._sums import checked_scores, empty_sums, loss_sums, predict

STEPS = 50


@dataclass(frozen=True)
class Recalibration:
    """New score = slope * score + intercept, each with its interval; 1 / slope is what others call
    temperature.

    p_value : of "no change is needed", slope 1 and intercept 0 together (Hotelling's test over
        bags). The last class
    has intercept 0. learned_ : marks of the bags it was found from, where they have names. scale :
    of what the model gives.
    """

    slope: Estimate
    intercept: tuple[Estimate, ...]
    p_value: float
    kind: Kind = field(repr=False)
    bags: int
    learned_: np.ndarray | None = field(default=None, repr=False, compare=False)
    scale: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        told = ", ".join(str(one) for one in self.intercept)
        return f"slope {self.slope}, intercept {told}, from {self.bags} bags; p = {self.p_value:.2g} for no change"

    def apply(self, score: Any) -> np.ndarray:
        """Recalibrated scores."""
        shift = np.array([one.value for one in self.intercept])
        shift = np.append(shift, 0.0) if self.kind == "histogram" else shift[0]
        return self.slope.value * np.asarray(score, float) + shift

    def wrap(self, model: Any) -> Recalibrated:
        """The model with recalibrated scores."""
        return Recalibrated(model, self)


@dataclass(frozen=True)
class Recalibrated:
    """A model whose scores are recalibrated."""

    model: Any
    recalibration: Recalibration

    @property
    def learned_(self) -> np.ndarray | None:
        """Marks of the bags that the model or its repair learned from, so that nobody evaluates on
        them."""
        model = learner(self.model)
        remembered = getattr(model, "bags_", None)
        known = getattr(model, "learned_", None) if remembered is None else _marks(remembered)
        return join_marks(known, self.recalibration.learned_)

    def scores(self, X: Any) -> np.ndarray:
        """Recalibrated scores of rows."""
        repair = self.recalibration
        return repair.apply(scores_of(self.model, X, repair.kind, repair.scale or "score"))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class; for counts, the expected count."""
        kind = self.recalibration.kind
        h = predict(self.scores(X), chosen_losses(None, kind)[0], kind)
        return np.concatenate([1 - h, h], axis=1) if kind == "binary" else h


def recalibrate(
    model: Any,
    bags: Bags,
    *,
    fit: Literal["both", "intercept"] = "both",
    level: float = 0.95,
    scale: Literal["score", "probability"] | None = None,
    trained_on: Bags | None = None,
) -> Recalibration:
    """Slope and intercept that make a model's scores calibrated, from bags alone.

    Minimises the log loss (cross entropy, Poisson) of slope * score + intercept as the bags
    estimate it, with the model's own prediction as reference. Take bags that the model has not
    learned from: after training, held-out ones; after a drift, recent ones.

    Parameters
    ----------
    fit : "both", or "intercept" where only the level has moved, or bags are few.
    level : of the intervals, which are Student's t over bags from the sandwich formula.
    model, scale, trained_on : as in `evaluate`.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100_000)
    >>> bags = random_bags(None, rng.uniform(size=100_000) < 1 / (1 + np.exp(1 - x)), size=10, seed=0)
    >>> print(recalibrate(2 * x, bags))                      # the truth: half of the score, minus 1
    slope 0.5254 [0.4893, 0.5616], intercept -1.0250 [-1.0515, -0.9985], from 10000 bags; p = 0 for
    no change
    """
    if fit not in ("both", "intercept"):
        raise broken(
            "A recalibration must fit both or intercept", f"{fit!r} came", "Choose one of these."
        )
    check_apart(model, bags, trained_on)
    kind = bags.kind
    score = checked_scores(scores_of(model, bags.X, kind, scale), bags)
    g = predict(score, chosen_losses(None, kind)[0], kind)
    judge = Judge(empty_sums(bags, g))
    centre, spread = _scale_of(score, kind, fit)
    design, offset = _design((score - centre) / spread, kind, fit)
    theta, curvature = _solve(design, offset, g, judge, bags)
    gradient = [
        _gap(design[..., q], _predict(design, offset, theta, kind), g, judge, bags)
        for q in range(len(theta))
    ]
    parts = -np.einsum(
        "pq,qij->pij", np.linalg.inv(curvature), np.stack([one.parts() for one in gradient])
    )
    if (
        fit == "both"
    ):  # back to the scores as they came: a (z - c) / s + b = (a / s) z + (b - a c / s)
        back = np.eye(len(theta))
        back[0, 0], back[1:, 0] = 1 / spread, -centre / spread
        theta, parts = back @ theta, np.einsum("pq,qij->pij", back, parts)
    told = [
        interval(Estimated(float(t), *part), judge, level=level)
        for t, part in zip(theta, parts, strict=True)
    ]
    nothing = np.zeros(len(theta))
    nothing[0] = fit == "both"
    count = int(bags.observed.sum())
    p_value = _hotelling(theta - nothing, parts[:, 0], count)
    slope = told.pop(0) if fit == "both" else Estimate(1.0, 0.0, 1.0, 1.0)
    return Recalibration(slope, tuple(told), p_value, kind, count, _marks(bags), scale)


def _marks(bags: Bags) -> np.ndarray | None:
    return None if bags.names is None else marks(bags)


def _hotelling(difference: np.ndarray, psi: np.ndarray, count: int) -> float:
    """p-value of a difference of 0, psi being what each bag contributes to its error."""
    from scipy.special import fdtrc

    q = len(difference)
    if count <= q:
        return 1.0
    squared = (
        difference @ np.linalg.lstsq(psi @ psi.T * count / (count - 1), difference, rcond=None)[0]
    )
    return float(fdtrc(q, count - q, squared * (count - q) / (q * (count - 1))))


def _scale_of(score: np.ndarray, kind: Kind, fit: str) -> tuple[float, float]:
    """What to subtract from scores and divide them by, so that Newton's steps have the right length
    for any scale."""
    if fit == "intercept" or not score.std() > 0:
        return 0.0, 1.0
    return (0.0 if kind == "histogram" else float(score.mean())), float(score.std())


def _design(score: np.ndarray, kind: Kind, fit: str) -> tuple[np.ndarray, np.ndarray]:
    """(instances, components, parameters): what each parameter adds to each score; and what is
    added for free."""
    z = score if kind == "histogram" else score[:, None]
    free = np.eye(z.shape[1])[:, : z.shape[1] - 1] if kind == "histogram" else np.ones((1, 1))
    intercepts = np.broadcast_to(free, (len(z), *free.shape))
    if fit == "intercept":
        return intercepts, z
    return np.concatenate([z[..., None], intercepts], axis=2), np.zeros_like(z)


def _predict(design: np.ndarray, offset: np.ndarray, theta: np.ndarray, kind: Kind) -> np.ndarray:
    eta = offset + design @ theta
    return predict(eta if kind == "histogram" else eta[:, 0], chosen_losses(None, kind)[0], kind)


def _gap(column: np.ndarray, h: np.ndarray, g: np.ndarray, judge: Judge, bags: Bags) -> Estimated:
    """E[(h - y) column], the slope of the loss along one parameter, as the bags estimate it."""
    f = (
        -column
        if bags.kind == "histogram"
        else np.stack([(h * column)[:, 0], -column[:, 0]], axis=1)
    )
    T, S, _ = loss_sums(f, g, np.zeros_like(g), bags)
    if bags.kind == "histogram":
        T = T + np.bincount(bags.bag, weights=np.sum(h * column, axis=1), minlength=len(bags))
    return judge.expectation(T, S)


def _solve(
    design: np.ndarray, offset: np.ndarray, g: np.ndarray, judge: Judge, bags: Bags
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method with steps of at most 2: the objective is convex. No answer lies where
    nothing is in doubt."""
    wanted = np.array(
        [_gap(design[..., q], 0 * g, g, judge, bags).value for q in range(design.shape[2])]
    )
    theta = np.zeros(design.shape[2])
    for _ in range(STEPS):
        slope, curvature = _derivatives(design, offset, theta, wanted, bags.kind)
        step = np.linalg.lstsq(curvature, slope, rcond=None)[0]
        step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        theta = theta - step
        if np.abs(step).max() < 1e-10 or not np.isfinite(theta).all():
            break
    slope, curvature = _derivatives(design, offset, theta, wanted, bags.kind)
    flat = np.abs(curvature).max() < 1e-9 or np.linalg.cond(curvature) > 1e12
    if not np.isfinite(theta).all() or np.abs(slope).max() > 1e-6 or flat:
        both = design.shape[2] > (design.shape[1] - 1 if bags.kind == "histogram" else 1)
        told, remedy = (
            ("slope and intercept", ", or fit='intercept'") if both else ("intercept", "")
        )
        raise broken(
            "A recalibration must have a finite answer",
            (
                f"these {int(bags.observed.sum())} bags estimate label means that no {told} can "
                "meet, or the scores are all the same"
            ),
            f"Give more bags{remedy}.",
        )
    return theta, curvature


def _derivatives(
    design: np.ndarray, offset: np.ndarray, theta: np.ndarray, wanted: np.ndarray, kind: Kind
) -> tuple[np.ndarray, np.ndarray]:
    h = _predict(design, offset, theta, kind)
    return np.einsum("nc,ncq->q", h, design) / len(h) + wanted, _curvature(design, h, kind)


def _curvature(design: np.ndarray, h: np.ndarray, kind: Kind) -> np.ndarray:
    """Second derivatives of the mean loss: variance of the label under the prediction, between
    directions."""
    if kind == "histogram":
        mean = np.einsum("nc,ncq->nq", h, design)
        return (np.einsum("nc,ncq,ncr->qr", h, design, design) - mean.T @ mean) / len(h)
    variance = h[:, 0] if kind == "total" else h[:, 0] * (1 - h[:, 0])
    flat = design[:, 0]
    return (flat * variance[:, None]).T @ flat / len(h)
