"""Rows with the mean counts of their bags in, a regression of single counts out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from unbag._rules import broken
from unbag.bags import Bags
from unbag.estimators._base import BagEstimator
from unbag.estimators._fit import row_importance
from unbag.estimators._scorer import estimate_loss
from unbag.tables._plan import FeaturePlan


class BagRegressor(RegressorMixin, BagEstimator):
    """A regression of single counts, learned from the mean counts of bags; Poisson loss by default.

    Parameters are those of `BagClassifier`; `loss` is "poisson" (predictions are exp(score)) or
    "square".

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> counts, bag = rng.poisson(np.exp(0.5 * X[:, 0])), np.arange(2000) // 5
    >>> y = np.bincount(bag, weights=counts)[bag] / 5
    >>> model = BagRegressor(hidden=()).fit(X, y, bag=bag)
    >>> bool(np.corrcoef(model.predict(X), np.exp(0.5 * X[:, 0]))[0, 1] > 0.9)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True
        return tags

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
    ) -> BagRegressor:
        """Learn from the mean count of each row's bag, or from counts when no bag is given; see
        `BagClassifier.fit`."""
        further = {"stratum": stratum, "noise": noise, "prior": prior}
        return self._whole(lambda learner: learner._fit(X, y, bag, sample_weight, plan, **further))

    def partial_fit(
        self, X: Any, y: Any, bag: Any = None, *, stratum: Any = None, noise: Any = None
    ) -> BagRegressor:
        """Go on learning with one epoch over these bags (Adam starts afresh each time)."""
        if not hasattr(self, "model_"):
            return self._first_epoch(
                lambda learner: learner._fit(X, y, bag, None, None, stratum=stratum, noise=noise)
            )
        self._next_epoch(self._counts(X, y, bag, reset=False, stratum=stratum, noise=noise))
        return self

    def _fit(self, X: Any, y: Any, bag: Any, sample_weight: Any, plan: Any, **further: Any) -> None:
        self.plan_ = plan
        bags = self._counts(X, y, bag, reset=True, **further)
        self._learn(bags, row_importance(sample_weight, len(bags.bag), labelled=bag is None))

    def _counts(self, X: Any, y: Any, bag: Any, *, reset: bool, **further: Any) -> Bags:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        X = self._features(X, reset=reset)
        y = column_or_1d(np.asarray(y, float), warn=True)
        if len(y) != len(X):
            raise broken(
                "y must have one entry for each row",
                f"{len(y)} came for {len(X)} rows",
                "Give each row its own.",
            )
        return self._bags(X, y, np.arange(len(X)) if bag is None else bag, "total", **further)

    def predict(self, X: Any) -> np.ndarray:
        """The expected count."""
        return self._link(self._scores(X))

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
        """Minus the Poisson loss (its constant left out), from bags or from counts."""
        rate = np.log(np.maximum(self.predict(X), 1e-12))
        weight = row_importance(sample_weight, len(rate), labelled=bag is None)
        return -estimate_loss(
            rate,
            np.asarray(y, float),
            bag,
            "total",
            sample_weight=weight,
            stratum=stratum,
            noise=noise,
        )
