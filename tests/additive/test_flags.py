"""Columns of zeros and ones that exclude each other are read as the category they came from."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import special

import unbag
from unbag._model_file import Misfit
from unbag.additive import DataWarning
from unbag.additive._terms import terms_of
from unbag.learners import Additive, AdditiveModel


def hours(rows=3000, dtype=float):
    """Hour and weekday, as categories and as a column for each level."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hour": rng.integers(0, 12, rows), "day": rng.integers(0, 5, rows)})
    X = X.astype(str).assign(age=rng.normal(size=rows))
    y = rng.random(rows) < special.expit(np.sin(X.hour.astype(int)) + X.age)
    wide = pd.get_dummies(X, columns=["hour", "day"], dtype=dtype)
    return X, wide, y


@pytest.mark.parametrize("dtype", [float, int, bool])
def test_dummies_are_the_category_they_came_from(dtype):
    X, wide, y = hours(dtype=dtype)
    narrow, flags = (
        Additive().fit(unbag.random_bags(table, y, size=8, seed=0)) for table in (X, wide)
    )
    assert [term.name for term in flags.terms.terms] == [
        "age",
        "hour_0 to hour_9",
        "day_0 to day_4",
    ]
    assert np.allclose(flags.scores(wide), narrow.scores(X), atol=1e-6)
    assert flags.effects()[1].at == tuple(c for c in wide if c.startswith("hour"))


def test_columns_that_are_no_category_stay_apart():
    rng = np.random.default_rng(0)
    both = (rng.random((500, 4)) < 0.4).astype(int)  # a row may have several
    X = pd.DataFrame(both, columns=list("abcd")).assign(two=both[:, 0], none=1 - both[:, 0])
    assert [term.flags for term in terms_of(X)[0].terms] == [()] * 6


def test_another_column_ends_a_category():
    one = np.eye(6, dtype=int)[np.arange(60) % 6]
    X = pd.DataFrame(one, columns=list("abcdef"))
    X.insert(3, "word", np.array(["u", "v"])[np.arange(60) % 2])
    assert [term.flags for term in terms_of(X)[0].terms] == [tuple("abc"), (), tuple("def")]


@pytest.mark.parametrize(
    "names, made",
    [
        (["a", "z", "b to c", "a to b", "y", "c"], ["a to b to c", "a to b to c together"]),
        (["a", "b", "a to c", "c", "d", "e"], ["a to a to c", "c to e"]),
        (["a", "b", "c", "a to c", "d", "e"], ["a to c together", "a to c to e"]),
    ],
)
def test_every_category_has_a_name_of_its_own(names, made):
    rng = np.random.default_rng(0)
    one = np.hstack([np.eye(3)[rng.permutation(np.arange(60) % 3)] for _ in range(2)])
    terms, _ = terms_of(pd.DataFrame(one, columns=names))
    assert [term.name for term in terms.terms] == made


def test_columns_of_a_category_do_not_make_a_table_wide(monkeypatch):
    monkeypatch.setattr("unbag.additive._terms.WIDE", 4)
    _, wide, _ = hours()
    matrix, table = (terms_of(X)[0].terms for X in (wide.to_numpy(), wide))
    assert len(table[0].edges) == len(matrix[0].edges) == 20


def test_a_row_without_a_flag_or_with_a_gap_has_no_level():
    one = np.eye(4)[np.arange(40) % 4]
    terms, _ = terms_of(pd.DataFrame(one, columns=list("abcd")))
    rows = pd.DataFrame([[0, 0, 1, 0], [0, 0, 0, 0], [0, np.nan, 0, 0]], columns=list("abcd"))
    assert terms.matrix(rows).slots[1].place.tolist() == [2, -1, -1]


def test_a_row_with_several_flags_is_said_to_count_as_the_last():
    one = np.eye(4)[np.arange(40) % 4]
    terms, _ = terms_of(pd.DataFrame(one, columns=list("abcd")))
    rows = pd.DataFrame([[0, 0, 1, 0], [1, 0, 1, 0]], columns=list("abcd"))
    with pytest.warns(DataWarning, match="several of the columns a to d set"):
        places = terms.matrix(rows).slots[1].place
    assert places.tolist() == [2, 2]


def test_a_model_with_flags_survives_its_file():
    _, wide, y = hours()
    model = Additive().fit(unbag.random_bags(wide, y, size=8, seed=0))
    arrays, settings = model.arrays()
    again = AdditiveModel.restore(arrays, json.loads(json.dumps(settings)))
    assert np.array_equal(again.scores(wide), model.scores(wide))
    settings["terms"][1]["flags"] = settings["terms"][1]["flags"][1:]
    with pytest.raises(Misfit):
        AdditiveModel.restore(arrays, json.loads(json.dumps(settings)))
