"""A loss and a range of scores in, the constants of the fast-rate condition out."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.losses import Loss


class Sandwich(NamedTuple):
    """The tight constants of the fast-rate condition (equation (7) of the paper)."""

    c1: float
    C1: float
    c2: float
    C2: float


def sandwich(loss: Loss, scores: tuple[float, float] = (-inf, inf)) -> Sandwich:
    """The tight constants for a binary loss with scores in a range: for all scores a, b in it and i
    = 1, 2,

        c_i / 2 (f_i(a) - f_i(b))^2 <= loss(a, eta_b) - loss(b, eta_b) <= C_i / 2 (f_i(a) -
        f_i(b))^2

    where eta_b is the probability whose best score is b. Found on a grid, to about three digits.
    Square loss: c1 = c2 = C2 = 1/2 (the paper's c2 = C2 = 2 is a slip). Log loss with scores in
    [-M, M]: c2 = sigmoid'(M), C2 = 1/4, c1 = exp(-M), C1 = exp(M). An upper constant that does not
    exist is infinite; a lower one 0.

    >>> from unbag import losses
    >>> [round(c, 3) for c in sandwich(losses.log, (-2, 2))]
    [0.135, 7.389, 0.105, 0.25]
    """
    low, high = max(scores[0], -35.0), min(scores[1], 35.0)
    if not low < high:
        raise broken(
            "A range of scores must go from low to high", f"{scores} came", "Use (-5, 5), say."
        )
    p = np.linspace(1 / (1 + np.exp(-low)), 1 / (1 + np.exp(-high)), 401)[1:-1]
    inner = np.log(p / (1 - p))
    b = np.unique(np.concatenate([np.linspace(low, high, 400), inner]))
    near = np.clip(b + np.where(b < high - 1e-4, 1e-4, -1e-4), low, high)
    pairs = [np.meshgrid(b, b, indexing="ij"), (near, b)]
    ratios = [
        np.concatenate(values)
        for values in zip(*(_ratios(loss, a, b) for a, b in pairs), strict=True)
    ]
    (c1, C1), (c2, C2) = ((float(r.min()), float(r.max())) for r in ratios)
    unbounded = lambda value: inf if value > 1e9 else value
    return Sandwich(
        c1 if c1 > 1e-9 else 0.0, unbounded(C1), c2 if c2 > 1e-9 else 0.0, unbounded(C2)
    )


def _ratios(loss: Loss, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2 (loss(a, eta_b) - loss(b, eta_b)) / (f_i(a) - f_i(b))^2 for i = 1, 2, where it is not lost
    in rounding."""
    a, b = np.ravel(a), np.ravel(b)
    f, g = (loss.components(z, kind="binary") for z in (a, b))
    eta = 1 / (1 + np.exp(-b))
    excess = 2 * (f[:, 0] - g[:, 0] + eta * (f[:, 1] - g[:, 1]))
    scale = 1e-15 * (1 + np.abs(f).max(axis=1))
    if (excess < -1e4 * scale).any():
        raise broken(
            "The sandwich must have a proper loss of the probability sigmoid(score)",
            f"{loss.name} is not",
            "Use log or square.",
        )
    square = (f - g) ** 2
    told = [(excess > 1e4 * scale) & (square[:, i] > 0) for i in (0, 1)]
    return excess[told[0]] / square[told[0], 0], excess[told[1]] / square[told[1], 1]
