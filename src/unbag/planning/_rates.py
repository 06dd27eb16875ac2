"""How many bags a tournament needs, or what regret it supports: the paper's theorems and constants.

Everything rests on one number, C (`Problem.deviation`): with probability 1 - delta every pairwise Q
of the tournament lies within C of the true difference of losses. If C < beta / 2, a model with
regret beta or more has Q(h, best) >= beta - C > beta / 2 and is eliminated by the best one, and the
best one, Q(best, h) <= C < beta / 2, is not. (The paper asks for C <= beta / 16, which this
argument shows to be more than is needed.)

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
from unbag.planning._moments import HistogramSpread, ModelSpread, Sandwich

LARGEST = 1e15


@dataclass(frozen=True)
class Problem:
    """A tournament to plan.

    Parameters
    ----------
    models : int
        How many.
    size : float
        Of the bags (the mean size of the smaller half when sizes vary).
    spread : ModelSpread or HistogramSpread
        Measured by a first tournament, or a bound.
    delta : float
        The chance of failure that may remain, for the whole tournament.
    means_size : float, optional
        Mean size of the larger half of the bags when sizes vary; the split is then in two.
    prior : float
        An upper bound on E y / cap; the paper takes 1.
    cap : float
        The largest label: 1 for binary, the largest count for totals (this is the c^2 of the total
        case).
    classes : int, optional
        Number of classes for full histograms.
    report : float, optional
        The variance of a bag's report (summed over classes), where labels have no cap or reports
        carry noise. The prior is then a median of means too; without it, exact labels between 0 and
        cap are taken for granted. Give the measured `spread.bag` with it: the proof's bound knows
        no noise.
    """

    models: int
    size: float
    spread: ModelSpread | HistogramSpread
    delta: float = 0.05
    means_size: float | None = None
    prior: float = 1.0
    cap: float = 1.0
    classes: int | None = None
    report: float | None = None

    @property
    def parts(self) -> int:
        """Into how many equal parts the bags are split."""
        if self.means_size is None:
            return 3
        return 2

    @property
    def share(self) -> float:
        """Each event's share of delta."""
        return self.delta / events(self.models, components=self.classes or 2)

    def deviation(self, m: float) -> float:
        """How far any Q can be from the true difference of losses when each part has m bags."""
        return float(self.deviations(self.spread, m, share=self.share))

    def deviations(self, spread: ModelSpread | HistogramSpread, m: float, *, share: float) -> Any:
        """The same for other spreads, one entry per pair of models, and another share of delta.

            C = sigma sqrt(32 L / m) + e_f1 + p e_f2 + |E2| e_p + k e_f2 e_p,   L = log(1 / share)

        with the errors of the means e_f = sigma_f sqrt(32 L / (m k)) and of the prior e_p =
        sqrt(log(2 / share) / (2 m k)), or sqrt(32 L report / m) where the variance of a report is
        given, because labels have no cap or reports carry noise. For full histograms it is an
        order of magnitude: the paper's terms and the constants it shows.

        Parameters
        ----------
        spread : ModelSpread or HistogramSpread
            Of each pair.
        m : float
            Number of bags in each part.
        share : float
            Each event's chance of failure.
        """
        if isinstance(spread, HistogramSpread):
            return self._of_histograms(spread, m, share)
        k, k1 = self.size, self.means_size or self.size
        f1, f2, mean, bag = spread
        # as if the labels were divided by the cap, to lie in [0, 1]
        f2, mean = f2 * self.cap**2, mean * self.cap**2
        L, L2 = log(1 / share), log(2 / share)
        if bag is None:
            bag = f2 * (9.5 + 48 * L / m + 2 * L2 / m + 64 * L * L2 / m**2)
        e_f1, e_f2 = np.sqrt(32 * f1 * L / (m * k1)), np.sqrt(32 * f2 * L / (m * k1))
        e_p = sqrt(L2 / (2 * m * k1))
        if self.report is not None:
            e_p = sqrt(32 * self.report * L / m) / self.cap
        of_means = e_f1 + abs(self.prior) * e_f2 + np.sqrt(mean) * e_p + k * e_f2 * e_p
        return np.sqrt(32 * bag * L / m) + of_means

    def _of_histograms(self, spread: HistogramSpread, m: float, share: float) -> Any:
        """The error of the prior comes from the variance of a report, summed over classes: 1 / size
        at most without noise."""
        size, a = self.means_size or self.size, 32 * log(1 / share) / m
        largest, total, bag = spread
        report = 1 / size if self.report is None else self.report
        if bag is None:
            bag = 4 * 64 * largest + a * total
        of_prior = np.sqrt(a * (self.classes or 2) * report * largest)
        # sum_r A_r B_r <= |A| |B| by Cauchy and Schwarz: Sigma(H) alone, no factor of the classes
        bias = a * np.sqrt(total * size * report) + np.sqrt(a / size * largest)
        return np.sqrt(a * bag) + bias + of_prior


def events(models: int, *, components: int) -> int:
    """How many estimates must all be good: of each pair Q and its mean components, and the prior.

    Parameters
    ----------
    models : int
        How many.
    components : int
        Of the loss.

    >>> events(12, components=2)
    199
    """
    of_prior = components
    if components == 2:
        of_prior = 1  # the other is always 1
    return models * (models - 1) // 2 * (components + 1) + of_prior


def bags_needed(
    beta: float,
    problem: Problem,
    *,
    curvature: Sandwich | None = None,
    misfit: tuple[float, float] = (0.0, 0.0),
) -> int:
    """How many bags guarantee that every model left in the pool has a regret below beta.

    Slow rate (Theorems 3.2, B.2, C.2): bags grow like 1 / beta^2, for any number of instances in
    them. With `curvature` the fast rate (Theorem 3.5): like 1 / beta when the best possible
    predictor is among the models.

    Parameters
    ----------
    beta : float
        The regret to allow.
    problem : Problem
        The tournament.
    curvature : Sandwich, optional
        Of the loss, from `sandwich`; only for binary and total reports.
    misfit : tuple of float
        gamma_f1, gamma_f2 = E[(f_i(best model) - f_i(best possible predictor))^2]; 0 when it is
        among them.

    >>> bags_needed(0.1, Problem(models=12, size=8, spread=ModelSpread(0.01, 0.04, 0.01)))
    169221
    """
    if not beta > 0:
        raise broken(
            "beta must be positive", f"{beta} given", "It is the regret that you can accept."
        )
    problem = _curved(problem, beta, curvature, misfit)

    def enough(m: float) -> bool:
        return problem.deviation(m) < beta / 2

    return problem.parts * ceil(_smallest(enough, group_count(problem.share)))


def regret_supported(bags: int, problem: Problem) -> float:
    """The smallest beta that so many bags support: models left in the pool have less regret.

    Infinite when there are fewer bags than the medians of means need groups.

    Parameters
    ----------
    bags : int
        How many there are.
    problem : Problem
        The tournament.
    """
    m = bags // problem.parts
    if m < group_count(problem.share):
        return inf
    return 2 * problem.deviation(m)


def _curved(
    problem: Problem, beta: float, curvature: Sandwich | None, misfit: tuple[float, float]
) -> Problem:
    """Lemma B.3: curvature bounds a model's spread by its regret, 4/c beta + 2 (C/c + 1) misfit."""
    if curvature is None:
        return problem
    if isinstance(problem.spread, HistogramSpread):
        raise broken(
            "The fast rate must have binary or total reports",
            "full histograms given, for which the paper proves none",
            "Leave curvature out.",
        )
    if not min(curvature.c1, curvature.c2) > 0:
        raise broken(
            "The fast rate must have a loss that is curved",
            f"c1 = {curvature.c1:g} and c2 = {curvature.c2:g} given",
            "Bound the scores, as in sandwich(loss, (-5, 5)), or leave curvature out.",
        )
    bound = [4 / c * beta for c in (curvature.c1, curvature.c2)]
    for i, (c, C) in enumerate([curvature[:2], curvature[2:]]):
        if misfit[i]:  # C may be infinite, and 0 times it is not 0
            bound[i] += 2 * (C / c + 1) * misfit[i]
    return replace(problem, spread=ModelSpread(bound[0], bound[1], bound[1]))


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
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
