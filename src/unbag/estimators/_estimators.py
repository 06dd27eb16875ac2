"""The two estimators, of classes and of counts, and the files that they are loaded from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import assert_all_finite, column_or_1d

from unbag._model_file import Misfit, load_arrays, unlike_saved
from unbag._rules import broken
from unbag.bags import Bags, Kind
from unbag.estimators._base import BagEstimator, Targets
from unbag.estimators._network import Training
from unbag.estimators._targets import RowReports, as_reports, check_rows, row_reports
from unbag.losses import named_loss

if TYPE_CHECKING:
    from unbag.estimators._base import BagEstimator

OTHER_LABELS = (
    "Fit again with all classes; where these are proportions, give bag= too, in searches and "
    "cross-validation by set_score_request(bag=True) and enable_metadata_routing."
)


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
            rule = "A loss of a classifier must be one of probabilities"
            remedy = "Leave loss out, or take BagRegressor."
            raise broken(rule, "poisson given, which is one of counts", remedy)
        return super()._training()

    def _name_classes(self, bags: Bags, classes: Sequence[Any] | None) -> None:
        if bags.kind == "total":
            rule = "Bags of a classifier must report proportions or class shares"
            raise broken(rule, "they report totals of counts", "Take BagRegressor.")
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
            rule = "There must be at least two classes"
            remedy = "Nothing can be learned from one class; with partial_fit, pass classes=."
            raise broken(rule, f"only class {known[0]} given", remedy)
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
            rule = f"A label must be one of the classes {self.classes_.tolist()}"
            raise broken(rule, f"{y[~known][0]} given", OTHER_LABELS)
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
            rule = "Bags of a regression must report totals of counts"
            remedy = "Take BagClassifier, or join with {kind:total}."
            raise broken(rule, f"their kind is {bags.kind}", remedy)

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


MIDDAY = 1_600_000_000 * 1_000_000  # some moment, in microseconds


def load(path: str | Path) -> BagEstimator:
    """An estimator that `save` wrote, with the same predictions.

    The file is checked as a whole before: its digest, the shapes of its arrays, and by a prediction
    of two rows.
    """
    arrays, settings = load_arrays(path)
    kinds = {"BagClassifier": BagClassifier, "BagRegressor": BagRegressor}
    named = settings.get("estimator")
    if not isinstance(named, str) or named not in kinds:
        rule = f"A model file must hold one of {', '.join(kinds)}"
        raise broken(rule, f"{named} given", "Use the unbag that saved it.")
    try:
        model = kinds[named].restore(arrays, settings)
        try_out(model)
    except ImportError:
        raise  # of a library that the model needs
    except Exception as error:  # of whatever kind: the content fits no model
        raise unlike_saved(path, str(error).split("\n")[0] or type(error).__name__) from error
    return model


def try_out(model: Any) -> None:
    """Raise an error unless the parts of a model fit together.

    Parameters
    ----------
    model : BagEstimator
        Just read from a file.
    """
    if model.kind_ not in get_args(Kind):
        raise Misfit(f"kind {model.kind_!r} is not known")
    named_loss(model.loss_)
    marks, old, plan = model.learned_, model.old_score_, model.plan_
    if marks is not None and (marks.shape[1:] != (3,) or marks.dtype.kind not in "iu"):
        raise Misfit("the marks of its bags are no numbers")
    if old is not None and not (
        isinstance(old.column, str) and {type(flag) for flag in old[1:]} == {bool}
    ):
        raise Misfit("its old score has no name")
    if plan is None:
        return
    # Two rows, one without values: the predictions must be finite, and as many as the classes.
    two = {}
    for column in plan.used:
        if column.kind == "date":
            two[column.name] = pa.array([None, MIDDAY], pa.timestamp("us"))
        else:
            known = column.mean if column.kind == "numeric" else (*column.values, "true")[0]
            two[column.name] = pa.array([None, known])
    X = plan.columns_of(pa.table(two)) if model.takes_tables else plan.features(pa.table(two))
    predicted = model._link(model.scores_at(X, None))
    expected = (2,) if model.kind_ == "total" else (2, len(model.classes_))
    if predicted.shape != expected or not np.isfinite(predicted).all():
        raise Misfit("its predictions are no numbers")
