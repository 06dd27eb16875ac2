"""Held-out cells of marginal tables, and how probable a model that never used them makes them.

This judges predictions of *totals of cells*, one cell at a time. It is no log loss of events, and
it is somewhat favourable: the events of a held-out cell are counted in other tables as well.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse, special, stats

from unbag._rules import broken
from unbag.learners._additive import Additive, AdditiveModel
from unbag.learners._terms import DataWarning
from unbag.tables import Marginals

NOTES = (
    "Judged are totals of held-out cells, each by itself, not events: no log loss or AUC of events "
    "can be had from tables that are not random.",
    "The events of a held-out cell are counted in cells of other tables too, so this is somewhat "
    "favourable.",
)
NORMAL = {"binary": special.expit, "total": np.exp}


@dataclass(frozen=True)
class CellEvaluation:
    """What cells say of models that never used them.

    Parameters
    ----------
    cells : int
        How many were judged.
    log_likelihood : float
        Mean log density of a held-out total, under a normal law with the variance of its labels,
        its noise, the lack of fit and the uncertainty of the model. For comparing models.
    explained : float
        The share of the squared deviations of the totals from the mean rate that the model
        explains, each cell weighted by its variance; 1 is perfect, 0 no better than the mean rate.
    coverage : float
        The share of cells in their 95% intervals; below 0.9 the model is overconfident.
    notes : tuple of str
        What these numbers are, and what they are not.
    """

    cells: int
    log_likelihood: float
    explained: float
    coverage: float
    notes: tuple[str, ...] = NOTES

    def __str__(self) -> str:
        return (
            f"held-out totals of {self.cells:,} cells (not events): explained "
            f"{self.explained:.3f}, log likelihood {self.log_likelihood:.3f} a cell, "
            f"{self.coverage:.0%} in their 95% intervals"
        )


def evaluate_cells(
    cells: Marginals, learner: Additive | None = None, *, folds: int = 5, seed: int = 0
) -> CellEvaluation:
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
    """
    observed = np.flatnonzero(cells.observed)
    if len(observed) < 2 * folds or folds < 2:
        raise broken(
            "Held-out cells must be two or more in each of two folds or more",
            f"{len(observed)} observed cells came for {folds} folds",
            "Ask for fewer folds, or give more tables.",
        )
    fold = np.empty(len(cells), np.int64)
    fold[np.random.default_rng(seed).permutation(len(cells))] = np.arange(len(cells)) % folds
    parts = []
    for number in range(folds):
        with warnings.catch_warnings():  # of each fold nobody needs to hear
            warnings.simplefilter("ignore", DataWarning)
            model = (learner or Additive()).fit(cells.take(np.flatnonzero(fold != number)))
        held = cells.take(observed[fold[observed] == number])
        rate = float(cells.take(observed[fold[observed] != number]).reports.prior)
        parts.append(_judged(model, held, rate))
    residual, variance, trivial, weight = (
        np.concatenate(values) for values in zip(*parts, strict=True)
    )
    inside = residual**2 < stats.norm.ppf(0.975) ** 2 * variance
    return CellEvaluation(
        len(residual),
        float(stats.norm.logpdf(residual, scale=np.sqrt(variance)).mean()),
        float(1 - (weight * residual**2).sum() / (weight * trivial**2).sum()),
        float(inside.mean()),
    )


def _judged(
    model: AdditiveModel, held: Marginals, rate: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each cell its residual, its variance, its residual from the mean rate, and its weight."""
    Z = model.terms.matrix(held.X)
    T = model.terms.basis()
    h = NORMAL[model.kind]((Z @ (T @ model.b))[:, 0])
    d = h
    if model.kind == "binary":
        d = h * (1 - h)
    own = held.S @ d
    J = (held.S @ sparse.diags_array(d) @ Z) @ T
    uncertain = ((J @ model.factor[:, 0].astype(float)) ** 2).sum(axis=1)
    variance = model.dispersion * own + (model.misfit * own) ** 2 + held.noise + uncertain
    residual = held.total - held.S @ h
    trivial = held.total - held.reports.size * rate
    usual = held.reports.size * max(rate, 1e-9) + held.noise
    return residual, np.maximum(variance, 1e-9), trivial, 1 / usual
