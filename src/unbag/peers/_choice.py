"""One of several settings, chosen from bags alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from scipy.optimize import minimize, root_scalar
from scipy.special import expit

from unbag.likelihood import count_likelihood
from unbag.peers._linear import BagData

FOLDS = 3
Setting = TypeVar("Setting")
Score = Callable[[BagData, Setting], Callable[[np.ndarray], np.ndarray]]
"""Fits by a setting, and gives what scores rows."""


def choose_by_counts(
    fit: Score[Setting], data: BagData, settings: Sequence[Setting], *, seed: int
) -> tuple[Setting, np.ndarray]:
    """The setting under which the counts of bags not learned from are likeliest, at the right
    level, and the scores of these bags' rows.

    Parameters
    ----------
    fit : callable
        `fit(data, setting)` gives a function from rows to scores.
    data : BagData
        All bags.
    settings : sequence
        To choose from.
    seed : int
        Of the folds.
    """
    folds = min(FOLDS, len(data.size) // 2)
    fold = np.random.default_rng(seed).permutation(len(data.size)) % max(folds, 1)
    scores = np.zeros((len(settings), len(data.bag)))
    if folds < 2:
        return settings[len(settings) // 2], scores[0]
    for number in range(folds):
        learn = data.take(np.flatnonzero(fold != number))
        held = fold[data.bag] == number
        for place, setting in enumerate(settings):
            score = fit(learn, setting)
            level = level_of(score(learn.X), learn.prior)
            scores[place, held] = score(data.X[held]) + level
    best = int(np.argmin([unlikelihood(score, data) for score in scores]))
    return settings[best], scores[best]


def unlikelihood(score: np.ndarray, data: BagData) -> float:
    """Minus the log likelihood of all counts.

    Parameters
    ----------
    score : numpy.ndarray
        Logit of each row.
    data : BagData
        The bags.
    """
    report = np.stack([np.ones(len(data.size)), data.report], axis=1)
    return float(count_likelihood(score, data.bag, data.size, report, exact=1).sum())


def level_of(score: np.ndarray, prior: float) -> float:
    """What to add to logits so that the mean probability is the prior.

    Parameters
    ----------
    score : numpy.ndarray
        Logits.
    prior : float
        Inside (0, 1).

    >>> round(level_of(np.array([1.0, 3.0]), 0.5), 6)
    -2.0
    """
    edge = float(np.abs(score).max()) + 50

    def excess(level: float) -> float:
        return float(expit(score + level).mean()) - prior

    return float(root_scalar(excess, bracket=(-edge, edge)).root)


def slope_and_level(score: np.ndarray, data: BagData) -> tuple[float, float]:
    """By how much to stretch and shift scores so that the counts are likeliest: Platt's scaling,
    from bags.

    Parameters
    ----------
    score : numpy.ndarray
        Of each row, by a model that has not learned from its bag.
    data : BagData
        The bags.
    """

    def value(log_slope: np.ndarray) -> float:
        stretched = float(np.exp(log_slope[0])) * score
        return unlikelihood(stretched + level_of(stretched, data.prior), data)

    slope = float(np.exp(minimize(value, [0.0], method="Nelder-Mead", bounds=[(-5, 5)]).x[0]))
    return slope, level_of(slope * score, data.prior)
