"""Folds of whole bags: a splitter for scikit-learn, and cross-validation from bags alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator

from unbag._lazy import as_html
from unbag._rules import broken
from unbag.bags import Bags
from unbag.diagnosis import diagnose
from unbag.estimators._network import LOOK_AT, overall_prior
from unbag.estimators._targets import bag_targets, carries_bags, row_reports
from unbag.learners import folds_of
from unbag.methods import usual_loss
from unbag.metrics import Evaluation, evaluate_counts, evaluate_folds, scores_on


class BagKFold(BaseCrossValidator):
    """Folds of whole bags (within strata), for ``cv=`` of scikit-learn's searches.

    Which bag a row is in is taken from the `y` that `bag_targets` made, so that no metadata
    routing is needed; else from `groups`.

    Parameters
    ----------
    n_splits : int
        How many folds.
    random_state : int
        Which of the possible folds.

    >>> y = bag_targets([0.5, 0.5, 1.0, 0.0, 1.0], ["a", "a", "b", "c", "d"])
    >>> [len({y[i].bag for i in test}) for _, test in BagKFold(2).split(np.zeros(5), y)]
    [2, 2]
    """

    __metadata_request__split: ClassVar = {"groups": True}  # with routing they come by themselves

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> int:
        """How many folds; the arguments, see `split`, are not looked at."""
        return self.n_splits

    def split(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from and rows to judge by, fold by fold.

        Parameters
        ----------
        X : array or frame
            Rows.
        y : array
            What `bag_targets` made of their bags; or anything, with `groups`.
        groups : array, optional
            Id of each row's bag.
        """
        bag, stratum = groups, None
        if groups is None:
            if not carries_bags(y):
                raise broken(
                    "A splitter by bag must know the bags",
                    "neither groups= nor a y of bag_targets given",
                    "Give y=unbag.bag_targets(y, bag).",
                )
            rows = row_reports(y)
            bag, stratum = rows.bag, rows.stratum
        fold = _folds(bag, stratum, self.n_splits, self.random_state)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def _folds(bag: Any, stratum: Any, count: int, seed: int) -> np.ndarray:
    """The fold of each row, the same throughout its bag."""
    first, number = np.unique(np.asarray(bag), return_index=True, return_inverse=True)[1:]
    if len(first) < 2 * count:
        raise broken(
            f"There must be two bags for each of {count} folds",
            f"{len(first)} given",
            "Make fewer folds with {n_splits}.",
        )
    if stratum is not None:
        stratum = np.unique(np.asarray(stratum)[first], return_inverse=True)[1]
    bags = Bags(np.arange(len(first)), np.zeros(len(first)), stratum=stratum)
    return folds_of(bags, count, seed=seed)[number]


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """What all bags say of a way to learn, each judged by a model that never saw it.

    Parameters
    ----------
    evaluation : Evaluation
        Every metric with its interval.
    models : tuple
        The model of each fold.
    fold : numpy.ndarray
        Fold of each bag.
    scores : numpy.ndarray
        Of each row, by the model of its fold.
    """

    evaluation: Evaluation
    models: tuple[Any, ...]
    fold: np.ndarray
    scores: np.ndarray

    def __repr__(self) -> str:
        return f"CrossValidation({len(self.models)} folds)\n{self.evaluation}"

    def _repr_html_(self) -> str:
        return as_html(self.evaluation)


def cross_validate(model: Any, bags: Bags, *, folds: int = 5, seed: int = 0) -> CrossValidation:
    """Judge a way to learn by all bags: each by a copy that learned from the other folds.

    The interval knows that the folds share bags. Where bags are not random no loss can be
    estimated without bias: the likelihood of the held-out reports judges instead.

    Parameters
    ----------
    model : estimator
        `BagClassifier`, `BagRegressor`, or a pipeline or search that ends in one; it is copied, and
        stays as it is.
    bags : Bags
        With features.
    folds : int
        How many; fewer where bags are few.
    seed : int
        Which of the possible folds.

    >>> from unbag import BagClassifier, random_bags
    >>> x = np.random.default_rng(0).normal(size=(2000, 1))
    >>> y = np.random.default_rng(1).random(2000) < 1 / (1 + np.exp(-2 * x[:, 0]))
    >>> bags = random_bags(x, y, size=5, seed=0)
    >>> found = cross_validate(BagClassifier(learner="additive", folds=2), bags, folds=2)
    >>> bool(found.evaluation["auc"].value > 0.7)
    True
    """
    if bags.X is None:
        raise broken("Bags to learn from must have features", "X is None", "Make them with X.")
    bags = bags.reported()
    fold = folds_of(bags, folds, seed=seed)
    if fold.max() < 1:
        raise broken(
            "There must be two bags for each of two folds",
            f"{len(bags)} given",
            "Get more reports.",
        )
    numbers = range(int(fold.max()) + 1)
    models = [_fit_on(clone(model), bags.take(np.flatnonzero(fold != k))) for k in numbers]
    scores = np.stack([scores_on(one, bags) for one in models])
    own = scores[fold[bags.bag], np.arange(len(bags.bag))]
    return CrossValidation(_judged(scores, own, bags, fold), tuple(models), fold, own)


def _fit_on(model: Any, bags: Bags) -> Any:
    """Fit to bags what takes bags, and everything else by a y that carries them."""
    if hasattr(model, "fit_bags"):
        return model.fit_bags(bags)
    further = {"noise": bags.noise, "stratum": bags.stratum}
    by_row = {name: v[bags.bag] for name, v in further.items() if v is not None}
    return model.fit(bags.X, bag_targets(bags.report[bags.bag], bags.bag, **by_row))


def _judged(scores: np.ndarray, own: np.ndarray, bags: Bags, fold: np.ndarray) -> Evaluation:
    diagnosis = diagnose(bags, most=LOOK_AT)
    if bags.size.max() == 1 or diagnosis.random:
        return evaluate_folds(scores, bags, fold)
    prior = usual_loss("any", bags.kind).trivial_score(overall_prior(bags), kind=bags.kind)
    trivial = np.broadcast_to(prior, own.shape)
    return evaluate_counts(own, bags, trivial=trivial, why="the bags are not random")
