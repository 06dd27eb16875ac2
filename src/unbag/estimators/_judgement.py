"""Judging estimators from bags: a scorer and folds of whole bags for scikit-learn, and cross-
validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator

from unbag._lazy import as_html
from unbag._rules import broken, one_of
from unbag.bags import Bags, Kind, from_rows
from unbag.diagnosis import diagnose
from unbag.estimators._network import LOOK_AT
from unbag.estimators._targets import RowReports, bag_targets, carries_bags, row_reports
from unbag.learners import folds_of
from unbag.losses import proper_loss
from unbag.metrics import (
    Evaluation,
    evaluate,
    evaluate_counts,
    evaluate_folds,
    evaluate_labels,
    learner,
    scores_on,
)


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
                rule = "A splitter by bag must know the bags"
                remedy = "Give y=unbag.bag_targets(y, bag)."
                raise broken(rule, "neither groups= nor a y of bag_targets given", remedy)
            rows = row_reports(y)
            bag, stratum = rows.bag, rows.stratum
        fold = _folds(bag, stratum, self.n_splits, self.random_state)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def _folds(bag: Any, stratum: Any, count: int, seed: int) -> np.ndarray:
    """The fold of each row, the same throughout its bag."""
    first, number = np.unique(np.asarray(bag), return_index=True, return_inverse=True)[1:]
    if len(first) < 2 * count:
        rule = f"There must be two bags for each of {count} folds"
        raise broken(rule, f"{len(first)} given", "Make fewer folds with {n_splits}.")
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
        rule = "There must be two bags for each of two folds"
        raise broken(rule, f"{len(bags)} given", "Get more reports.")
    models = []
    for k in range(int(fold.max()) + 1):
        one: Any = clone(model)
        learn = bags.take(np.flatnonzero(fold != k))
        if hasattr(one, "fit_bags"):
            models.append(one.fit_bags(learn))
        else:  # what takes no bags takes a y that carries them
            further = {"noise": learn.noise, "stratum": learn.stratum}
            by_row = {name: v[learn.bag] for name, v in further.items() if v is not None}
            y = bag_targets(learn.report[learn.bag], learn.bag, **by_row)
            models.append(one.fit(learn.X, y))
    scores = np.stack([scores_on(one, bags) for one in models])
    own = scores[fold[bags.bag], np.arange(len(bags.bag))]
    if bags.size.max() == 1 or diagnose(bags, most=LOOK_AT).random:
        evaluation = evaluate_folds(scores, bags, fold)
    else:
        prior = proper_loss(bags.kind).trivial_score(bags.overall_prior, kind=bags.kind)
        trivial = np.broadcast_to(prior, own.shape)
        evaluation = evaluate_counts(own, bags, trivial=trivial, why="the bags are not random")
    return CrossValidation(evaluation, tuple(models), fold, own)


def estimate_loss(
    score: np.ndarray, y: Any, bag: Any, kind: Kind, *, sample_weight: Any = None, **further: Any
) -> float:
    """Mean log loss (cross entropy, Poisson) from labels, or from bags with the model's own
    prediction as reference.

    Parameters
    ----------
    score : array
        Scores of the rows.
    y : array
        Of each row the report of its bag, or its label.
    bag : array, optional
        Id of each row's bag.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    sample_weight : array, optional
        Of labelled rows.
    **further : array
        `stratum` and `noise` of the rows' bags.
    """
    loss = proper_loss(kind)
    if bag is None:
        return float(np.average(loss.value(score, y, kind=kind), weights=sample_weight))
    bags = from_rows(bag, y, kind=kind, **further)
    estimates = evaluate(score, bags, losses=[loss], scale="score").estimates
    return next(iter(estimates.values())).value


def refuse_cut_bags(model: Any, rows: RowReports) -> None:
    """Refuse rows that are the rest of bags of which other rows were learned from.

    Two tables may be numbered alike by chance; then their reports are not all the same.

    Parameters
    ----------
    model : estimator
        Which remembers the bags that it learned from.
    rows : RowReports
        What it is to be judged by.
    """
    known = getattr(learner(model), "bags_", None)
    if known is None or rows.bag is None or known.names is None:
        return
    names, first, size = np.unique(np.asarray(rows.bag), return_index=True, return_counts=True)
    shared, i, j = np.intersect1d(known.names, names, return_indices=True)
    same = np.isclose(known.report[i], rows.y[first[j]].astype(float)).all()
    cut = np.flatnonzero(known.size[i] != size[j])
    if len(shared) > 1 and same and len(cut):
        one = cut[0]
        raise broken(
            "A bag must stay whole, to learn from or to judge by",
            f"bag {shared[one]} had {known.size[i][one]} rows at fit and has {size[j][one]} others "
            f"here ({len(cut)} such)",
            "Split by bag: cv=unbag.BagKFold(), or GroupKFold() with groups=bag.",
        )


class BagScorer:
    """A scorer for GridSearchCV and cross_validate that receives `bag`: log loss, AUC or Brier
    score from bags alone.

    A plain function never receives `bag` in a grid search, and every score is then NaN; this object
    asks for it, for the `stratum` and `noise` of the rows' bags, and for the rows' `offset`, where
    there are any.

    >>> BagScorer("auc")
    BagScorer('auc')
    """

    def __init__(self, metric: str) -> None:
        one_of("A metric", metric, SIGNS)
        self.metric = metric

    def __repr__(self) -> str:
        return f"BagScorer({self.metric!r})"

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        bag: Any = None,
        stratum: Any = None,
        noise: Any = None,
        offset: Any = None,
    ) -> float:
        """The score of a fitted estimator, the larger the better."""
        given = {"bag": bag, "stratum": stratum, "noise": noise}
        beside = {} if offset is None else {"offset": offset}  # pipelines take only what there is
        if self.metric == "log_loss":
            known = {name: value for name, value in given.items() if value is not None}
            return estimator.score(X, y, **known, **beside)
        rows = row_reports(y, **given)
        refuse_cut_bags(estimator, rows)
        probability = estimator.predict_proba(X, **beside)[:, 1]
        if rows.bag is None:
            labels = rows.y == estimator.classes_[1]
            evaluation = evaluate_labels(probability, labels, scale="probability")
        else:
            about = {"stratum": rows.stratum, "noise": rows.noise}
            bags = from_rows(rows.bag, rows.y.astype(float), **about)
            evaluation = evaluate(probability, bags, scale="probability")
        return SIGNS[self.metric] * evaluation[self.metric].value

    def get_metadata_routing(self) -> Any:
        """Ask for `bag`, `stratum`, `noise` and `offset` when scoring."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner="BagScorer")
        for name in ("bag", "stratum", "noise", "offset"):
            request.score.add_request(param=name, alias=True)
        return request


SIGNS = {"log_loss": -1, "auc": 1, "brier": -1}
