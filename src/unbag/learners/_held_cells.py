"""Held-out cells of marginal tables, and how probable a model that never used them makes them.

This judges predictions of *totals of cells*, one cell at a time. It is no log loss of events, and
it is somewhat favourable: the events of a held-out cell are counted in other tables as well.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse, special, stats

from unbag.additive import Additive, AdditiveModel, DataWarning
from unbag.bags import label_variance
from unbag.learners._protocol import Progress
from unbag.metrics import Estimate, Evaluation, Note, mean_estimate
from unbag.tables import Marginals

NOTES = (
    "Judged are totals of held-out cells, each by itself, not events: no log loss or AUC of events "
    "can be had from tables that are not random.",
    "The events of a held-out cell are counted in cells of other tables too, so this is somewhat "
    "favourable.",
)
LEVEL = 0.95
UNSURE = 0.5  # a slope with a larger standard error tells nothing
INVERSE = {"binary": special.expit, "total": np.exp}


class HeldCells(NamedTuple):
    """Of each held-out cell what a model that never used it says.

    Parameters
    ----------
    residual, variance : numpy.ndarray
        The total less its prediction, and the variance of that: of the labels, the noise, the lack
        of fit and the uncertainty of the model.
    trivial, usual, scattered : numpy.ndarray
        The total less that by the mean rate; the variance of that by labels and noise; and the
        variance of that when rates scatter between cells as they do among the other cells.
    level, along : numpy.ndarray
        Derivatives of the prediction by a shift of the scores, and by a factor that stretches them.
    size : numpy.ndarray
        Events of the cell.
    """

    residual: np.ndarray
    variance: np.ndarray
    trivial: np.ndarray
    usual: np.ndarray
    scattered: np.ndarray
    level: np.ndarray
    along: np.ndarray
    size: np.ndarray

    @property
    def slope(self) -> Estimate | None:
        """By how much the scores should be stretched, by one step of least squares from 1 with a
        free level; None where these cells do not tell."""
        root = np.sqrt(self.variance)
        design = np.stack([self.level, self.along], axis=1) / root[:, None]
        covariance = np.linalg.pinv(design.T @ design)
        change = covariance @ design.T @ (self.residual / root)
        error = float(np.sqrt(covariance[1, 1]))
        if not 0 < error < UNSURE:
            return None
        value, reach = 1 + float(change[1]), float(stats.norm.ppf((1 + LEVEL) / 2)) * error
        return Estimate(value, error, value - reach, value + reach)

    @property
    def evaluation(self) -> Evaluation:
        """What the cells say, each number with its interval.

        `explained`: the share of the squared deviations of the totals from the mean rate that the
        model explains, each cell weighted by its variance; 1 is perfect, 0 no better than the mean
        rate. `log_likelihood`: of a held-out total under a normal law, for comparing models.
        `gain_over_prior`: how much larger that is than by the mean rate, with rates that scatter
        between cells. `coverage`: the share of totals in their 95% intervals; below 0.9 the model
        is overconfident.
        """
        ours = stats.norm.logpdf(self.residual, scale=np.sqrt(self.variance))
        theirs = stats.norm.logpdf(self.trivial, scale=np.sqrt(self.scattered))
        # the share of the squared deviations from the mean rate that the model takes away; the
        # error of the ratio by linearisation
        left, whole = self.residual**2 / self.usual, self.trivial**2 / self.usual
        mean = max(float(whole.mean()), 1e-300)
        ratio = float(left.mean()) / mean
        # the share of totals in their 95% intervals, with Wilson's interval
        inside = self.residual**2 < stats.norm.ppf((1 + LEVEL) / 2) ** 2 * self.variance
        share, n = float(inside.mean()), len(inside)
        low, high = stats.binomtest(int(inside.sum()), n).proportion_ci(LEVEL, method="wilson")
        error = float(np.sqrt(share * (1 - share) / n))
        estimates = {
            "explained": mean_estimate(1 - ratio - (left - ratio * whole) / mean, LEVEL),
            "log_likelihood": mean_estimate(ours, LEVEL),
            "gain_over_prior": mean_estimate(ours - theirs, LEVEL),
            "coverage": Estimate(share, error, float(low), float(high)),
        }
        notes = tuple(Note(text, "counts") for text in NOTES)
        return Evaluation(estimates, [], [], "cells", n, int(self.size.sum()), LEVEL, notes)


def held_cells(
    cells: Marginals, learner: Additive, folds: int, seed: int, progress: Progress | None = None
) -> HeldCells:
    """What models of the other folds say of the cells of each fold."""
    observed = np.flatnonzero(cells.observed)
    fold = np.empty(len(cells), np.int64)
    fold[np.random.default_rng(seed).permutation(len(cells))] = np.arange(len(cells)) % folds
    parts = []
    for number in range(folds):
        with warnings.catch_warnings():  # of each fold nobody needs to hear
            warnings.simplefilter("ignore", DataWarning)
            model = learner.fit(cells.take(np.flatnonzero(fold != number)))
        held = cells.take(observed[fold[observed] == number])
        parts.append(judged_cells(model, held, cells.take(observed[fold[observed] != number])))
        if progress is not None:  # the model of all cells was the first step
            progress(number + 2, folds + 1, f"additive: fold {number + 1}")
    return HeldCells(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def judged_cells(model: AdditiveModel, held: Marginals, other: Marginals) -> HeldCells:
    """What a model says of cells that it did not use.

    Parameters
    ----------
    model : AdditiveModel
        That learned from other cells.
    held : Marginals
        Cells with observed reports.
    other : Marginals
        Observed cells, whose mean rate, and its scatter, the model is compared with.
    """
    Z = model.terms.matrix(held.X)
    T = model.terms.basis
    score = (Z @ (T @ model.b))[:, 0]
    h = INVERSE[model.kind](score)
    d = label_variance(h, model.kind)
    own, (rate, scatter) = held.S @ d, mean_rate(other)
    usual_own = model.dispersion * held.size * max(label_variance(rate, model.kind), 1e-9)
    J = (held.S @ sparse.diags_array(d) @ Z.csr()) @ T
    uncertain = ((J @ model.factor[:, 0].astype(float)) ** 2).sum(axis=1)
    variance = model.dispersion * own + (model.misfit * own) ** 2 + held.noise + uncertain
    usual = np.maximum(usual_own + held.noise, 1e-9)
    return HeldCells(
        residual=held.total - held.S @ h,
        variance=np.maximum(variance, 1e-9),
        trivial=held.total - held.size * rate,
        usual=usual,
        scattered=usual + scatter * usual_own**2,
        level=own,
        along=held.S @ (d * (score - score.mean())),
        size=held.size,
    )


def mean_rate(cells: Marginals) -> tuple[float, float]:
    """The mean rate of observed cells, and the variance of its scatter between them in logits: the
    most likely one, with which the mean rate is a fair rival of a model."""
    rate = float(cells.prior)
    own = cells.size * max(label_variance(rate, cells.kind), 1e-9)
    residual = cells.total - cells.size * rate

    def minus_log_likelihood(log_scatter: float) -> float:
        V = own + cells.noise + np.exp(log_scatter) * own**2
        return float((residual**2 / V + np.log(V)).sum())

    best: Any = optimize.minimize_scalar(
        minus_log_likelihood, bounds=(-20.0, 5.0), method="bounded"
    )
    return rate, float(np.exp(best.x))
