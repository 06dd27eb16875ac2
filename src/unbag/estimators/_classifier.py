"""A classifier of single rows, learned from proportions or class shares of bags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import assert_all_finite

from unbag._rules import broken
from unbag.bags import Bags
from unbag.estimators._base import BagEstimator, Targets
from unbag.estimators._network import Training
from unbag.estimators._targets import RowReports, as_reports, check_rows, row_reports


class BagClassifier(ClassifierMixin, BagEstimator):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A classifier of single rows, learned from what bags of rows report.

    By default the additive model and trees are cross-fitted and combined, as `unbag.fit` does it;
    `evaluation_` is what all bags say of the result, `notes_` what to know about it. The options of
    training from `method` to `microbatch` belong to networks: any of them makes the estimator
    train one network, stopped by held-out bags; with ``learner="network"`` those that the network
    learner has go to it.

    Parameters
    ----------
    method : str, optional
        "anchored" (usual), "upm", "easy", "matching", "likelihood"; "auto" trains several and lets
        held-out bags choose among them, see `unbag.choose` (`choice_` tells how).
    loss : str, optional
        By default square (Brier) for anchored, the log loss (cross entropy) for the others.
    learner : str, Learner or a sequence of these
        "auto", "additive", "trees", "network", or learners of your own: see `unbag.fit`.
    folds : int
        Of bags, for learners.
    time_limit : float, optional
        Seconds after which no further learner begins.
    hidden : sequence of int
        Widths of hidden layers; () is a linear model.
    learning_rate : float or "auto"
        Of Adam; "auto" lets held-out bags choose among 1e-3, 3e-3, 1e-2 and 3e-2, trained together.
    epochs, patience : int
        At most so many, and stop when held-out bags see no improvement for so many.
    batch : int
        About how many rows at a time, in whole bags.
    held_out : float
        Share of the bags that choose rate and epoch (with 10 bags or more); 0 for none.
    weight_decay, random_state : float, int
        As usual.
    devices, microbatch : int, optional
        As in `unbag.sweep`.
    diagnose : bool
        Whether to look if the bags are random, and warn (BagsNotRandom) with the remedy if they are
        not.

    A network starts at the trivial predictor, the prior, and takes rows that are scaled to mean 0
    and variance 1 by themselves.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> labels = X[:, 0] + rng.logistic(size=2000) > 1
    >>> bag = np.arange(2000) // 8  # 250 bags of 8, and what each reports
    >>> y = np.bincount(bag, weights=labels)[bag] / 8
    >>> model = BagClassifier().fit(X, y, bag=bag)
    >>> bool(np.mean((model.predict_proba(X)[:, 1] > 0.5) == labels) > 0.7)
    True
    """

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

        The model is one network, as with `method`; another kind of model is replaced by it.

        Parameters
        ----------
        X, y, bag, stratum, noise : array
            See `fit`.
        classes : array, optional
            All of them; the first call needs it when y are labels and some are not among them.
        """
        return self._go_on(X, row_reports(y, bag, stratum, noise), classes)

    def _training(self) -> Training:
        if self.loss == "poisson":
            raise broken(
                "A loss of a classifier must be one of probabilities",
                "poisson given, which is one of counts",
                "Leave loss out, or take BagRegressor.",
            )
        return super()._training()

    def _name_classes(self, bags: Bags, classes: Sequence[Any] | None) -> None:
        if bags.kind == "total":
            raise broken(
                "Bags of a classifier must report proportions or class shares",
                "they report totals of counts",
                "Take BagRegressor.",
            )
        self.classes_ = np.arange(max(2, bags.report[0].size))
        if classes is not None:
            self.classes_ = np.array(classes)

    def _first_targets(self, rows: RowReports, count: int, classes: Any) -> Targets:
        y = rows.y
        check_rows(rows, count)
        if rows.bag is None:
            self.classes_ = self._classes_of(rows, classes)
        elif rows.classes is not None:
            self.classes_ = np.array(rows.classes)
        else:
            self.classes_ = np.arange(y.shape[1] if y.ndim > 1 else 2)
        return self._targets(rows, count)

    def _classes_of(self, rows: RowReports, classes: Any) -> np.ndarray:
        """The classes of labels; shares without bags are refused."""
        if rows.y.dtype.kind == "f":
            assert_all_finite(rows.y, input_name="y")
        kind = type_of_target(rows.y, input_name="y")
        if kind.startswith(("continuous", "unknown")) or rows.y.ndim > 1:
            raise broken(
                "y must hold labels where no bag is given",
                f"Unknown label type: {kind}, of shape {rows.y.shape}",
                "If these are shares that bags report, say which bag each row is in with {bag}.",
            )
        assert_all_finite(rows.y, input_name="y")
        if classes is None:
            classes = rows.y
        known = np.unique(classes)
        if len(known) < 2:
            raise broken(
                "There must be at least two classes",
                f"only class {known[0]} given",
                "Nothing can be learned from one class; with partial_fit, pass classes=.",
            )
        return known

    def _targets(self, rows: RowReports, count: int) -> Targets:
        reports, bag = rows.y, rows.bag
        if bag is None:
            bag, number = np.arange(count), self._class_numbers(rows.y)
            reports = number
            if len(self.classes_) > 2:
                reports = np.eye(len(self.classes_))[number]
        if reports.ndim == 1:
            return as_reports(reports), bag, "binary"
        return as_reports(reports), bag, "histogram"

    def _class_numbers(self, y: np.ndarray) -> np.ndarray:
        """The place of each label among the classes, which a frame of shares may order its way."""
        order = np.argsort(self.classes_)
        place = np.searchsorted(self.classes_, y, sorter=order)
        number = order.take(place, mode="clip")
        known = self.classes_[number] == y
        if not known.all():
            raise broken(
                f"A label must be one of the classes {self.classes_.tolist()}",
                f"{y[~known][0]} given",
                "Fit again with all classes.",
            )
        return number

    def decision_function(self, X: Any, offset: Any = None) -> np.ndarray:
        """Scores: one logit per row, or one per class.

        Parameters
        ----------
        X, offset : array
            See `fit`.
        """
        return self._scores(X, offset)

    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X, offset : array
            See `fit`.
        """
        return self._link(self._scores(X, offset))

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """The most probable class.

        Parameters
        ----------
        X, offset : array
            See `fit`.
        """
        probability = self.predict_proba(X, offset)
        return self.classes_[np.argmax(probability, axis=1)]

    # that of bags, not the one of scikit-learn
    score = BagEstimator.score  # pyright: ignore[reportAssignmentType]
