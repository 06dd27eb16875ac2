"""A column that holds the label, or the report, is found by its sums."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import unbag
from unbag.additive import DataWarning
from unbag.tables import answers

RNG = np.random.default_rng(0)
N, SIZE = 4000, 20
X1 = RNG.normal(size=N)
SOLD = RNG.random(N) < 1 / (1 + np.exp(1 - X1))
BAG = RNG.permutation(N) // SIZE
TOTAL = np.bincount(BAG, weights=SOLD)
NOISE = RNG.laplace(0, 3, len(TOTAL))  # of variance 18, where a count has one of 4
CLASS = np.where(SOLD, np.where(X1 > 1, 2, 1), 0)


def found(column, total=TOTAL, **known):
    bags = unbag.Bags(BAG, total / SIZE, **known)
    return answers(pa.table({"x": X1, "column": column}), bags) == ("column",)


@pytest.mark.parametrize(
    "column",
    [
        SOLD,
        SOLD.astype(int),
        ~SOLD,
        np.where(SOLD, "yes", "no"),
        TOTAL[BAG],
        np.round(TOTAL[BAG] / SIZE, 3),
    ],
    ids=["label", "number", "opposite", "text", "total", "share"],
)
def test_labels_and_reports_in_the_events_are_found(column):
    assert found(column)


@pytest.mark.parametrize("column", [SOLD, ~SOLD, (TOTAL + NOISE)[BAG]])
def test_they_are_found_in_spite_of_noise(column):
    assert found(column, TOTAL + NOISE, noise=np.full(len(TOTAL), 18.0))


@pytest.mark.parametrize("noise", [0.0, 18.0])
def test_a_column_that_tells_much_of_the_label_is_none(noise):
    """One event of ten is another; and a column of as many ones as there are labels."""
    wrong = RNG.random(N) < 0.1
    for column in (SOLD ^ wrong, RNG.permutation(SOLD), X1 > 1):
        report = TOTAL + NOISE * (noise > 0)
        assert not found(column, report, noise=np.full(len(TOTAL), noise))


def test_classes_are_found_and_matrices_are_looked_at():
    counts = np.stack([np.bincount(BAG, weights=c == CLASS) for c in range(3)], axis=1)
    histogram = unbag.Bags(BAG, counts / SIZE, kind="histogram")
    names = np.array(["none", "small", "large"])[CLASS]
    assert answers(pa.table({"x": X1, "bought": names}), histogram) == ("bought",)
    matrix = np.stack([X1, SOLD], axis=1)
    bags = unbag.Bags(BAG, TOTAL / SIZE)
    assert answers(matrix, bags) == answers(sparse.csr_array(matrix), bags) == ("1",)


def test_bags_that_all_report_the_same_or_are_few_show_nothing():
    assert not found(np.zeros(N), np.zeros(len(TOTAL)))
    few = unbag.Bags(np.arange(40) // 8, np.arange(5) / 8)
    assert answers(np.repeat(np.arange(5), 8)[:, None] / 8.0, few) == ()


def test_join_leaves_such_a_column_out_unless_it_is_named():
    events = pa.table({"bag": BAG, "x": X1, "sold": SOLD})
    reports = pa.table({"bag": np.arange(len(TOTAL)), "n": TOTAL})
    bags = unbag.join(events, reports, on="bag", total="n")
    assert bags.plan.read == bags.table.column_names == ["x"]
    assert bags.X.shape == (N, 1)
    (note,) = bags.summary.left_out
    assert note == (
        "Column sold is left out: in every bag it adds up to what was reported, so it is what is "
        "to be learned."
    )
    for said in ({"features": ["x", "sold"]}, {"plan": {"sold": "numeric"}}, {"plan": None}):
        kept = unbag.join(events, reports, on="bag", total="n", **said)
        assert ("sold" in kept.plan.read) == (said != {"plan": None})


def test_a_fit_warns_of_such_a_column():
    def fitted(**columns):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            bags = unbag.Bags(BAG, TOTAL / SIZE, X=pa.table({"x": X1} | columns))
            model = unbag.fit(bags, learner="additive")
        return model.notes[0], [str(one.message) for one in caught if one.category is DataWarning]

    note, warned = fitted(sold=SOLD)
    assert note.startswith("Column sold adds up to what was reported in every bag")
    assert note in warned
    note, warned = fitted()
    assert "adds up" not in note
    assert not warned
