"""Rows with proportions or class shares of their bags in, a classifier of single rows out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from unbag._rules import broken
from unbag.bags import Kind
from unbag.estimators._base import BagEstimator
from unbag.estimators._fit import flat, row_importance
from unbag.estimators._scorer import estimate_loss
from unbag.losses import Loss
from unbag.tables._plan import FeaturePlan


class BagClassifier(ClassifierMixin, BagEstimator):
    """A classifier of single rows, learned from what bags of rows report.

    Parameters
    ----------
    method : "anchored" (default), "upm", "easy", "matching", "likelihood"; "auto" trains several
        and lets held-out bags choose among them, see `unbag.choose` (`choice_` tells how).
    loss : by default square (Brier) for anchored, the log loss (cross entropy) for the others.
    hidden : widths of hidden layers; () is a linear model.
    learning_rate : of Adam; "auto" lets held-out bags choose among 1e-3, 3e-3, 1e-2 and 3e-2,
        trained together.
    epochs, patience : at most so many, and stop when held-out bags see no improvement for so many.
    batch : about how many rows at a time, in whole bags.
    held_out : share of the bags that choose rate and epoch (with 10 bags or more); 0 for none.
    weight_decay, random_state : as usual. devices, microbatch : as in `unbag.sweep`.
    diagnose : whether to look if the bags are random, and warn (BagsNotRandom) with the remedy if
        they are not.

    The model starts at the trivial predictor, the prior. Rows are scaled to mean 0 and variance 1
    by themselves.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> labels = X[:, 0] + rng.logistic(size=2000) > 1
    >>> bag = np.arange(2000) // 8                                   # 250 bags of 8, and what each reports
    >>> y = np.bincount(bag, weights=labels)[bag] / 8
    >>> model = BagClassifier(hidden=()).fit(X, y, bag=bag)
    >>> bool(np.mean((model.predict_proba(X)[:, 1] > 0.5) == labels) > 0.7)
    True
    """

    def fit(
        self,
        X: Any,
        y: Any,
        bag: Any = None,
        sample_weight: Any = None,
        *,
        stratum: Any = None,
        noise: Any = None,
        prior: Any = None,
        plan: FeaturePlan | None = None,
    ) -> BagClassifier:
        """Learn from bags, or from labels when no bag is given.

        Parameters
        ----------
        X : rows of features: an array, a data frame, an Arrow table or a sparse matrix.
        y : with `bag`, for each row the proportion (or the row of class shares) that its bag
            reported; else labels.
        bag : id of each row's bag.
        sample_weight : of each row, only without bags: a report speaks of its whole bag. Rows with
            weights are learned from by the method "labels", whichever was chosen, because only
            there does a row's weight change what is estimated; nothing is held out.
        stratum : of each row, the same throughout a bag, when bags are random only within strata
            (campaigns, days).
        noise : of each row, variance of the noise on its bag's count, the same throughout a bag.
        prior : the mean label (or the class shares) if it is known from elsewhere, see `Bags`; else
            the mean report.
        plan : how X was made from a table, see `unbag.tables`: its hashed columns get embeddings,
            and it is saved with the model.
        """
        further = {"stratum": stratum, "noise": noise, "prior": prior}
        return self._whole(lambda learner: learner._fit(X, y, bag, sample_weight, plan, **further))

    def partial_fit(
        self,
        X: Any,
        y: Any,
        bag: Any = None,
        classes: Any = None,
        *,
        stratum: Any = None,
        noise: Any = None,
    ) -> BagClassifier:
        """Go on learning with one epoch over these bags (Adam starts afresh each time).

        The first call needs `classes` when y are labels and not all classes are among them.
        """
        further = {"stratum": stratum, "noise": noise}
        if not hasattr(self, "model_"):
            return self._first_epoch(
                lambda learner: learner._fit(X, y, bag, None, None, classes=classes, **further)
            )
        X = self._features(X, reset=False)
        self._next_epoch(
            self._bags(X, *self._reports(y, bag, len(X), self.classes_), self.kind_, **further)
        )
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        bag: Any,
        sample_weight: Any,
        plan: Any,
        *,
        classes: Any = None,
        **further: Any,
    ) -> None:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        self.plan_ = plan
        X = self._features(X, reset=True)
        labelled = bag is None
        y, bag, kind = self._targets(y, bag, len(X), classes)
        importance = row_importance(sample_weight, len(X), labelled=labelled)
        self._learn(self._bags(X, y, bag, kind, **further), importance)

    def _loss(self, kind: Kind, method: str) -> Loss:
        loss = super()._loss(kind, method)
        if loss.name == "poisson":
            raise broken(
                "A loss of a classifier must be one of probabilities",
                "poisson came, which is one of counts",
                "Leave loss out, or take BagRegressor.",
            )
        return loss

    def _targets(self, y: Any, bag: Any, count: int, classes: Any) -> tuple[Any, Any, Kind]:
        """Reports per row, bag ids, and what they are."""
        y = np.asarray(y)
        if len(y) != count:
            raise broken(
                "y must have one entry for each row",
                f"{len(y)} came for {count} rows",
                "Give each row its own.",
            )
        if bag is None:
            y = column_or_1d(y, warn=True)
            assert_all_finite(y, input_name="y")
            check_classification_targets(y)
            self.classes_ = np.unique(y) if classes is None else np.unique(classes)
            if len(self.classes_) < 2:
                raise broken(
                    "There must be at least two classes",
                    f"only class {self.classes_[0]} came",
                    "Nothing can be learned from one class; with partial_fit, pass classes=.",
                )
        else:
            self.classes_ = np.arange(2 if flat(y).ndim == 1 else y.shape[1])
        reports, bag = self._reports(y, bag, count, self.classes_)
        return (
            reports,
            bag,
            "binary" if len(self.classes_) == 2 and reports.ndim == 1 else "histogram",
        )

    def _reports(self, y: Any, bag: Any, count: int, classes: np.ndarray) -> tuple[np.ndarray, Any]:
        y = flat(y)
        if bag is not None:
            return y.astype(float), bag
        number = np.searchsorted(classes, y)
        known = (number < len(classes)) & (classes[np.minimum(number, len(classes) - 1)] == y)
        if not known.all():
            raise broken(
                f"A label must be one of the classes {list(classes)}",
                f"{y[~known][0]} came",
                "Fit anew with all classes.",
            )
        reports = number.astype(float) if len(classes) == 2 else np.eye(len(classes))[number]
        return reports, np.arange(count)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: one logit per row, or one per class."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class."""
        return self._link(self._scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        probability = self.predict_proba(X)
        return self.classes_[np.argmax(probability, axis=1)]

    def score(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        X: Any,
        y: Any,
        bag: Any = None,
        sample_weight: Any = None,
        *,
        stratum: Any = None,
        noise: Any = None,
    ) -> float:
        """Minus the log loss: estimated from bags without bias when `bag` is given, else from
        labels."""
        score = self._scores(X)
        weight = row_importance(sample_weight, len(score), labelled=bag is None)
        y, bag, kind = self._score_targets(y, bag, len(score))
        return -estimate_loss(
            score, y, bag, kind, sample_weight=weight, stratum=stratum, noise=noise
        )

    def _score_targets(self, y: Any, bag: Any, count: int) -> tuple[np.ndarray, Any, Kind]:
        reports, ids = self._reports(y, bag, count, self.classes_)
        return reports, bag if bag is None else ids, "binary" if reports.ndim == 1 else "histogram"
