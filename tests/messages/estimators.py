"""Bad input of estimators, and the whole message that it gets."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from safetensors.numpy import save_file

from cases.estimators import BAG, LABELS, ONE, X, Y, settings
from unbag import _model_file
from unbag.bags import from_rows
from unbag.estimators import (
    BagClassifier,
    BagKFold,
    BagRegressor,
    BagScorer,
    bag_targets,
    cross_validate,
    load,
    to_onnx,
)
from unbag.learners import Additive, fit
from unbag.tables import Column, FeaturePlan


def file_with(tmp, text):
    """A model file whose settings or bytes are not ours."""
    path = Path(tempfile.mkdtemp()) / "model.unbag"
    if tmp == "cut":
        BagClassifier(hidden=(), epochs=1).fit(X, Y, bag=BAG).save(path)
        path.write_bytes(path.read_bytes()[:-20])
    else:
        path.write_bytes(_model_file.as_bytes({"a": np.zeros(1)}, text))
    return path


def file_of_others():
    path = Path(tempfile.mkdtemp()) / "model.unbag"
    save_file({"a": np.zeros(1)}, path)
    return path


def hashed():
    """A model of a column of buckets."""
    column = Column("shop", "hash", buckets=16)
    table = pa.table({"shop": [f"s{i % 9}" for i in range(80)]})
    learner = Additive(plan=FeaturePlan((column,)))
    with warnings.catch_warnings():  # there is nothing to learn here
        warnings.simplefilter("ignore")
        return fit(from_rows(BAG, Y, X=table), learner=learner, folds=2)


MESSAGES = [
    (
        lambda: ONE.fit(X, np.where(np.arange(80) == 3, 0.99, Y), bag=BAG),
        f"A report must be the same for all rows of a bag: bag {BAG[3]} has 0.99 and {Y[3]} (1 "
        "such bag). Give every row its bag's report; where these are labels of the rows, their mean in "
        "each bag.",
    ),
    (
        lambda: ONE.fit(X, np.full(len(X), "yes"), bag=BAG),
        "y must hold numbers, the report of each row's bag: np.str_('yes') given. "
        "Give the share or mean count of each bag; labels of single rows come without bag=.",
    ),
    (
        lambda: ONE.fit(X, pd.Series(Y[:2], index=["b", "b"]), bag=["a", "b"] * 40),
        "Reports indexed by the bags must have one entry for each bag: bag a has none. Add it, or "
        "keep one of them; rows of a bag without a report must be left out.",
    ),
    (
        lambda: BagClassifier(epochs=0).fit(X, Y, bag=BAG),
        "Epochs must be a whole number of at least 1: 0 given. Leave epochs= out for the usual "
        "number.",
    ),
    (
        lambda: BagClassifier(folds=1).fit(X, Y, bag=BAG),
        "There must be at least two folds: 1 given. Leave folds= out.",
    ),
    (
        lambda: ONE.fit(X, Y, bag=[None, *BAG[1:]]),
        (
            "A bag id must not be missing: row 0 has None (1 such row). Drop such rows or give "
            "them a bag."
        ),
    ),
    (
        lambda: ONE.fit(X, np.full(80, 0.5), bag=np.zeros(80, int)),
        (
            "There must be at least two bags: 1 given (n_samples=80). One bag says nothing about "
            "who is who in it."
        ),
    ),
    (
        lambda: ONE.fit(X, np.ones(80)),
        "There must be at least two classes: only class 1.0 given. Nothing can be learned from "
        "one class; with partial_fit, pass classes=.",
    ),
    (
        lambda: BagClassifier(hidden=(), epochs=1).fit(X, LABELS).partial_fit(X, LABELS + 1),
        (
            "A label must be one of the classes [0, 1]: 2 given. Fit again with all classes; where "
            "these are proportions, give bag= too, in searches and cross-validation by "
            "set_score_request(bag=True) and enable_metadata_routing."
        ),
    ),
    (
        lambda: ONE.fit(X, Y[:-1], bag=BAG),
        "y must have one entry for each row: 79 given for 80 rows. Give each row its own.",
    ),
    (
        lambda: BagRegressor(epochs=1).fit(X, Y[:-1], bag=BAG),
        "y must have one entry for each row: 79 given for 80 rows. Give each row its own.",
    ),
    (
        lambda: ONE.fit(X, Y[:: len(Y) // len(np.unique(BAG))], bag=BAG),
        (
            "y must have one entry for each row: 10 given for 80 rows, as many as there are bags "
            "(10). Give each row what its bag reported, as in y[bag] for bags numbered from 0, or "
            "a pandas Series or DataFrame indexed by the bag ids."
        ),
    ),
    (lambda: ONE.fit(X, None), "requires y to be passed, but the target y is None"),
    (lambda: BagRegressor().fit(X, None), "requires y to be passed, but the target y is None"),
    (
        lambda: ONE.fit(X, Y, bag=BAG, sample_weight=np.ones(80)),
        "Rows in bags must not have weights: sample_weight given with bag. A report speaks of "
        "its whole bag; declare noise with Bags(noise=...) instead.",
    ),
    (
        lambda: ONE.fit(X, LABELS, sample_weight=np.zeros(80)),
        "Sample weights must be finite, not negative, not all zero, and one for each of 80 "
        "rows: an array of shape (80,) and sum 0 given. Leave the weights out for equal ones.",
    ),
    (
        lambda: BagClassifier(loss="hinge").fit(X, Y, bag=BAG),
        (
            "A loss must be one of log, square, poisson, cross_entropy, brier: 'hinge' given. "
            "Choose one of these."
        ),
    ),
    (
        lambda: BagClassifier(loss="poisson").fit(X, Y, bag=BAG),
        "A loss of a classifier must be one of probabilities: poisson given, which is one of "
        "counts. Leave loss out, or take BagRegressor.",
    ),
    (
        lambda: BagClassifier(learning_rate=1e38, epochs=2).fit(X, Y, bag=BAG),
        (
            "A training must not diverge: all of 1 runs did. Scale the features, or lower "
            "learning_rate (now 1e+38)."
        ),
    ),
    (lambda: BagScorer("f1"), "A metric must be one of log_loss, auc, brier: 'f1' given. Choose one of these."),
    (
        lambda: BagScorer("auc")(BagClassifier(hidden=(), epochs=1).fit(X, LABELS), X, 0 * Y, bag=BAG),
        "A metric must be one of log_loss, brier, mean_prediction, mean_report, "
        "prediction_minus_report: 'auc' given. The AUC is not defined: the mean report is 0, so "
        "one of the two labels is missing.",
    ),
    (
        lambda: load(file_with("", settings(format=99, unbag="9.9"))),
        "A model file must have format 2: model.unbag has 99, saved by unbag 9.9. Load it with "
        "that version, or train again.",
    ),
    (
        lambda: load(file_with("", settings(estimator="BagForest"))),
        (
            "A model file must hold one of BagClassifier, BagRegressor: BagForest given. Use the "
            "unbag that saved it."
        ),
    ),
    (
        lambda: load(file_with("cut", None)),
        "A model file must be whole: model.unbag is cut short, has changed or is something else. Save it again.",
    ),
    (
        lambda: load(file_of_others()),
        (
            "A model file must have been saved by unbag: model.unbag was not. Load it with what "
            "wrote it."
        ),
    ),
    (
        lambda: ONE.fit(X, Y),
        "y must hold labels where no bag is given: Unknown label type: continuous, of shape (80,). "
        "If these are shares that bags report, say which bag each row is in with bag=.",
    ),
    (
        lambda: ONE.fit(X, bag_targets(Y, BAG), bag=BAG),
        "A y of bag_targets must come alone: bag given too. Leave bag= out.",
    ),
    (
        lambda: ONE.fit(X[1:], bag_targets(Y, BAG)[1:]),
        f"A bag must stay whole: bag {BAG[0]} has 7 of its 8 rows here (1 such). Split by "
        "bag: cv=unbag.BagKFold().",
    ),
    (
        lambda: BagClassifier(hidden=(), epochs=1).fit(X, Y, bag=BAG).score(X[1:], Y[1:], bag=BAG[1:]),
        f"A bag must stay whole, to learn from or to judge by: bag {BAG[0]} had 8 rows at fit and "
        "has 7 others here (1 such). Split by bag: cv=unbag.BagKFold(), or GroupKFold() with "
        "groups=bag.",
    ),
    (
        lambda: next(BagKFold().split(X, Y)),
        "A splitter by bag must know the bags: neither groups= nor a y of bag_targets given. Give "
        "y=unbag.bag_targets(y, bag).",
    ),
    (
        lambda: next(BagKFold(6).split(X, bag_targets(Y, BAG))),
        "There must be two bags for each of 6 folds: 10 given. Make fewer folds with n_splits=.",
    ),
    (
        lambda: cross_validate(ONE, from_rows(BAG, Y)),
        "Bags to learn from must have features: X is None. Make them with X.",
    ),
    (
        lambda: cross_validate(ONE, from_rows(BAG, Y, X=X).take([0, 1, 2])),
        "There must be two bags for each of two folds: 3 given. Get more reports.",
    ),
    (
        lambda: to_onnx(BagClassifier(hidden=(), epochs=1).fit(X, LABELS), "model.onnx"),
        "A model for ONNX must be made of the additive model and trees: one network given. Fit with "
        "learner='additive', trees or both, or serve one network with export().",
    ),
    (
        lambda: to_onnx(hashed(), "model.onnx"),
        "A column for ONNX must have at most 4,096 values: 'shop' has more and is hashed. Leave it "
        "out, or group its rare values.",
    ),
]  # fmt: skip
