"""Tables and reports from which little can be learned, through `unbag.fit` with all its parts."""

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import unbag
from unbag.learners import Trees

N, SIZE = 600, 10
BOTH = ["additive", Trees(rounds=60, patience=20)]


def table(rng):
    return {"x": rng.normal(size=N), "shop": rng.integers(0, 4, N).astype(str)}


def constant(rng):
    return pa.table(table(rng) | {"year": np.full(N, 2026.0)}), {}, "'year' (it has one value only)"


def separating(rng):
    columns = table(rng)
    leak = (columns["x"] > 0) * 1.0
    return pa.table(columns | {"leak": leak}), {"y": leak}, None


def one_value_for_each_row(rng):
    ids = [f"id {i}" for i in range(N)]
    return pa.table(table(rng) | {"user": ids}), {}, "'user' ("


def more_columns_than_bags(rng):
    wide = {f"z{j}": rng.normal(size=N) for j in range(30)}
    return pa.table(table(rng) | wide), {"size": 20}, "more columns (32) than bags (30)"


def contradicting(rng):
    return pa.table(table(rng)), {"report": np.arange(N // SIZE) % 2 * 1.0}, "contradict each other"


def noisy(rng):
    return pa.table(table(rng)), {"noise": np.full(N // SIZE, 1e6)}, "tell nothing of the columns"


@pytest.mark.parametrize(
    "make",
    [constant, separating, one_value_for_each_row, more_columns_than_bags, contradicting, noisy],
)
def test_hard_input_gives_finite_predictions_and_says_what_is_wrong(make):
    rng = np.random.default_rng(0)
    X, given, words = make(rng)
    chance = 1 / (1 + np.exp(-np.asarray(X["x"])))
    y = given.pop("y", (rng.random(N) < chance) * 1.0)
    bags = unbag.random_bags(X, y, size=given.pop("size", SIZE), seed=0)
    bags = replace(bags, **given)
    if "noise" in given:
        bags = replace(bags, report=bags.report + rng.normal(0, 1e2, len(bags)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = unbag.fit(bags, learner=BOTH)
    p = fitted.predict(X)
    assert np.isfinite(p).all()
    assert ((p > 0) & (p < 1)).all()
    right = np.where(y == 1, p, 1 - p).mean()
    if words is None:  # the column tells everything, and is believed
        assert right > 0.9
    else:
        assert words in " ".join(str(one.message) for one in caught)
    if make in (contradicting, noisy):
        assert p.std() < 0.2  # the answer stays near the mean
    else:
        assert right > 0.52


def test_columns_of_nothing_give_the_mean():
    """Labels that no column explains, in every kind of report."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    for kind, y in (("binary", rng.random(N) < 0.3), ("total", rng.poisson(2.0, N))):
        bags = unbag.random_bags(X, y, size=SIZE, seed=0, kind=kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", unbag.learners.DataWarning)
            p = unbag.fit(bags, learner=BOTH).predict(X)
        assert abs(p - y.mean()).mean() < 0.15 * y.mean()
