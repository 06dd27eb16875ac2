"""Bags and a seed in, folds of bags out, and models that never learned from the bags they score."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from unbag._rules import broken
from unbag.additive import DataWarning
from unbag.bags import Bags, Reports
from unbag.diagnosis import diagnose
from unbag.learners._protocol import Learner, Model, Progress
from unbag.likelihood import count_likelihood

ReportsOrBags = TypeVar("ReportsOrBags", Bags, Reports)
FEWEST = 4
"""So many bags are needed for folds: two to learn from and two to judge."""


class FoldFit(NamedTuple):
    """What a learner made of bags in folds.

    Parameters
    ----------
    models : sequence of Model
        One for each fold, which learned from the bags of the other folds.
    final : Model
        The model to predict with, which learned from all bags.
    notes : tuple of str
        What a user should know about it.
    """

    models: Sequence[Model]
    final: Model
    notes: tuple[str, ...] = ()

    def scores(self, X: Any) -> np.ndarray:
        """Scores of all rows by each fold's model: (folds, rows) or (folds, rows, classes)."""
        return np.stack([np.asarray(model.scores(X), float) for model in self.models])


@runtime_checkable
class FoldLearner(Protocol):
    """A learner that fits all folds at once: they share work, or choose something together."""

    def fit_folds(
        self, bags: Bags, fold: np.ndarray, *, seed: int = 0, progress: Progress | None = None
    ) -> FoldFit:
        """Models of all folds, and the final one; see `fit_folds`."""
        ...


class ByFolds(FoldLearner):
    """A learner of which the final model of `fit_folds` is the fit."""

    folds: int

    def fit(self, bags: Bags, *, seed: int = 0, progress: Progress | None = None) -> Any:
        """The final model of folds of these bags; see `Learner.fit`."""
        bags = bags.reported()
        fold = folds_of(bags, self.folds, seed=seed)
        return self.fit_folds(bags, fold, seed=seed, progress=progress).final


def held_loss(score: np.ndarray, bag: np.ndarray, held: Bags | Reports) -> float:
    """Minus the log likelihood of reports that had no part in the scores, which have their offset;
    infinite where a learner has run away."""
    known = {"kind": held.kind, "noise": held.noise}
    report = held.components().report
    value = count_likelihood(score.astype(float), bag, held.size, report, exact=1, **known)
    return float(np.nan_to_num(value.sum(), nan=np.inf))


def enough_in_strata(bags: Bags | Reports, numbers: np.ndarray) -> np.ndarray:
    """The bags whose stratum has another bag among these: a lone bag has no mean to be compared
    with."""
    if bags.stratum is None:
        return numbers
    count = np.bincount(bags.stratum[numbers], minlength=bags.strata)
    return numbers[count[bags.stratum[numbers]] >= 2]


def dense_strata(bags: ReportsOrBags) -> ReportsOrBags:
    """The same bags with strata numbered anew, so that none is empty."""
    if bags.stratum is None:
        return bags
    kept, stratum = np.unique(bags.stratum, return_inverse=True)
    prior = bags.known_prior
    return replace(
        bags,
        stratum=stratum,
        stratum_names=None,
        known_prior=prior[kept] if prior is not None else None,
    )


def mean_report(bags: Bags, chosen: np.ndarray | None = None) -> np.ndarray:
    """The mean label of these bags, as far off the ends of its range as one more label brings it.

    Parameters
    ----------
    bags : Bags
        With observed reports.
    chosen : numpy.ndarray of bool, optional
        Which bags count; by default all.

    >>> float(mean_report(Bags(np.array([0, 0, 1, 1]), np.array([0.0, 0.0]))))
    0.16666666666666666
    """
    size = np.where(True if chosen is None else chosen, bags.size, 0)
    n = float(size.sum())
    mean = size @ bags.report / n
    if bags.kind == "histogram":
        mean = np.maximum(mean, 0) + 1 / n
        return mean / mean.sum()
    if bags.kind == "total":
        return np.maximum(mean, 1 / n)
    return np.clip(mean, 1 / (n + 2), 1 - 1 / (n + 2))


def folds_of(bags: Bags, folds: int, *, seed: int) -> np.ndarray:
    """The fold of each bag: as even as possible, within each stratum and in all.

    Parameters
    ----------
    bags : Bags
        To divide.
    folds : int
        How many are wanted; there are fewer where a fold would have fewer than two bags.
    seed : int
        Which of the possible folds.

    Returns
    -------
    numpy.ndarray
        Fold number of each bag.

    >>> bags = Bags(np.arange(6), np.array([0, 1, 0, 1, 0, 1.0]), stratum=[0, 0, 0, 1, 1, 1])
    >>> np.bincount(folds_of(bags, 3, seed=0)).tolist()
    [2, 2, 2]
    """
    if folds < 2:
        raise broken("There must be at least two folds", f"{folds} given", "Leave {folds} out.")
    count = max(1, min(folds, len(bags) // 2))
    drawn = np.random.default_rng(seed).uniform(size=len(bags))
    order = np.lexsort((drawn, bags.stratum_or_zero))
    fold = np.empty(len(bags), np.int64)
    fold[order] = np.arange(len(bags)) % count
    return fold


def fit_folds(
    learner: Learner,
    bags: Bags,
    fold: np.ndarray,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> FoldFit:
    """A model for each fold from the bags of the other folds, and one from all bags.

    Parameters
    ----------
    learner : Learner
        Any; one with a method `fit_folds` is asked to do it by itself.
    bags : Bags
        With observed reports.
    fold : numpy.ndarray
        Fold number of each bag, as `folds_of` gives it.
    seed : int
        Of everything that is drawn.
    progress : Progress, optional
        Progress after each model.
    """
    if isinstance(learner, FoldLearner):
        return learner.fit_folds(bags, fold, seed=seed, progress=progress)
    models, total = [], int(fold.max()) + 2
    for number in range(total - 1):
        with warnings.catch_warnings():  # the fit of all bags will say it once
            warnings.simplefilter("ignore", DataWarning)
            models.append(learner.fit(bags.take(np.flatnonzero(fold != number)), seed=seed))
        if progress is not None:
            progress(number + 1, total, f"{learner.name}: fold {number + 1}")
    final = learner.fit(bags, seed=seed)
    if progress is not None:
        progress(total, total, f"{learner.name}: all bags")
    return FoldFit(models, final)


def scores_by_own_fold(scores: np.ndarray, row_fold: np.ndarray) -> np.ndarray:
    """Of each row the score by the model of its fold, which never learned from its bag.

    Parameters
    ----------
    scores : numpy.ndarray
        By each fold's model, (folds, rows) or (folds, rows, classes).
    row_fold : numpy.ndarray
        Fold of each row's bag.

    >>> scores_by_own_fold(np.array([[1, 2, 3], [4, 5, 6]]), np.array([0, 1, 0]))
    array([1, 5, 3])
    """
    return scores[row_fold, np.arange(scores.shape[1])]


def look_random(scores: np.ndarray, bags: Bags, fold: np.ndarray, *, level: float = 0.01) -> bool:
    """Whether predictions for bags vary between bags as those for random bags do.

    The models of two folds differ in their level, and in that of each stratum: bags of one campaign
    would seem to differ only because their folds' models put that campaign higher or lower. So each
    fold's model is moved to the common mean score of each stratum.

    Parameters
    ----------
    scores : numpy.ndarray
        By each fold's model, (folds, rows) or (folds, rows, classes).
    bags : Bags
        With observed reports.
    fold : numpy.ndarray
        Fold of each bag.
    level : float
        Chance of calling random bags not random.
    """
    if bags.size.max() == 1:
        return True
    mean, rows = np.empty_like(scores), bags.stratum_or_zero[bags.bag]
    for number in np.unique(rows):
        mean[:, rows == number] = scores[:, rows == number].mean(axis=1, keepdims=True)
    own = scores_by_own_fold(scores - mean + mean.mean(axis=0), fold[bags.bag])
    if np.ptp(own) < 1e-9:
        return True
    return diagnose(bags.bare(), own, level=level).random
