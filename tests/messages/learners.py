"""Bad input of learners, and the whole message that it gets."""

from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from scipy import sparse

import unbag
from unbag._rules import broken
from unbag.additive._sums import SumsFit, added
from unbag.additive._terms import Term
from unbag.cli._train import train_files
from unbag.datasets import make_conversions
from unbag.learners import LEARNERS, LocalParts, Terms
from unbag.learners._files import bytes_of
from unbag.learners._network_model import NetworkColumns, _dense
from unbag.tables import Column, FeaturePlan, OldScore

RNG = np.random.default_rng(0)

X = RNG.normal(size=(240, 2))

BAGS = unbag.random_bags(X, RNG.uniform(size=240) < 0.4, size=4, seed=0)

COUNTS = unbag.random_bags(X, RNG.poisson(1.0, size=240), size=4, seed=0, kind="total")

ROWS = np.arange(240) // 4

Y = np.bincount(ROWS, weights=X[:, 0] + RNG.normal(size=240) > 0)[ROWS] / 4

EVENTS = pa.table({"bag": [0, 0, 1, 1], "x": [1.0, 2, 3, 4], "old": [None, 1.0, 2.0, 3.0]})

COUNTED = pa.table({"bag": [0, 1], "n": [1, 1], "m": [1, 1]})

LACKS = (
    "A model that learned with an old score or exposure must have that of each row to predict: none "
    "given."
)

OFFSET = unbag.BagClassifier(learner="additive").fit(X, Y, bag=ROWS, offset=X[:, 0])

PLANNED = copy(OFFSET)
PLANNED.plan_ = FeaturePlan((Column("x", "numeric"),))

JOINED = copy(OFFSET)
JOINED.old_score_ = OldScore("old")

EMPTY = sparse.csr_matrix((1_000_000_000, 10))


class Broken:
    """A learner that always refuses."""

    name = "broken"
    needs_random_bags = False

    def fit(self, bags, *, seed=0, progress=None):
        raise broken("A fit must end", "none ends", "Wait.")


def from_disk(settings, **given):
    usual = dict.fromkeys(("prior", "test", "labels", "force", "events", "reports", "memory"))
    train_files(SimpleNamespace(params=usual | given, obj=None), {}, settings)


MESSAGES = [
    (
        lambda: Terms((Term("x"),)).matrix(EVENTS),
        "A model of a matrix must be given a matrix: Table given. Fit with unbag.fit(bags, "
        "learner=...), which learns from the columns of a table.",
    ),
    (
        lambda: make_conversions(100, 10, seed=0),
        "Clicks must fill bags of every campaign, so be 4360 or more: table 0 has 100 (1 such "
        "table). Ask for more rows or fewer campaigns.",
    ),
    (
        lambda: unbag.BagClassifier().fit_bags(COUNTS),
        "Bags of a classifier must report proportions or class shares: they report totals of "
        "counts. Take BagRegressor.",
    ),
    (
        lambda: unbag.BagRegressor().fit_bags(BAGS),
        "Bags of a regression must report totals of counts: their kind is binary. Take "
        "BagClassifier, or join with kind='total'.",
    ),
    (
        lambda: unbag.fit(unbag.random_bags(None, np.arange(8) % 2, size=2, seed=0)),
        "Bags to learn from must have features: X is None. Make them with X.",
    ),
    (
        lambda: unbag.fit(BAGS, learner="forest"),
        f"A learner must be one of {', '.join(LEARNERS)}: 'forest' given. Choose one of these or "
        "auto, or give one of your own.",
    ),
    (
        lambda: unbag.fit(BAGS, learner=[Broken(), Broken()]),
        "At least one learner must succeed: Broken left out: A fit must end: none ends. Wait.; "
        "Broken left out: A fit must end: none ends. Wait.. Look at the bags.",
    ),
    (
        lambda: unbag.fit(COUNTS, learner="additive").predict_proba(X),
        "Probabilities must come from labels: counts given. Use predict.",
    ),
    (
        lambda: NetworkColumns.of(X)[0].matrix(X[:, :1]),
        "Rows must have the shape (2,) of those learned from: (1,) given. Give the same columns.",
    ),
    (
        lambda: _dense(EMPTY),
        "A sparse matrix for a network must have at most 536,870,912 entries: 1,000,000,000 x 10 "
        "given. Use the additive model or trees, or give the table itself.",
    ),
    (
        lambda: unbag.with_labels(replace(BAGS, X=None), X[:2], [0, 1]),
        "Bags to learn from must have features: X is None. Make them with X.",
    ),
    (
        lambda: unbag.with_labels(BAGS, X[:2], [0, 1, 1]),
        "There must be one label for each labelled row: 3 given for 2 rows. Give each row its own.",
    ),
    (
        lambda: unbag.with_labels(BAGS, X[:2], [0, 2]),
        "A label of a binary report must be a whole number from 0 to 1: labelled row 1 has 2 (1 "
        "such labelled row). Leave out rows whose label is not known.",
    ),
    (
        lambda: unbag.with_labels(
            unbag.join(EVENTS, COUNTED, on="bag", total="n"),
            pa.table({"x": ["a"], "old": [1.0], "y": [1]}),
            "y",
        ),
        "Labelled rows must have columns of the same type as the events: 'x' is string and cannot "
        "be read as double. Write it as in the events.",
    ),
    (
        lambda: unbag.with_labels(BAGS, X[:2], [0, 1], offset=[0.0, 1.0]),
        "An offset must come for bags and labelled rows, or for neither: it is given for one of them. "
        "Give offset= for both.",
    ),
    (
        lambda: unbag.join(EVENTS, COUNTED, on="bag", total="n", score="old"),
        "An old score must be finite: event 0 has nan (1 such event). Give every event its score.",
    ),
    (
        lambda: unbag.join(EVENTS, COUNTED, on="bag", counts=["n", "m"], score="old"),
        "An old score must be one of labels or counts: class counts given. Leave score= out, and "
        "let its columns be features.",
    ),
    (
        lambda: unbag.BagClassifier().fit(EVENTS.slice(0, 0), [], bag=[]),
        "There must be at least one row: 0 given (samples). Give at least one.",
    ),
    (
        lambda: unbag.BagClassifier(learner="trees", epochs=2).fit(X, Y, bag=ROWS),
        "Options of training must come with a network: epochs given with learner='trees'. Leave "
        "them out, or say learner='network'.",
    ),
    (
        lambda: unbag.BagClassifier(learner="network", held_out=0.5).fit(X, Y, bag=ROWS),
        "Options of the network learner must be among method, loss, hidden, epochs, batch, "
        "learning_rate: held_out given. Leave learner= out to train one network with them.",
    ),
    (
        lambda: unbag.BagClassifier(learner="additive").fit(X, Y, bag=ROWS).export(),
        "A program for serving must be made of one network: learner='additive' learned additive. "
        "Choose one with method='anchored', or write the model with to_onnx.",
    ),
    (
        lambda: unbag.BagClassifier(epochs=1).fit(X, Y, bag=ROWS, offset=X[:, 0]),
        "An offset must come to learners that take it: it is given with options of one training. "
        "Leave these out, or say learner='network'.",
    ),
    (
        lambda: unbag.fit(EVENTS),
        "A model must learn from bags: Table given. Make them with unbag.join, unbag.from_rows or "
        "unbag.random_bags.",
    ),
    (
        lambda: PLANNED.predict([{"x": 1.0}], offset=[0.0]),
        "Rows for a model of tables must be a table with its columns: list given. Give a frame, as "
        "pandas.DataFrame(rows), or an Arrow table.",
    ),
    (
        lambda: OFFSET.fitted_.predict(X),
        f"{LACKS} Give offset=: old scores as logits (or log rates), exposures as logarithms.",
    ),
    (
        lambda: OFFSET.predict(X, offset=X[:2, 0]),
        "offset must have one entry for each row: 2 given for 240 rows. Give them in the order of "
        "the rows.",
    ),
    (
        lambda: JOINED.predict(EVENTS.drop(["old"])),
        f"{LACKS} Give rows as a table with the column 'old', or offset=: old scores as logits (or "
        "log rates), exposures as logarithms.",
    ),
    (
        lambda: from_disk({}, memory="10KB"),
        "A memory must be at least 1MB: 10KB given. Give memory='1MB' or more: parts of a few rows "
        "only take longer.",
    ),
    (
        lambda: bytes_of("lots"),
        "A memory must be a number with one of KB, MB, GB, TB: 'lots' given. Write it as 2GB.",
    ),
    (
        lambda: added([]),
        "There must be at least one part with bags: none given. Give at least one.",
    ),
    (
        lambda: SumsFit(LocalParts([]), Terms((Term("shop", 6000),)), "binary"),
        "A model from sums must have at most 5,000 coefficients: 6,001 given. Leave out columns "
        "with many levels with features=, or group their levels.",
    ),
    (
        lambda: from_disk({"learner": "trees"}),
        "With a limit of the memory the additive model must learn alone: trees given. Leave it out, "
        "or memory=.",
    ),
]
