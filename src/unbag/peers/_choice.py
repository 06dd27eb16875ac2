"""One of several settings, chosen from bags alone, and the learners that have one to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from scipy.optimize import minimize, root_scalar
from scipy.special import expit

from unbag.bags import Bags
from unbag.likelihood import count_likelihood
from unbag.peers._linear import BagData, LinearModel, PeerColumns, read_bags

if TYPE_CHECKING:
    from unbag.learners import Progress

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


class LinearPeer:
    """A learner of a linear logit, one setting of which is chosen from bags.

    A subclass has a `name`, a `title`, `settings` and `coefficients`. Where `guesses_labels` is
    set, reports must be possible counts. Where `stretched` is set, its scores are no logits, or too
    small ones, and get slope and level from the counts of bags that were not learned from.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    guesses_labels: ClassVar[bool] = False
    stretched: ClassVar[bool] = False
    needs_random_bags: ClassVar[bool] = False
    model: ClassVar[type] = LinearModel

    def fit(self, bags: Bags, *, seed: int = 0, progress: Progress | None = None) -> LinearModel:
        """A linear model of these bags.

        Parameters
        ----------
        bags : Bags
            Binary, with features; where labels are guessed, with reports in [0, 1].
        seed : int
            Of the folds that choose, and of whatever is drawn.
        progress : Progress, optional
            Not used.
        """
        columns, data = read_bags(bags, self.name, counts=self.guesses_labels)
        return self.fit_data(columns, data, seed)

    def fit_data(self, columns: PeerColumns, data: BagData, seed: int) -> LinearModel:
        """The model of bags that were read.

        Parameters
        ----------
        columns, data : PeerColumns, BagData
            What `read_bags` gave.
        seed : int
            Of the folds that choose.
        """
        chosen, held = choose_by_counts(self._scores, data, self.settings(), seed=seed)
        w = self.coefficients(data, chosen)
        model = LinearModel(columns, w[:-1], w[-1])
        if not self.stretched:
            return model
        slope, _ = slope_and_level(held, data)
        level = level_of(slope * (data.X @ w[:-1] + w[-1]), data.prior)
        return model.rescaled(slope, level)

    def settings(self) -> Sequence[Any]:
        """What to choose from."""
        raise NotImplementedError

    def coefficients(self, data: BagData, setting: Any) -> np.ndarray:
        """Coefficients, then the intercept.

        Parameters
        ----------
        data : BagData
            To learn from.
        setting : object
            One of the settings.
        """
        raise NotImplementedError

    def _scores(self, data: BagData, setting: Any) -> Callable[[np.ndarray], np.ndarray]:
        w = self.coefficients(data, setting)
        return lambda X: X @ w[:-1] + w[-1]
