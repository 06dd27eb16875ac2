"""The constants of the fast-rate condition, of a loss on a range of scores."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Kind
from unbag.losses import Loss


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
