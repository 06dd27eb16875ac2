"""Best weights of noisy bags, and signed weights as targets with sample weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unbag._arrays import PerBag
from unbag._rules import broken, refuse
from unbag.bags import Kind


def noise_weights(
    size: PerBag, noise: PerBag, *, variance: float, stratum: np.ndarray | None = None
) -> np.ndarray:
    """Best weights of noisy bags: w_j proportional to 1 / (Var y + noise_j / k_j).

    Parameters
    ----------
    size : array of int
        Of each bag.
    noise : array of float
        Variance of the noise on each bag's count.
    variance : float
        Var y, which is p (1 - p) for binary labels, or Var(y - g) for a reference g.
    stratum : array of int, optional
        Of each bag; weights add up to 1 in each.

    >>> noise_weights(np.array([10, 10]), np.array([0.0, 7.5]), variance=0.25)
    array([0.8, 0.2])
    """
    if not variance > 0:
        raise broken(
            "A label variance must be positive",
            f"{variance} given",
            "For binary labels it is p (1 - p).",
        )
    raw = 1 / (variance + np.asarray(noise, float) / np.asarray(size, float))
    if stratum is None:
        return raw / raw.sum()
    return raw / np.bincount(stratum, weights=raw)[stratum]


class PseudoLabels(NamedTuple):
    """Targets and sample weights for any trainer that takes both.

    Parameters
    ----------
    target : array of float
        Of each instance; with classes one column for each.
    sample_weight : array of float
        Of each instance, positive.
    """

    target: np.ndarray
    sample_weight: np.ndarray


def pseudo_labels(weights: Any, *, kind: Kind = "binary") -> PseudoLabels:
    """Signed weights as a target and a sample weight: W . f = sample_weight * loss(score, target).

    Binary and total: target W2 / W1, sample weight W1. Histogram: class targets W / sum W, sample
    weight sum W. Targets may lie outside [0, 1]; the log loss softplus(z) - target z stays convex
    in the score all the same. Take the rows per instance, `W[bag]` (those of `anchored` are so
    already).

    Parameters
    ----------
    weights : array of float, of shape (instances, components)
        Of a linear method.
    kind : {"binary", "total", "histogram"}
        What the reports were.

    >>> pseudo_labels(np.array([[0.25, 0.5], [0.25, 0.0]]))
    PseudoLabels(target=array([2., 0.]), sample_weight=array([0.25, 0.25]))
    """
    W = np.asarray(weights)
    target, positive = W[:, 1:], W[:, 0]
    if kind == "histogram":
        target, positive = W, W.sum(axis=1)
    remedy = "Give at least two bags a positive weight in each stratum."
    bad = ~(positive > 0)
    refuse("A sample weight must be positive", bad, thing="row", given=positive, remedy=remedy)
    target = target / positive[:, None]
    if kind == "histogram":
        return PseudoLabels(target, positive)
    return PseudoLabels(target[:, 0], positive)
