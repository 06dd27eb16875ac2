"""Spread of the models in, number of bags or regret out: every theorem of the paper with its
constants.

Everything rests on one number, C (`deviation`): with probability 1 - delta every pairwise Q of the
tournament lies within C of the true difference of losses. If C < beta / 2, a model with regret beta
or more has Q(h, best) >= beta - C > beta / 2 and is eliminated by the best one, and the best one,
Q(best, h) <= C < beta / 2, is not. (The paper asks for C <= beta / 16, which this argument shows to
be more than is needed.)

Constants are those of the proofs, with two corrections: each event gets its share of delta, and in
the variance of the plug-in estimator the errors of the means count k times (the paper drops the
factor k there; its order of magnitude survives). For full histograms the paper hides constants: we
take the visible ones (4 * 64, of which it drops the 4, and 32), and the result is an order of
magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf, log, sqrt
from typing import Any

import numpy as np

from unbag._rules import broken
from unbag.medians import group_count
from unbag.planning._curvature import Sandwich
from unbag.planning._moments import HistogramSpread, Spread

LARGEST = 1e15


@dataclass(frozen=True)
class Problem:
    """A tournament to plan.

    Parameters
    ----------
    models : how many.
    size : of the bags (the mean size of the smaller half when sizes vary).
    spread : measured by a first tournament or by `measure_spread`, or a bound.
    delta : the chance of failure that may remain, for the whole tournament.
    means_size : mean size of the larger half of the bags when sizes vary; the split is then in two.
    prior : an upper bound on E y / cap; the paper takes 1.
    cap : the largest label: 1 for binary, the largest count for totals (this is the c^2 of the
        total case).
    report : the variance of a bag's report (summed over classes), where labels have no cap or
        reports carry noise. The prior is then a median of means too; without it, exact labels
        between 0 and cap are taken for granted. Give the measured `spread.bag` with it: the proof's
        bound knows no noise.
    classes : number of classes for full histograms.
    """

    models: int
    size: float
    spread: Spread | HistogramSpread
    delta: float = 0.05
    means_size: float | None = None
    prior: float = 1.0
    cap: float = 1.0
    classes: int | None = None
    report: float | None = None

    @property
    def parts(self) -> int:
        """Into how many equal parts the bags are split."""
        return 3 if self.means_size is None else 2

    @property
    def share(self) -> float:
        """Each event's share of delta."""
        return self.delta / events(self.models, components=self.classes or 2)

    def deviation(self, m: float) -> float:
        """How far any Q can be from the true difference of losses when each part has m bags."""
        if isinstance(self.spread, HistogramSpread):
            k, c = self.means_size or self.size, self.classes or 2
            return float(
                histogram_deviation(
                    self.spread, m, size=k, share=self.share, classes=c, report=self.report
                )
            )
        sizes, labels = (
            {"size": self.size, "means_size": self.means_size},
            {"cap": self.cap, "report": self.report},
        )
        return float(
            deviation(self.spread, m, **sizes, share=self.share, prior=self.prior, **labels)
        )


def events(models: int, *, components: int) -> int:
    """How many estimates must all be good: for each pair its Q and its mean components, and the
    prior.

    >>> events(12, components=2)
    199
    """
    return models * (models - 1) // 2 * (components + 1) + (1 if components == 2 else components)


def deviation(
    spread: Spread,
    m: float,
    *,
    size: float,
    share: float,
    means_size: float | None = None,
    prior: float = 1.0,
    cap: float = 1.0,
    report: float | None = None,
) -> Any:
    """C: how far Q can be from the true difference of losses when each part of the split has m
    bags.

        C = sigma sqrt(32 L / m) + e_f1 + p e_f2 + |E2| e_p + k e_f2 e_p,   L = log(1 / share)

    with the errors of the means e_f = sigma_f sqrt(32 L / (m k)) and of the prior e_p = sqrt(log(2
    / share) / (2 m k)), or sqrt(32 L report / m) where the variance of a report is given, because
    labels have no cap or reports carry noise. The fields of `spread` may be arrays, one entry per
    pair of models.
    """
    k, k1 = size, means_size or size
    f1, f2, mean, bag = spread
    f2, mean = (
        f2 * cap**2,
        mean * cap**2,
    )  # as if the labels were divided by the cap, to lie in [0, 1]
    L, L2 = log(1 / share), log(2 / share)
    variance = f2 * (9.5 + 48 * L / m + 2 * L2 / m + 64 * L * L2 / m**2) if bag is None else bag
    e_f1, e_f2 = np.sqrt(32 * f1 * L / (m * k1)), np.sqrt(32 * f2 * L / (m * k1))
    e_p = sqrt(L2 / (2 * m * k1)) if report is None else sqrt(32 * report * L / m) / cap
    return (
        np.sqrt(32 * variance * L / m)
        + e_f1
        + abs(prior) * e_f2
        + np.sqrt(mean) * e_p
        + k * e_f2 * e_p
    )


def histogram_deviation(
    spread: HistogramSpread,
    m: float,
    *,
    size: float,
    share: float,
    classes: int,
    report: float | None = None,
) -> Any:
    """C for full histograms, an order of magnitude: the paper's terms with the constants that it
    shows.

    The error of the prior comes from the variance of a report, summed over classes: 1 / size at
    most without noise.
    """
    L = log(1 / share)
    largest, total, bag = spread
    report = 1 / size if report is None else report
    variance = 4 * 64 * largest + 32 * L / m * total if bag is None else bag
    bias = sqrt(classes) * 32 * L / m * np.sqrt(total * size * report) + np.sqrt(
        32 * L / (m * size) * largest
    )
    return np.sqrt(32 * variance * L / m) + bias + np.sqrt(32 * classes * L / m * report * largest)


def bags_needed(
    beta: float,
    problem: Problem,
    *,
    curvature: Sandwich | None = None,
    misfit: tuple[float, float] = (0.0, 0.0),
) -> int:
    """How many bags guarantee that every model left in the pool has a regret below beta.

    Slow rate (Theorems 3.2, B.2, C.2): bags grow like 1 / beta^2, for any number of instances in
    them. With `curvature` the fast rate (Theorem 3.4): like 1 / beta when the best possible
    predictor is among the models.

    Parameters
    ----------
    beta : the regret to allow.
    curvature : of the loss, from `sandwich`; only for binary and total reports.
    misfit : gamma_f1, gamma_f2 = E[(f_i(best model) - f_i(best possible predictor))^2]; 0 when it
        is among them.

    >>> bags_needed(0.1, Problem(models=12, size=8, spread=Spread(0.01, 0.04, 0.01)))
    169221
    """
    if not beta > 0:
        raise broken(
            "beta must be positive", f"{beta} came", "It is the regret that you can accept."
        )
    problem = _curved(problem, beta, curvature, misfit)
    smallest = group_count(problem.share)
    enough = lambda m: problem.deviation(m) < beta / 2
    return problem.parts * ceil(_smallest(enough, smallest))


def regret_supported(
    bags: int,
    problem: Problem,
    *,
    curvature: Sandwich | None = None,
    misfit: tuple[float, float] = (0.0, 0.0),
) -> float:
    """The smallest beta that this many bags support: any model left in the pool has less regret
    than that.

    Infinite when there are fewer bags than the medians of means need groups.
    """
    m = bags // problem.parts
    if m < group_count(problem.share):
        return inf
    if curvature is None:
        return 2 * problem.deviation(m)
    enough = lambda beta: _curved(problem, beta, curvature, misfit).deviation(m) < beta / 2
    return _smallest(enough, 1e-12)


def _curved(
    problem: Problem, beta: float, curvature: Sandwich | None, misfit: tuple[float, float]
) -> Problem:
    """Lemma B.3: curvature bounds the spread of a model by its regret, 4/c beta + 2 (C/c + 1)
    misfit."""
    if curvature is None:
        return problem
    if isinstance(problem.spread, HistogramSpread):
        raise broken(
            "The fast rate must have binary or total reports",
            "full histograms came, for which the paper proves none",
            "Leave curvature out.",
        )
    if not min(curvature.c1, curvature.c2) > 0:
        raise broken(
            "The fast rate must have a loss that is curved",
            f"c1 = {curvature.c1:g} and c2 = {curvature.c2:g} came",
            "Bound the scores, as in sandwich(loss, (-5, 5)), or leave curvature out.",
        )
    bound = [
        4 / c * beta + (2 * (C / c + 1) * gamma if gamma else 0.0)
        for c, C, gamma in (
            (curvature.c1, curvature.C1, misfit[0]),
            (curvature.c2, curvature.C2, misfit[1]),
        )
    ]
    return replace(problem, spread=Spread(bound[0], bound[1], bound[1]))


def _smallest(enough: Callable[[float], bool], low: float) -> float:
    """The smallest value that is enough, to one part in 10^9; infinite when none is."""
    if enough(low):
        return low
    high = low
    while not enough(high):
        low, high = high, 2 * high
        if high > LARGEST:
            raise broken(
                f"Planning must end below {LARGEST:g}",
                "no number of bags that large is enough",
                "Allow a larger beta.",
            )
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
