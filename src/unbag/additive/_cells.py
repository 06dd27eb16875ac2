"""Cells of marginal tables as counts that overlap, with cells that are hidden below a threshold.

Of a hidden cell it is known that its total c lies below a threshold t. Its likelihood is

    P(c < t) = Phi((t - M) / s),    s^2 the variance of c

which is log-concave in M, and so stands for a total that was observed with some more noise: the
Newton step of log Phi at the fitted mean gives that total and its variance. Three rounds suffice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from unbag._rules import broken
from unbag.additive._counts import Counts, Spread
from unbag.additive._evidence import Fit
from unbag.additive._overlap import LARGEST
from unbag.additive._rows import RowsFit, fit_evidence
from unbag.tables import Marginals

if TYPE_CHECKING:
    from unbag.additive._terms import Design

ROUNDS = 3
VAGUE = 1e6  # a hidden cell tells nothing more when its variance has grown by this factor


def check_size(cells: Marginals, design: Design) -> None:
    """Refuse cells and coefficients whose dense Jacobian would not fit into memory."""
    m, q = len(cells), design.T.shape[1]
    if m * q > LARGEST:
        raise broken(
            f"Cells times coefficients must be at most {LARGEST:,}",
            f"{m:,} cells and {q:,} coefficients given, which makes {m * q:,}",
            "Make keys coarser, or leave out columns with many levels with {features}.",
        )


def counts_of_cells(cells: Marginals) -> Counts:
    """The cells that are observed, as counts."""
    taken = cells.take(np.flatnonzero(cells.observed))
    offset = np.zeros(taken.S.shape[1])
    return Counts(taken.S, taken.total, taken.noise, offset, taken.kind)


def fit_cells(design: Design, cells: Marginals, **options: Any) -> tuple[RowsFit, Fit]:
    """The additive model of the observed cells, and of hidden ones below their threshold.

    Parameters
    ----------
    design : Design
        Of the events.
    cells : Marginals
        With their reports.
    **options
        Of `fit_evidence`.
    """
    problem, fit = fit_evidence(design, counts_of_cells(cells), **options)
    if not cells.hidden.any():
        return problem, fit
    for _ in range(ROUNDS):
        counts = with_hidden(cells, fit)
        problem, fit = fit_evidence(design, counts, **options)
    return problem, fit


def with_hidden(cells: Marginals, fit: Fit) -> Counts:
    """The observed cells, and hidden ones as totals with more noise; see the head of the file."""
    kept = np.flatnonzero(cells.observed | cells.hidden)
    taken = cells.take(kept)
    counts = Counts(taken.S, taken.total, taken.noise, np.zeros(taken.S.shape[1]), taken.kind)
    place = fit.state.linear.place
    total, noise = hidden_totals(counts, place.moments.h, place.spread, float(cells.below or 0))
    hidden = cells.hidden[kept]
    return replace(
        counts,
        count=np.where(hidden, total, counts.count),
        noise=np.where(hidden, noise, counts.noise),
    )


def hidden_totals(
    counts: Counts, h: np.ndarray, spread: Spread, below: float
) -> tuple[np.ndarray, np.ndarray]:
    """Of each count the total, and its noise, that stand for "below the threshold".

    Parameters
    ----------
    counts : Counts
        All, hidden or not.
    h : numpy.ndarray
        Mean label of each event.
    spread : Spread
        Of the counts.
    below : float
        The threshold; counts without noise are whole numbers, so it is moved to the middle between
        two of them.
    """
    own, M = counts.label_variance(h), counts.S @ h
    usual = spread.dispersion * own + spread.misfit * own**2
    s2 = usual + counts.noise
    limit = np.where(counts.noise == 0, below - 0.5, below)
    z = (limit - M) / np.sqrt(s2)
    ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - special.log_ndtr(z))
    slope, curvature = -ratio / np.sqrt(s2), ratio * (ratio + z) / s2
    variance = 1 / np.maximum(curvature, 1 / (VAGUE * s2))
    return M + slope * variance, variance - usual
