"""The best bag size, and the width of an interval, under noise on the reports."""

from __future__ import annotations

from math import inf, sqrt
from statistics import NormalDist
from typing import NamedTuple


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
