"""The quantities that the theorems ask for, measured on loss components or scores."""

from __future__ import annotations

from math import inf, log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken, one_of
from unbag.bags import Kind
from unbag.losses import Loss


class ModelSpread(NamedTuple):
    """How far apart the models are: maxima over the models, relative to the best one.

    Parameters
    ----------
    f1, f2 : float or array
        Var(f_i(h(x)) - f_i(best(x))).
    mean : float or array
        (E[f2(h(x)) - f2(best(x))])^2.
    bag : float or array, optional
        The variance over bags of the difference of bag losses, where it was measured. Without it
        the proof's bound, 9.5 f2 and a little more, is taken: a worst case.
    """

    f1: Any
    f2: Any
    mean: Any
    bag: Any = None


class HistogramSpread(NamedTuple):
    """The same for full histograms.

    Parameters
    ----------
    largest : float or array
        E[max_r (difference of component r)^2].
    total : float or array
        The sum over r of the variances of the differences.
    bag : float or array, optional
        The variance over bags of the difference of bag losses, where it was measured.
    """

    largest: Any
    total: Any
    bag: Any = None


def bounded_spread(
    loss: Loss, scores: tuple[float, float] = (-inf, inf), *, kind: Kind = "binary"
) -> ModelSpread:
    """The largest spread that any two models with scores in a range can have.

    It makes the tournament's bound a guarantee, whatever the tails. The difference of two
    components lies within their range R, so that neither its variance nor its squared mean exceeds
    R^2. Infinite where a component has no bound, as the log loss of scores without one.

    Parameters
    ----------
    loss : Loss
        Its components must be monotone in the score on either side of 0, as those of all shipped
        losses are.
    scores : tuple of float
        The lowest and the highest score.
    kind : {"binary", "total"}
        Of the reports.

    >>> from unbag import losses
    >>> bounded_spread(losses.square)
    ModelSpread(f1=1.0, f2=4.0, mean=4.0, bag=None)
    >>> bounded_spread(losses.log, (-2, 2)).f2
    16.0
    """
    _refuse_histograms(kind)
    low, high = scores
    if not low < high:
        raise broken(
            "A range of scores must go from low to high", f"{scores} given", "Use (-5, 5), say."
        )
    with np.errstate(all="ignore"):
        ends = loss.components(np.array([low, np.clip(0.0, low, high), high]), kind=kind)
        width = ends.max(axis=0) - ends.min(axis=0)
    f1, f2 = (float(np.nan_to_num(w, nan=inf, posinf=inf)) ** 2 for w in width)
    return ModelSpread(f1, f2, f2)


def _refuse_histograms(kind: Kind) -> None:
    """Constants of f1 and f2 exist where there is one score per instance."""
    one_of(
        "A kind of report with known constants",
        kind,
        ("binary", "total"),
        "The paper has none for full histograms.",
    )


def bag_variance(f2: float, *, cap: float = 1.0) -> float:
    """Lemma 3.1: the variance of a bag's loss is at most 5/2 E[f2(h(x))^2], at any bag size.

    Parameters
    ----------
    f2 : float
        E[f2(h(x))^2] of the model.
    cap : float
        The largest label, whose square is the price of totals of counts (Appendix C.2).

    >>> bag_variance(2.0), bag_variance(2.0, cap=10)
    (5.0, 500.0)
    """
    if not f2 >= 0:
        rule = "f2, the mean of a square, must not be negative"
        raise broken(rule, f"{f2:g} given", "Give E[f2(h(x))^2] of a model.")
    return 2.5 * f2 * cap**2


def histogram_variance(
    classes: int, *, bound: float | None = None, sigma: float | None = None
) -> float:
    """Bound on the variance of a bag's loss for full histograms.

    For components bounded by `bound`: 64 bound^2 (Lemma C.1). For light tails, components that are
    sub-Gaussian with parameter `sigma`: 24 sigma^2 (log classes + 2) (Appendix C.4).

    Parameters
    ----------
    classes : int
        How many.
    bound : float, optional
        Largest size of a component.
    sigma : float, optional
        Of components with light tails, instead of a bound.

    >>> histogram_variance(10, bound=1.0), round(histogram_variance(10, sigma=1.0), 1)
    (64.0, 103.3)
    """
    if (bound is None) == (sigma is None):
        raise broken(
            "Either bound or sigma must be given",
            "both or neither given",
            "Bounded losses have a bound.",
        )
    if bound is not None:
        return 64.0 * bound**2
    return 24.0 * (sigma or 0.0) ** 2 * (log(classes) + 2)


class Noise(NamedTuple):
    """What the error of an estimate from noisy bags depends on.

    Parameters
    ----------
    label : float
        Var y, p (1 - p) for binary labels (Var(y - g) with a reference g).
    report : float
        The variance of the noise on a bag's count.
    mean_f2, var_f2 : float
        Mean and variance of f2 over the instances.
    """

    label: float
    report: float
    mean_f2: float
    var_f2: float


def estimate_variance(instances: int, size: float, noise: Noise) -> float:
    """Variance of a loss that is estimated from bags.

        [(k Var y + s2) Var f2 + (E f2)^2 (Var y + s2 / k)] / n

    Parameters
    ----------
    instances : int
        How many, n.
    size : float
        Of the bags, k.
    noise : Noise
        Of labels and reports.
    """
    spread = (size * noise.label + noise.report) * noise.var_f2
    return (spread + noise.mean_f2**2 * (noise.label + noise.report / size)) / instances


def interval_width(instances: int, size: float, noise: Noise, *, confidence: float = 0.95) -> float:
    """Expected width of the interval around a loss estimated from bags.

    Parameters
    ----------
    instances : int
        How many.
    size : float
        Of the bags.
    noise : Noise
        Of labels and reports.
    confidence : float
        Of the interval.

    >>> round(interval_width(32000, 64, Noise(0.18, 0.0, 1.2, 2.0)), 3)
    0.106
    """
    quantile = NormalDist().inv_cdf(0.5 + confidence / 2)
    return 2 * quantile * sqrt(estimate_variance(instances, size, noise))


def best_bag_size(noise: Noise) -> float:
    """The bag size with the narrowest interval: k* = s |E f2| / sqrt(Var y Var f2), at least 1.

    Infinite where larger bags are ever better, as nothing but noise varies.

    >>> best_bag_size(Noise(label=0.16, report=64.0, mean_f2=2.0, var_f2=4.0))
    20.0
    """
    gained, lost = sqrt(noise.report) * abs(noise.mean_f2), sqrt(noise.label * noise.var_f2)
    if gained == 0:
        return 1.0
    if lost == 0:
        return inf
    return max(1.0, gained / lost)


class Sandwich(NamedTuple):
    """The tight constants of the fast-rate condition (equation (6) of the paper).

    Parameters
    ----------
    c1, C1 : float
        Lower and upper constant of the first component; see `sandwich`.
    c2, C2 : float
        Of the second component.
    """

    c1: float
    C1: float
    c2: float
    C2: float


def sandwich(
    loss: Loss, scores: tuple[float, float] = (-inf, inf), *, kind: Kind = "binary"
) -> Sandwich:
    """The tight constants for a loss with scores in a range.

    For all scores a, b in it and i = 1, 2,

        c_i / 2 d_i^2 <= loss(a, eta_b) - loss(b, eta_b) <= C_i / 2 d_i^2,   d_i = f_i(a) - f_i(b)

    where eta_b is the probability (the mean count of totals) whose best score is b. Found on a
    grid, to about three digits. Square loss: c1 = c2 = C2 = 1/2 (the paper's c2 = C2 = 2 is a
    slip). Log loss with scores in [-M, M]: c2 = sigmoid'(M), C2 = 1/4, c1 = exp(-M), C1 = exp(M).
    Poisson loss of totals: c2 = exp(-M), C2 = exp(M). An upper constant that does not exist is
    infinite; a lower one 0.

    Parameters
    ----------
    loss : Loss
        A proper loss: its best score for a mean predicts that mean.
    scores : tuple of float
        The lowest and the highest score.
    kind : {"binary", "total"}
        Of the reports.

    >>> from unbag import losses
    >>> [round(c, 3) for c in sandwich(losses.log, (-2, 2))]
    [0.135, 7.389, 0.105, 0.25]
    """
    _refuse_histograms(kind)
    low, high = max(scores[0], -35.0), min(scores[1], 35.0)
    if not low < high:
        raise broken(
            "A range of scores must go from low to high", f"{scores} given", "Use (-5, 5), say."
        )
    p = np.linspace(1 / (1 + np.exp(-low)), 1 / (1 + np.exp(-high)), 401)[1:-1]
    inner = np.log(p / (1 - p))
    b = np.unique(np.concatenate([np.linspace(low, high, 400), inner]))
    near = np.clip(b + np.where(b < high - 1e-4, 1e-4, -1e-4), low, high)
    pairs = [np.meshgrid(b, b, indexing="ij"), (near, b)]
    ratios = [
        np.concatenate(values)
        for values in zip(*(_ratios(loss, a, b, kind) for a, b in pairs), strict=True)
    ]
    # beyond these the grid shows rounding, or a constant that does not exist
    lowest = [float(np.where(r.min() > 1e-9, r.min(), 0.0)) for r in ratios]
    highest = [float(np.where(r.max() > 1e9, inf, r.max())) for r in ratios]
    return Sandwich(lowest[0], highest[0], lowest[1], highest[1])


def _ratios(loss: Loss, a: np.ndarray, b: np.ndarray, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """2 (loss(a, eta_b) - loss(b, eta_b)) / d_i^2 for i = 1, 2, where rounding leaves it."""
    a, b = np.ravel(a), np.ravel(b)
    f, g = (loss.components(z, kind=kind) for z in (a, b))
    eta = loss.form(kind).link.prediction(b, kind)
    excess = 2 * (f[:, 0] - g[:, 0] + eta * (f[:, 1] - g[:, 1]))
    scale = 1e-15 * (1 + np.abs(f).max(axis=1))
    if (excess < -1e4 * scale).any():
        raise broken(
            "The sandwich must have a proper loss, best where it predicts the mean label",
            f"{loss.name} is not",
            "Use log or square, or poisson for totals.",
        )
    square = (f - g) ** 2
    clear = (excess > 1e4 * scale)[:, None] & (square > 0)
    first, second = (excess[clear[:, i]] / square[clear[:, i], i] for i in (0, 1))
    return first, second
