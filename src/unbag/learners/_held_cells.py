"""Held-out cells of marginal tables, and how probable a model that never used them makes them.

This judges predictions of *totals of cells*, one cell at a time. It is no log loss of events, and
it is somewhat favourable: the events of a held-out cell are counted in other tables as well.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse, special, stats

from unbag._rules import broken
from unbag.learners._additive import Additive, AdditiveModel
from unbag.learners._terms import DataWarning
from unbag.metrics import Estimate, Evaluation, Note, mean_estimate
from unbag.tables import Marginals

NOTES = (
    "Judged are totals of held-out cells, each by itself, not events: no log loss or AUC of events "
    "can be had from tables that are not random.",
    "The events of a held-out cell are counted in cells of other tables too, so this is somewhat "
    "favourable.",
)
LEVEL = 0.95
INVERSE = {"binary": special.expit, "total": np.exp}


class HeldCells(NamedTuple):
    """Of each held-out cell what a model that never used it says.

    Parameters
    ----------
    residual, variance : numpy.ndarray
        The total less its prediction, and the variance of that: of the labels, the noise, the lack
        of fit and the uncertainty of the model.
    trivial, usual : numpy.ndarray
        The total less that by the mean rate, and the variance of that by labels and noise.
    along : numpy.ndarray
        The derivative of the prediction by a factor that stretches the scores.
    size : numpy.ndarray
        Events of the cell.
    """

    residual: np.ndarray
    variance: np.ndarray
    trivial: np.ndarray
    usual: np.ndarray
    along: np.ndarray
    size: np.ndarray

    @property
    def slope(self) -> Estimate:
        """By how much the scores should be stretched, by one step of least squares from 1."""
        information = float((self.along**2 / self.variance).sum())
        if information == 0:
            return Estimate(1.0, np.inf, -np.inf, np.inf)
        value = 1 + float((self.along * self.residual / self.variance).sum()) / information
        error = information**-0.5
        reach = float(stats.norm.ppf((1 + LEVEL) / 2)) * error
        return Estimate(value, error, value - reach, value + reach)

    @property
    def evaluation(self) -> Evaluation:
        """What the cells say, each number with its interval."""
        ours = stats.norm.logpdf(self.residual, scale=np.sqrt(self.variance))
        theirs = stats.norm.logpdf(self.trivial, scale=np.sqrt(self.usual))
        estimates = {
            "explained": self._explained(),
            "log_likelihood": mean_estimate(ours, LEVEL),
            "gain_over_prior": mean_estimate(ours - theirs, LEVEL),
            "coverage": self._coverage(),
        }
        notes = tuple(Note(text, "counts") for text in NOTES)
        cells, events = len(self.residual), int(self.size.sum())
        return Evaluation(estimates, [], [], "cells", cells, events, LEVEL, notes)

    def _explained(self) -> Estimate:
        """The share of the squared deviations from the mean rate that the model takes away; the
        error of the ratio by linearisation."""
        ours, theirs = self.residual**2 / self.usual, self.trivial**2 / self.usual
        whole = max(float(theirs.mean()), 1e-300)
        ratio = float(ours.mean()) / whole
        return mean_estimate(1 - ratio - (ours - ratio * theirs) / whole, LEVEL)

    def _coverage(self) -> Estimate:
        """The share of totals in their 95% intervals, with Wilson's interval."""
        inside = self.residual**2 < stats.norm.ppf((1 + LEVEL) / 2) ** 2 * self.variance
        share, n = float(inside.mean()), len(inside)
        low, high = stats.binomtest(int(inside.sum()), n).proportion_ci(LEVEL, method="wilson")
        return Estimate(share, float(np.sqrt(share * (1 - share) / n)), float(low), float(high))


def evaluate_cells(
    cells: Marginals, learner: Additive | None = None, *, folds: int = 5, seed: int = 0
) -> Evaluation:
    """Judge the additive model by cells that it did not use, in folds of cells.

    Parameters
    ----------
    cells : Marginals
        With observed reports.
    learner : Additive, optional
        To judge; with its usual options by default.
    folds : int
        How many models are fitted.
    seed : int
        Of the folds.

    Returns
    -------
    Evaluation
        `explained`: the share of the squared deviations of the totals from the mean rate that the
        model explains, each cell weighted by its variance; 1 is perfect, 0 no better than the mean
        rate. `log_likelihood`: of a held-out total under a normal law, for comparing models.
        `gain_over_prior`: how much larger that is than by the mean rate. `coverage`: the share of
        totals in their 95% intervals; below 0.9 the model is overconfident.
    """
    return held_cells(cells, learner or Additive(), folds, seed).evaluation


def held_cells(cells: Marginals, learner: Additive, folds: int, seed: int) -> HeldCells:
    """What models of the other folds say of the cells of each fold."""
    observed = np.flatnonzero(cells.observed)
    if len(observed) < 2 * folds or folds < 2:
        raise broken(
            "Held-out cells must be two or more in each of two folds or more",
            f"{len(observed)} observed cells came for {folds} folds",
            "Ask for fewer folds with {folds}, or give more tables.",
        )
    fold = np.empty(len(cells), np.int64)
    fold[np.random.default_rng(seed).permutation(len(cells))] = np.arange(len(cells)) % folds
    parts = []
    for number in range(folds):
        with warnings.catch_warnings():  # of each fold nobody needs to hear
            warnings.simplefilter("ignore", DataWarning)
            model = learner.fit(cells.take(np.flatnonzero(fold != number)))
        held = cells.take(observed[fold[observed] == number])
        rate = float(cells.take(observed[fold[observed] != number]).reports.prior)
        parts.append(judged_cells(model, held, rate))
    return HeldCells(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def judged_cells(model: AdditiveModel, held: Marginals, rate: float) -> HeldCells:
    """What a model says of cells that it did not use.

    Parameters
    ----------
    model : AdditiveModel
        That learned from other cells.
    held : Marginals
        Cells with observed reports.
    rate : float
        The mean report of the cells that it learned from.
    """
    Z = model.terms.matrix(held.X)
    T = model.terms.basis()
    score = (Z @ (T @ model.b))[:, 0]
    h = INVERSE[model.kind](score)
    d, trivial_d = h, rate
    if model.kind == "binary":
        d, trivial_d = h * (1 - h), rate * (1 - rate)
    own = held.S @ d
    J = (held.S @ sparse.diags_array(d) @ Z) @ T
    uncertain = ((J @ model.factor[:, 0].astype(float)) ** 2).sum(axis=1)
    variance = model.dispersion * own + (model.misfit * own) ** 2 + held.noise + uncertain
    usual = model.dispersion * held.size * max(trivial_d, 1e-9) + held.noise
    return HeldCells(
        residual=held.total - held.S @ h,
        variance=np.maximum(variance, 1e-9),
        trivial=held.total - held.size * rate,
        usual=np.maximum(usual, 1e-9),
        along=held.S @ (d * (score - score.mean())),
        size=held.size,
    )
