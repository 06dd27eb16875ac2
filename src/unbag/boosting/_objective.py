"""Bags and current scores in, gradient and hessian of each instance out; see `unbag.boosting` for
the formulas."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from unbag import losses, weights
from unbag._arrays import blocks, sum_by
from unbag._rules import broken, one_of, refuse, rows
from unbag.bags import Bags, Kind, Reports, as_components
from unbag.methods import BOUNDED, LINEAR, METHODS, Method

METHODS_OF_BOOSTING = tuple(name for name in LINEAR if METHODS[name].leave_one_out)


class Curve(NamedTuple):
    """A loss as trees see it: score -> prediction h, then the gradient at h for a missing amount u
    (the target is h + u), and the curvature."""

    predict: Callable[[Any], Any]
    gradient: Callable[[Any, Any], Any]
    curvature: Callable[[Any], Any]
    priors: tuple[float, float] = (-np.inf, np.inf)  # between which it can start


def _variance(h: Any) -> Any:
    return h * (1 - h)


def _plain(h: Any, u: Any) -> Any:
    """The gradient of a loss whose link is canonical: log, cross entropy, Poisson."""
    return -u


def _square_gradient(h: Any, u: Any) -> Any:
    return -2 * _variance(h) * u


def _square_curvature(h: Any) -> Any:
    return 2 * _variance(h) ** 2


def _brier_gradient(h: Any, u: Any) -> Any:
    return -2 / h.shape[-1] * h * (u - np.sum(h * u, axis=-1, keepdims=True))


def _brier_curvature(h: Any) -> Any:
    return 2 / h.shape[-1] * h**2 * (1 - 2 * h + np.sum(h**2, axis=-1, keepdims=True))


def _softmax(score: Any) -> Any:
    from scipy.special import softmax

    return softmax(score, axis=-1)


def _identity(value: Any) -> Any:
    return value


def _double(h: Any, u: Any) -> Any:
    return -2 * u


def _two(h: Any) -> Any:
    return np.full_like(h, 2)


# the losses for each kind of report, the default first
CURVES: dict[Kind, dict[str, Curve]] = {
    "binary": {
        "square": Curve(expit, _square_gradient, _square_curvature, (0, 1)),
        "log": Curve(expit, _plain, _variance, (0, 1)),
    },
    "total": {
        "poisson": Curve(np.exp, _plain, _identity, (0, np.inf)),
        "square": Curve(_identity, _double, _two),
    },
    "histogram": {
        "brier": Curve(_softmax, _brier_gradient, _brier_curvature, (0, 1)),
        "cross_entropy": Curve(_softmax, _plain, _variance, (0, 1)),
    },
}


def level_shift(score: np.ndarray, mean: Any, kind: Kind, *, steps: int = 30) -> np.ndarray:
    """What to add to scores so that the mean prediction is this mean: a number, or one per class.

    Trees that fit residuals of bags lose the level, slowly and for good, while the mean of all
    reports is the best known number there is.

    Parameters
    ----------
    score : numpy.ndarray
        Logits, log rates or class scores of rows.
    mean : float or numpy.ndarray
        Inside the range of labels.
    kind : {"binary", "total", "histogram"}
        What the scores mean.
    steps : int
        Of Newton's method, at most.

    >>> float(level_shift(np.array([1.0, 3.0]), 0.5, "binary").round(6))
    -2.0
    """
    predict = next(iter(CURVES[kind].values())).predict
    shift = np.zeros(np.shape(mean))
    for _ in range(steps):
        total, slope = np.zeros(shift.shape), 0.0
        for some in blocks(len(score)):
            h = predict(score[some] + shift)
            total += h.sum(axis=0)
            if kind == "binary":
                slope += float(_variance(h).sum())
        now = total / len(score)
        if kind == "binary":
            change = np.clip((mean - now) / max(slope / len(score), 1e-12), -1.0, 1.0)
        else:
            change = np.log(mean / np.maximum(now, 1e-300))
        shift = shift + change
        if np.abs(change).max() < 1e-12:
            break
    return shift


# a curvature is at least this part of that at the prior, so that sure leaves make no leaps
FLOOR = 0.1


class BagObjective:
    """A custom objective for LightGBM (`params={"objective": it}`) and XGBoost (`xgboost.train(...,
    obj=it)`).

    The booster's data set must hold the instances in the order of the bags' rows (take `bags.X`);
    its labels are not looked at. Boost from `start`, the score of the prior: LightGBM's
    `init_score` (which its predictions leave out), XGBoost's `base_score`. `fit_lightgbm` and
    `fit_xgboost` do all this and choose the number of rounds.

    Parameters
    ----------
    bags : Bags or Reports
        With reports of any kind. Of reports alone only what is said by bag can be asked:
        `residual_weights`, `start` and `unit`.
    method : {"anchored", "upm"}
        "anchored" has the current prediction as the reference.
    loss : str, optional
        "square" or "log" for binary reports, "poisson" or "square" for totals, "brier" or
        "cross_entropy" for histograms; by default the first of these.
    share : float
        Of the bags (of each stratum) that a call listens to; below 1 the calls are counted, and
        each draws anew.
    seed : int
        Of these draws.

    >>> objective = BagObjective(Bags(np.array([0, 0, 1, 1]), np.array([0.5, 0.0])), loss="log")
    >>> gradient, hessian = objective(np.full(4, objective.start))
    >>> gradient.round(3), hessian.round(4)
    (array([-1., -1.,  1.,  1.]), array([0.1875, 0.1875, 0.1875, 0.1875]))
    """

    def __init__(
        self,
        bags: Bags | Reports,
        *,
        method: Method = "anchored",
        loss: str | None = None,
        share: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.loss = checked_loss(bags.kind, method, loss)
        if not 0 < share <= 1:
            rule = "A share of the bags must lie in (0, 1]"
            raise broken(rule, f"{share} given", "Use 1 to listen to all of them.")
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
        self.bags: Any = bags
        if isinstance(bags, Bags):
            self.bags = bags.bare()  # LightGBM copies its objective
        self.method, self.share, self.seed, self.calls = method, share, seed, 0
        self._stratum = bags.stratum_or_zero
        self.curve, prior = CURVES[bags.kind][self.loss], np.asarray(bags.overall_prior, float)
        low, high = self.curve.priors
        if not np.all((low < prior) & (prior < high)):
            raise broken(
                f"A prior to boost from must lie inside {self.curve.priors}",
                f"{np.ravel(prior)[np.argmin((low < prior) & (prior < high))]:.6g} given",
                "Give more bags, or the prior if it is known.",
            )
        start = losses.LOSSES[self.loss].trivial_score(prior, kind=bags.kind)
        self.start = np.asarray(start) if bags.kind == "histogram" else float(start)
        self.unit = float(np.mean(self.curve.curvature(prior)))
        self.prior, self._bag_weight = prior, None
        if bags.noise is not None:  # noisier reports weigh less; counts vary as Poisson counts do
            of_one = abs(prior) if bags.kind == "total" else _variance(prior)
            about = {"variance": float(np.mean(of_one)), "stratum": bags.stratum}
            self._bag_weight = weights.noise_weights(bags.size, bags.noise, **about)

    def __call__(self, score: Any, data: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """What a booster asks for in each round; its data set is not looked at."""
        self.calls += 1
        return self.derivatives(score, draw=self.calls)

    def derivatives(self, score: Any, *, draw: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and hessian of N times the estimated loss, with the weights held fixed: an
        instance counts as 1.

        Parameters
        ----------
        score : array
            Of each instance.
        draw : int, optional
            The number of the draw of bags that counts; by default all bags do.
        """
        h = self.predict(score)
        if self.method == "anchored":
            u, s = len(h) * self.residual_weights(self._means(h), draw)[self.bags.bag], 1.0
        else:
            t, s = weights.pseudo_labels(len(h) * self.weights(score, draw=draw))
            u = t - h
        return s * self.curve.gradient(h, u), s * self.curvature(h)

    def curvature(self, h: np.ndarray) -> np.ndarray:
        """Of each instance at its prediction, at least a part of that at the prior."""
        return np.maximum(self.curve.curvature(h), FLOOR * self.unit)

    def weights(self, score: Any, *, draw: int | None = None) -> np.ndarray:
        """Signed weights of each instance, from all bags or from the draw of a number.

        Parameters
        ----------
        score : array
            Of each instance.
        draw : int, optional
            The number of the draw of bags that counts; by default all bags do.
        """
        b, h = self.bags, self.predict(score)
        if self.method == "upm":
            weight = self._weight(draw)
            return weights.upm(b.size, *b.components(), weight=weight, stratum=b.stratum)[b.bag]
        W = self.residual_weights(self._means(h), draw)[b.bag]
        if b.kind == "histogram":
            return h / len(h) + W
        return as_components(h) / len(h) + np.stack([np.zeros_like(W), W], axis=1)

    def _means(self, h: np.ndarray) -> np.ndarray:
        """The mean prediction of each bag, (bags, classes)."""
        b = self.bags
        return sum_by(b.bag, h.reshape(len(h), -1), len(b)) / b.size[:, None]

    def residual_weights(self, mean: np.ndarray, draw: int | None) -> np.ndarray:
        """What `unbag.weights.anchored` adds to h / N, by bag: GeneralUPM of the residuals.

        The first of the components (1, y) has no residual, so only the others are reckoned with,
        and no array of the size of the data is made but the prediction.

        Parameters
        ----------
        mean : numpy.ndarray
            The mean prediction of each bag, (bags, classes).
        draw : int, optional
            The number of the draw of bags that counts; by default all bags do.
        """
        b = self.bags
        k = b.size[:, None].astype(float)
        stratum, strata = self._stratum, b.strata
        instances = sum_by(stratum, k, strata)
        centre = sum_by(stratum, k * mean, strata) / np.where(instances > 0, instances, 1.0)
        prior = np.reshape(b.prior, (strata, -1)) - centre
        if b.stratum is None:
            prior = prior[0]
        residual, weight = b.report.reshape(len(b), -1) - mean, self._weight(draw)
        W = weights.upm(b.size, residual, prior, weight=weight, stratum=b.stratum)
        if b.kind == "histogram":
            return W
        return W[:, 0]

    def _weight(self, draw: int | None) -> np.ndarray | None:
        """Of each bag: by its noise, or in this draw, in which two of each stratum stay."""
        if draw is None or self.share == 1:
            return self._bag_weight
        s = self._stratum
        u = np.random.default_rng([self.seed, draw]).uniform(size=len(s))
        if self.bags.stratum is None:
            count = max(2, ceil(self.share * len(s)))
            stays = u <= np.partition(u, count - 1)[count - 1]
        else:
            order, count = np.lexsort((u, s)), np.bincount(s)
            place = np.empty_like(s)
            place[order] = np.arange(len(s)) - (np.cumsum(count) - count)[s[order]]
            stays = place < np.maximum(2, np.ceil(self.share * count))[s]
        weight = stays.astype(float)
        if self._bag_weight is not None:
            weight = weight * self._bag_weight
        return weight / np.bincount(s, weights=weight)[s]

    def predict(self, score: Any) -> np.ndarray:
        """Scores of the instances as probabilities or mean counts."""
        return self.curve.predict(self._checked(score))

    def _checked(self, score: Any) -> np.ndarray:
        rows(len(score), len(self.bags.bag), thing="score", of="instance")
        score = np.asarray(score, float)
        if self.bags.kind == "histogram":
            return score
        return score.ravel()

    def value(self, score: Any) -> float:
        """The loss as these bags estimate it: without bias, if they had no part in making the
        scores."""
        components = losses.LOSSES[self.loss].components(self._checked(score), kind=self.bags.kind)
        return float(np.sum(self.weights(score) * components))


def checked_loss(kind: Kind, method: str, loss: str | None) -> str:
    """The loss to use, after a look at the choices that belong together."""
    one_of("A method of boosting", method, METHODS_OF_BOOSTING)
    if loss is not None and loss not in CURVES[kind]:
        rule = f"A loss to boost with must be {' or '.join(CURVES[kind])} for {kind} reports"
        raise broken(rule, f"{loss!r} given", "Leave it out to take the first.")
    if kind == "histogram" and method == "upm":
        raise broken(
            "Histograms must be boosted by the anchored method", "upm given", "Leave it out."
        )
    return loss or BOUNDED[kind]
