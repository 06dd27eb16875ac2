"""How little reports of random bags can vary: less is a sign that they are something else."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag.bags._reports import Kind

SURE = 4.75  # standard deviations that chance exceeds once in a million times
FEWEST, SAME, WHOLE = 10, 1e-9, 1e-6
"""Bags whose mean counts are called equal, and how close equal ones and whole numbers are."""


def least_variance(prior: Any, kind: Kind) -> Any:
    """What Var y is at least, of each class: p (1 - p), and f (1 - f) for counts with the mean
    n + f, because whole numbers cannot be closer to it than n and n + 1.

    Parameters
    ----------
    prior : array, or a column of a relation
        The label marginal.
    kind : {"binary", "total", "histogram"}
        What the reports are.

    >>> least_variance(0.25, "binary"), least_variance(3.25, "total")
    (0.1875, 0.1875)
    """
    if kind == "total":
        prior = prior % 1
    return prior * (1 - prior)


def spread_terms(size: Any, report: Any, prior: Any, noise: Any, chance: Any) -> tuple[Any, Any]:
    """Of each bag its squared distance from the prior in units of chance, and what its count adds
    to the variance of that; see `too_even`.

    A count is a whole number, so that 1/12, the variance of rounding, is added to the square. Noise
    may be Laplace's, whose squares vary more than those of a normal variable by 3 variances.

    Parameters
    ----------
    size, report, prior, noise : array, or column of a relation
        Of each bag, the prior that of its stratum.
    chance : array, or column of a relation
        Variance of the count of random instances, at least.
    """
    variance = chance + noise
    away = size * (report - prior)
    further = (chance + 3 * noise * noise) / (variance * variance)
    return (away * away + 1 / 12) / variance, further


def too_even(squares: Any, further: Any, free: Any) -> Any:
    """Whether reports vary less than random bags can, but for a chance of one in a million.

    The mean of `squares` is 1 for random bags. By Wilson and Hilferty its cube root is nearly
    normal, with mean 1 - c and variance c = Var / (9 free^2).

    Parameters
    ----------
    squares, further : float or a number of a relation
        Sums over bags of `spread_terms`.
    free : float or a number of a relation
        Bags less strata.
    """
    c = (2 * free + further) / (9 * free * free)
    low = 1 - c - SURE * c**0.5
    return (low > 0) & (squares / free < low * low * low)


def reports_too_even(reports: Any) -> bool:
    """Whether the observed reports, of any class, vary less than those of random bags can.

    Parameters
    ----------
    reports : Reports or Bags
        Of any kind. Totals that are not whole numbers, such as amounts, may have any variance, so
        that only their noise is expected; but they are not all equal.
    """
    there = reports.observed
    if there.sum() < 2:
        return False
    size, report = reports.size[there].astype(float), np.asarray(reports.report, float)[there]
    noise = np.zeros(len(size)) if reports.noise is None else reports.noise[there].astype(float)
    stratum = np.zeros(len(size), int) if reports.stratum is None else reports.stratum[there]
    s = np.unique(stratum, return_inverse=True)[1]
    if reports.kind == "total" and all_equal(len(size), report.min(), report.max()):
        return True
    classes = report.reshape(len(size), -1).T
    return any(_too_even(size, own, noise, s, reports.kind) for own in classes)


def all_equal(bags: Any, low: Any, high: Any) -> Any:
    """Whether so many mean counts are one number that is not 0, which no chance makes them.

    Parameters
    ----------
    bags : int or a number of a relation
        How many there are.
    low, high : float or a number of a relation
        The least and the largest.
    """
    return (bags >= FEWEST) & (high > 0) & (high - low <= SAME * high)


def _too_even(size: Any, report: Any, noise: Any, stratum: Any, kind: Kind) -> bool:
    """The same of one class."""
    prior = (np.bincount(stratum, size * report) / np.bincount(stratum, size))[stratum]
    chance = size * np.maximum(least_variance(prior, kind), 0)  # noise moves a mean out of [0, 1]
    if kind == "total" and (np.abs(size * report - np.round(size * report)) > WHOLE).any():
        chance = 0 * chance
    varies = chance + noise > 0
    free = int(varies.sum()) - len(np.unique(stratum[varies]))
    if free < 1:
        return False
    terms = spread_terms(*(v[varies] for v in (size, report, prior, noise, chance)))
    return bool(too_even(terms[0].sum(), terms[1].sum(), free))
