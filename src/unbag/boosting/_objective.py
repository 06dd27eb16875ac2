"""Bags and current scores in, gradient and hessian of each instance out; see `unbag.boosting` for
the formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from unbag import losses, weights
from unbag._arrays import softplus
from unbag._rules import broken, refuse, rows
from unbag.bags import Bags, Kind, as_components
from unbag.methods import BOUNDED, LINEAR, METHODS, Method, check_method

METHODS_OF_BOOSTING = tuple(name for name in LINEAR if METHODS[name].leave_one_out)


class Curve(NamedTuple):
    """A loss as trees see it: score -> prediction, then the factors of the residual and of the
    sample weight."""

    predict: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    curvature: Callable[[Any], Any]
    priors: tuple[float, float] = (-np.inf, np.inf)  # between which it can start


_sigmoid = lambda z: np.exp(-softplus(-z))
_variance = lambda h: h * (1 - h)

CURVES: dict[Kind, dict[str, Curve]] = {
    "binary": {
        "square": Curve(
            _sigmoid, lambda h: 2 * _variance(h), lambda h: 2 * _variance(h) ** 2, (0, 1)
        ),
        "log": Curve(_sigmoid, np.ones_like, _variance, (0, 1)),
    },
    "total": {
        "poisson": Curve(np.exp, np.ones_like, lambda h: h, (0, np.inf)),
        "square": Curve(lambda z: z, lambda h: np.full_like(h, 2), lambda h: np.full_like(h, 2)),
    },
}
"""The losses for each kind of report, the default first."""

FLOOR = 0.1
"""A curvature is at least this part of that at the prior, so that leaves of sure predictions make no leaps."""


class BagObjective:
    """A custom objective for LightGBM (`params={"objective": it}`) and XGBoost (`xgboost.train(...,
    obj=it)`).

    The booster's data set must hold the instances in the order of the bags' rows (take `bags.X`);
    its labels are not looked at. Boost from `start`, the score of the prior: LightGBM's
    `init_score` (which its predictions leave out), XGBoost's `base_score`. `fit_lightgbm` and
    `fit_xgboost` do all this and choose the number of rounds.

    Parameters
    ----------
    bags : with binary reports or totals.
    method : "anchored", with the current prediction as the reference, or "upm".
    loss : "square" or "log" for binary reports, "poisson" or "square" for totals; by default the
        first of these.
    share : of the bags (of each stratum) that a call listens to; below 1 the calls are counted, and
        each draws anew.
    seed : of these draws.

    >>> objective = BagObjective(Bags(np.array([0, 0, 1, 1]), np.array([0.5, 0.0])), loss="log")
    >>> gradient, hessian = objective(np.full(4, objective.start))
    >>> gradient.round(3), hessian.round(4)
    (array([-1., -1.,  1.,  1.]), array([0.1875, 0.1875, 0.1875, 0.1875]))
    """

    def __init__(
        self,
        bags: Bags,
        *,
        method: Method = "anchored",
        loss: str | None = None,
        share: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.loss = checked_loss(bags.kind, method, loss)
        if not 0 < share <= 1:
            raise broken(
                "A share of the bags must lie in (0, 1]",
                f"{share} came",
                "Use 1 to listen to all of them.",
            )
        refuse(
            (
                "A bag to boost from must have an observed report, because its rows are the rows "
                "of the booster's data"
            ),
            ~bags.observed,
            thing="bag",
            given=bags.status,
            remedy="Give bags.reported(), and train on its X.",
        )
        self.bags = replace(bags, X=None)  # LightGBM copies its objective
        self.method, self.share, self.seed, self.calls = method, share, seed, 0
        self.curve, prior = CURVES[bags.kind][self.loss], _prior_of_all(bags)
        if not self.curve.priors[0] < prior < self.curve.priors[1]:
            raise broken(
                f"A prior to boost from must lie inside {self.curve.priors}",
                f"{prior:.6g} came",
                "Give more bags, or the prior if it is known.",
            )
        self.start = float(losses.LOSSES[self.loss].trivial_score(prior, kind=bags.kind))
        self.unit = float(self.curve.curvature(np.float64(prior)))
        self._bag_weight = _noise_weights(bags, prior)

    def __call__(self, score: Any, data: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """What a booster asks for in each round; its data set is not looked at."""
        self.calls += 1
        return self.derivatives(score, draw=self.calls)

    def derivatives(self, score: Any, *, draw: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and hessian of N times the estimated loss, with the weights held fixed: an
        instance counts as 1."""
        W, h = self.weights(score, draw=draw), self.predict(score)
        t, s = weights.pseudo_labels(len(h) * W)
        return s * self.curve.slope(h) * (h - t), s * np.maximum(
            self.curve.curvature(h), FLOOR * self.unit
        )

    def weights(self, score: Any, *, draw: int | None = None) -> np.ndarray:
        """Signed weights of each instance, from all bags or from the draw of this number."""
        b, h = self.bags, self.predict(score)
        bag_weight = self._bag_weight if draw is None or self.share == 1 else self._drawn(draw)
        if self.method == "upm":
            return weights.upm(b.size, *b.components(), weight=bag_weight, stratum=b.stratum)[b.bag]
        return weights.anchored(
            b.bag, b.size, *b.components(), as_components(h), weight=bag_weight, stratum=b.stratum
        )

    def predict(self, score: Any) -> np.ndarray:
        """Scores of the instances as probabilities or mean counts."""
        rows(np.size(score), len(self.bags.bag), thing="score", of="instance")
        return self.curve.predict(np.asarray(score, float).ravel())

    def value(self, score: Any) -> float:
        """The loss as these bags estimate it: without bias, if they had no part in making the
        scores."""
        components = losses.LOSSES[self.loss].components(
            np.asarray(score, float).ravel(), kind=self.bags.kind
        )
        return float(np.sum(self.weights(score) * components))

    def _drawn(self, draw: int) -> np.ndarray:
        """Bag weights with 0 for the bags that are left out; at least two of each stratum stay."""
        s = np.zeros(len(self.bags), int) if self.bags.stratum is None else self.bags.stratum
        order = np.lexsort((np.random.default_rng([self.seed, draw]).uniform(size=len(s)), s))
        count = np.bincount(s)
        place = np.empty_like(s)
        place[order] = np.arange(len(s)) - (np.cumsum(count) - count)[s[order]]
        stays = place < np.maximum(2, np.ceil(self.share * count))[s]
        weight = stays * (1.0 if self._bag_weight is None else self._bag_weight)
        return weight / np.bincount(s, weights=weight)[s]


def checked_loss(kind: Kind, method: str, loss: str | None) -> str:
    """The loss to use, after a look at the choices that belong together."""
    if kind not in CURVES:
        raise broken(
            "Reports to boost from must be binary or total, because each instance has one score",
            f"{kind} came",
            "Boost each class against the rest, with its share as the proportion.",
        )
    check_method(method, among=METHODS_OF_BOOSTING, thing="A method of boosting")
    if loss is not None and loss not in CURVES[kind]:
        raise broken(
            f"A loss to boost with must be {' or '.join(CURVES[kind])} for {kind} reports",
            f"{loss!r} came",
            "Leave it out to take the first.",
        )
    return loss or BOUNDED[kind]


def _prior_of_all(bags: Bags) -> float:
    return float(
        bags.prior
        if bags.stratum is None
        else np.average(bags.prior[bags.stratum], weights=bags.size)
    )


def _noise_weights(bags: Bags, prior: float) -> np.ndarray | None:
    """Noisier reports weigh less; counts are taken to vary as Poisson counts do."""
    if bags.noise is None:
        return None
    variance = _variance(prior) if bags.kind == "binary" else abs(prior)
    return weights.noise_weights(bags.size, bags.noise, variance=variance, stratum=bags.stratum)
