"""A regression of single counts, learned from mean counts of bags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from unbag._rules import broken
from unbag.bags import Bags
from unbag.estimators._base import BagEstimator, Targets
from unbag.estimators._targets import RowReports, as_reports, check_rows, row_reports


class BagRegressor(RegressorMixin, BagEstimator):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A regression of single counts, learned from the mean counts of bags; Poisson loss by default.

    Parameters are those of `BagClassifier`; `loss` is "poisson" (predictions are exp(score)) or
    "square".

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> counts, bag = rng.poisson(np.exp(0.5 * X[:, 0])), np.arange(2000) // 5
    >>> y = np.bincount(bag, weights=counts)[bag] / 5
    >>> model = BagRegressor().fit(X, y, bag=bag)
    >>> bool(np.corrcoef(model.predict(X), np.exp(0.5 * X[:, 0]))[0, 1] > 0.9)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True
        return tags

    def partial_fit(
        self, X: Any, y: Any, bag: Any = None, *, stratum: Any = None, noise: Any = None
    ) -> BagRegressor:
        """Go on learning with one epoch over these bags (Adam starts afresh each time).

        The model is one network, as with `method`; another kind of model is replaced by it.

        Parameters
        ----------
        X, y, bag, stratum, noise : array
            See `fit`.
        """
        return self._go_on(X, row_reports(y, bag, stratum, noise))

    def _name_classes(self, bags: Bags, classes: Sequence[Any] | None) -> None:
        if bags.kind != "total":
            raise broken(
                "Bags of a regression must report totals of counts",
                f"their kind is {bags.kind}",
                "Take BagClassifier, or join with {kind:total}.",
            )

    def _targets(self, rows: RowReports, count: int) -> Targets:
        y, bag = column_or_1d(as_reports(rows.y), warn=True), rows.bag
        check_rows(rows, count)
        if bag is None:
            bag = np.arange(count)
        return y, bag, "total"

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """The expected count.

        Parameters
        ----------
        X, offset : array
            See `fit`.
        """
        return self._link(self._scores(X, offset))

    # that of bags, not the one of scikit-learn
    score = BagEstimator.score  # pyright: ignore[reportAssignmentType]
