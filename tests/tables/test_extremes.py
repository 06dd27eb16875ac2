"""Numbers that no feature can hold, columns without values, models at another level: all are told."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import unbag
from unbag import join, random_bags
from unbag.metrics import level_note
from unbag.tables import ColumnWatch, plan_features

X = [1.0, 2.0, 3.0, 6.0]
EVENTS = pa.table({"bag": [0, 0, 1, 1], "x": X, "shop": list("abab")})
REPORTS = pa.table({"bag": [0, 1], "n": [1, 2]})


@pytest.mark.parametrize("value", [1e300, -1e39, np.inf, None])
def test_numbers_beyond_measure_count_as_missing_whatever_they_are(value):
    plan = plan_features(EVENTS.set_column(1, "x", pa.array([*X[:3], value])), features=["x"])
    (column,) = plan.columns
    assert (column.mean, column.sd) == (2.0, pytest.approx(np.std(X[:3])))
    assert plan.apply(pa.table({"x": [value]})).tolist() == [[0.0, 1.0]]
    assert np.isnan(dict(plan.narrow_columns(pa.table({"x": [value]})))["x"][0])


def test_a_number_beyond_measure_is_told_with_its_row():
    events = EVENTS.set_column(1, "x", pa.array([1.0, 2.0, 1e300, 4.0]))
    summary = join(events, REPORTS, on="bag", total="n").summary
    assert summary.left_out == (
        "Column x has 1 value beyond 1e+38, first in row 2. Such values count as missing.",
    )


@pytest.mark.parametrize(("wrong", "odd"), [("0x1F", "0x1F"), ("much", "much"), (None, "0,5")])
def test_numbers_that_a_stray_value_or_a_comma_turned_into_text_are_no_ids(wrong, odd):
    x = [f"{i}.5" for i in range(100)] if wrong else [f"{i},5" for i in range(100)]
    table = pa.table({"x": [*x, wrong or "7"], "shop": ["a", *["b"] * 100]})
    (why,) = [column.why for column in plan_features(table).columns if column.name == "x"]
    assert why == (
        f"most values are numbers and some are not, as {odd!r}; write all as numbers, with a "
        "decimal point and without separators of thousands"
    )
    events = table.append_column("bag", pa.array(np.arange(101) % 2))
    said = join(events, REPORTS, on="bag", total="n", accept_bias=True).summary.left_out
    assert said == (f"Column x is left out: {why}.",)


TREES, NETWORK = unbag.learners.Trees(rounds=20), unbag.learners.NetworkLearner(epochs=2)
LEARNERS = [("additive", 1e-12), (TREES, 1e-12), (NETWORK, 1e-6)]


@pytest.mark.parametrize(("learner", "tolerance"), LEARNERS)
def test_matrices_and_frames_follow_the_rule_of_files(learner, tolerance):
    """A number beyond measure is missing at training and at prediction, and there is a note."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    bag, y = np.arange(240) // 6, rng.random(240) < 1 / (1 + np.exp(-2 * X[:, 0]))
    share = np.bincount(bag, y)[bag] / 6
    strange = X.copy()
    X[17:20, 1], strange[17:20, 1] = np.nan, [1e39, -1e300, np.inf]
    note = "Column {} has 3 values beyond 1e+38, first in row 17. Such values count as missing."
    for made, name in ((np.asarray, 1), (sparse.csr_array, 1), (named, "b")):
        right, other = (
            unbag.fit(unbag.from_rows(bag, share, X=made(x)), learner=learner, folds=2)
            for x in (X, strange)
        )
        assert note.format(name) in other.notes
        assert note.format(name) not in right.notes
        expected = right.predict(made(X))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            np.testing.assert_allclose(other.predict(made(strange)), expected, rtol=tolerance)
        assert name == "b" or [str(w.message) for w in said] == [note.format(name)]


def named(X):
    return pd.DataFrame(X, columns=["a", "b"])


UNKNOWN = "Column shop: no value is one that the model knows. Check the export."


@pytest.mark.parametrize(
    ("rows", "warnings"),
    [
        ({"x": [1.0, 2.0], "shop": ["a", None]}, []),
        ({"x": [None, 1.0], "shop": ["z", "b"]}, []),
        (
            {"x": pa.nulls(2, pa.float64()), "shop": ["a", "b"]},
            ["Column x: all values are missing. Check the export."],
        ),
        ({"x": [1.0, 2.0], "shop": ["A", None]}, [UNKNOWN]),
        (
            {"x": [1e39, 1.0], "shop": ["a", "b"]},
            ["Column x has 1 value beyond 1e+38, first in row 0. Such values count as missing."],
        ),
    ],
)
def test_columns_that_tell_the_model_nothing_are_told(rows, warnings):
    watch = ColumnWatch(plan_features(EVENTS, features=["x", "shop"]))
    watch.add(pa.table(rows))
    assert watch.warnings() == warnings


def test_a_model_at_another_level_is_told():
    """0.2399 against 0.2289 with an interval of 0.0007, as it was delivered once."""
    y = np.random.default_rng(0).random(400_000) < 0.2289
    bags = random_bags(None, y, size=50, seed=0)
    mean = y.mean()
    assert level_note(np.full(400_000, mean), bags) is None
    note = level_note(np.full(400_000, mean + 0.011), bags)
    assert "they differ by 0.011, 17 standard errors" in note


def test_numbers_with_a_decimal_comma_and_days_of_another_order_are_said_to_be_read_as_text():
    n = 3000
    events = pa.table(
        {
            "bag": [i // 10 for i in range(n)],
            "price": [f"{i % 700},{i % 7}" for i in range(n)],
            "day": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2025" for i in range(n)],
            "shop": [f"s{i % 50}" for i in range(n)],
        }
    )
    reports = pa.table({"bag": range(n // 10), "sales": [i % 6 for i in range(n // 10)]})
    said = "\n".join(unbag.join(events, reports, on="bag", total="sales").summary.left_out)
    assert "Column price is read as text, but holds numbers, as '0,0': write them with" in said
    assert "Column day is read as text, but holds days: write them as 2026-11-16." in said
    assert "shop" not in said


@pytest.mark.parametrize("way", ["join", "check_tables", "fit_files"])
@pytest.mark.parametrize("form", ["{},5", "1.{:03},5", "1,{:03}.5", "1'{:03}"])
def test_every_way_says_that_text_holds_numbers_as_others_write_them(way, form):
    rng = np.random.default_rng(0)
    x, bag = rng.integers(20, size=400), np.arange(400) // 4
    texts = [form.format(i) for i in x]
    events = pa.table({"bag": bag, "x": texts, "z": rng.normal(size=400)})
    reports = pa.table({"bag": np.arange(100), "n": rng.integers(5, size=100)})
    if way == "fit_files":
        said = unbag.learners.fit_files(events, reports, "bag", total="n").summary
    elif way == "check_tables":
        said = unbag.check_tables(events, reports, on="bag", total="n")
    else:
        said = join(events, reports, on="bag", total="n").summary
    (note,) = said.left_out
    assert note == (
        f"Column x is read as text, but holds numbers, as {texts[0]!r}: write them with a decimal "
        "point and without separators of thousands."
    )
