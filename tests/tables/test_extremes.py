"""Numbers that no feature can hold, columns without values, models at another level: all are told."""

import numpy as np
import pyarrow as pa
import pytest

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
    assert np.isnan(plan.narrow(pa.table({"x": [value]}))["x"][0])


def test_a_number_beyond_measure_is_told_with_its_row():
    events = EVENTS.set_column(1, "x", pa.array([1.0, 2.0, 1e300, 4.0]))
    summary = join(events, REPORTS, on="bag", total="n").summary
    assert summary.left_out == (
        "Column x has 1 values beyond 1e+38, the first in row 2: they count as missing.",
    )


UNKNOWN = "Column shop: no value is one that the model knows. Look at the export."


@pytest.mark.parametrize(
    ("rows", "warnings"),
    [
        ({"x": [1.0, 2.0], "shop": ["a", None]}, []),
        ({"x": [None, 1.0], "shop": ["z", "b"]}, []),
        (
            {"x": pa.nulls(2, pa.float64()), "shop": ["a", "b"]},
            ["Column x: all values are missing. Look at the export."],
        ),
        ({"x": [1.0, 2.0], "shop": ["A", None]}, [UNKNOWN]),
        (
            {"x": [1e39, 1.0], "shop": ["a", "b"]},
            ["Column x: 1 values beyond 1e+38 count as missing."],
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
