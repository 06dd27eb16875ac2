"""Hours and months go around a cycle: waves make neighbours alike, beside a level for each."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse, special

import unbag
from unbag._model_file import Misfit
from unbag.additive import LocalParts, fit_parts, narrow_part
from unbag.additive._terms import Term, Terms, terms_of
from unbag.learners import Additive, AdditiveModel

HOURS = [f"{hour}" for hour in range(24)]
MONTHS = "January February March April May June July August September October November December"


def cycle_of(X):
    """The levels of the only category of a table, around its cycle."""
    terms = terms_of(X)[0]
    (term,) = [term for term in terms.terms if term.cycle]
    return [terms.labels(term)[code] for code in term.cycle]


@pytest.mark.parametrize(
    "levels", [HOURS, MONTHS.split(), [f"2026-{w:02d}" for w in range(1, 54)]], ids=len
)
def test_hours_months_and_weeks_are_found_in_the_order_of_the_year(levels):
    assert cycle_of(pd.DataFrame({"part": np.repeat(levels, 4)})) == levels
    flags = pd.get_dummies(pd.DataFrame({"part": np.repeat(levels, 4)}), dtype=int)
    assert cycle_of(flags) == [f"part_{level}" for level in levels]


@pytest.mark.parametrize(
    "levels",
    [
        HOURS[:23],
        [f"shop {2 * i}" for i in range(24)],
        [*HOURS[:23], "late"],
        list("abcdefghijkl"),
        ["other", *MONTHS.split()[:11]],
        [str(year) for year in range(2008, 2020)],
    ],
)
def test_other_levels_have_no_cycle(levels):
    X = pd.DataFrame({"part": np.repeat(levels, 4)})
    assert not any(term.cycle for term in terms_of(X)[0].terms)


def test_a_date_has_waves_of_hours_and_months_but_not_of_weekdays():
    hours = np.random.default_rng(0).integers(0, 3 * 24 * 365, 3000)
    X = pa.table({"t": np.datetime64("2026-01-01", "us") + hours * np.timedelta64(1, "h")})
    waves = [name for name in terms_of(X)[0].groups if name.endswith("waves")]
    assert waves == ["t hour waves", "t season waves"]


def test_a_matrix_with_columns_for_months_has_waves():
    terms, design = terms_of(np.tile(np.eye(12), (3, 1)))
    assert terms.groups == ("columns 0 to 11", "columns 0 to 11 waves")
    assert design.T.shape == (13, 1 + 12 + 6)


def test_waves_of_a_level_are_sines_and_cosines_of_its_place():
    order = (2, 0, 1, 3)
    term = Term("quarter", levels=5, cycle=order)
    T = Terms((term,), share=np.ones(6)).basis.toarray()
    assert np.array_equal(T[1:, 1:6], np.eye(5))
    waves = T[1:, 6:]
    assert not waves[4].any()  # the level of missing values stands outside
    place = np.arange(4)
    naive = [np.sin(2 * np.pi * w * place / 4) / w for w in (1, 2, 3)]
    naive += [np.cos(2 * np.pi * w * place / 4) / w for w in (1, 2, 3)]
    naive = np.stack(naive, axis=1) / np.sqrt(1 + 1 / 4 + 1 / 9)
    assert waves[list(order)] == pytest.approx(naive)
    assert (waves[:4] ** 2).sum(axis=1) == pytest.approx(1)  # an effect of variance 1


def daily(size, seed=0, rows=6000):
    """Labels that follow the hour of the day, in bags."""
    rng = np.random.default_rng(seed)
    hour = rng.integers(0, 24, rows)
    y = rng.random(rows) < special.expit(1.5 * np.sin(hour / 12 * np.pi) - 1)
    X = pd.DataFrame({"hour": hour.astype(str), "other": rng.integers(0, 9, rows).astype(str)})
    return unbag.random_bags(X, y, size=size, seed=seed)


def test_waves_come_nearer_to_a_smooth_truth_than_levels_alone():
    truth = 1.5 * np.sin(np.arange(24) / 12 * np.pi)
    X = pd.DataFrame({"hour": HOURS, "other": "0"})

    def error(bags):
        score = Additive().fit(bags).scores(X)
        return np.mean((score - score.mean() - truth) ** 2)

    for seed in range(3):
        bags = daily(60, seed)
        frame = bags.X.assign(hour="at " + bags.X.hour + " h")  # says nothing of its order
        other = unbag.from_rows(bags.bag, bags.report[bags.bag], X=frame)
        X_other = X.assign(hour="at " + X.hour + " h")
        without = Additive().fit(other).scores(X_other)
        assert error(bags) < 0.6 * np.mean((without - without.mean() - truth) ** 2)


def test_parts_of_bags_give_the_same_model():
    bags = daily(20)
    model = Additive().fit(bags)
    halves = (bags.take(half) for half in np.array_split(np.arange(len(bags)), 2))
    parts = LocalParts([narrow_part(half, model.terms) for half in halves])
    fitted = fit_parts(parts, model.terms, "binary")
    assert np.abs(fitted.scores(bags.X) - model.scores(bags.X)).max() < 0.1
    assert fitted.log_evidence == pytest.approx(model.log_evidence, abs=0.1)


def test_a_model_with_waves_is_restored_and_damage_is_refused():
    model = Additive().fit(daily(20))
    arrays, settings = model.arrays()
    settings = json.loads(json.dumps(settings))
    X = pd.DataFrame({"hour": HOURS, "other": "0"})
    assert np.array_equal(AdditiveModel.restore(arrays, settings).scores(X), model.scores(X))
    for damaged in ([*range(23), 30], [*range(23), -1]):
        settings["terms"][0]["cycle"] = damaged
        with pytest.raises(Misfit, match="cycle"):
            AdditiveModel.restore(arrays, settings)


def test_levels_that_no_row_has_are_left_out_of_a_large_design_and_waves_are_not(monkeypatch):
    bags = daily(20)
    usual = Additive().fit(bags)
    monkeypatch.setattr("unbag.additive._model.EXACT", 5)
    large = Additive().fit(bags)
    assert large.scores(bags.X) == pytest.approx(usual.scores(bags.X), abs=0.02)
    missing = 1 + 24  # after the intercept and the hours
    assert not large.b[missing].any()
    assert large.b[missing + 1 : missing + 7].all()


def test_a_model_of_a_dense_matrix_scores_a_sparse_one():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(12)[rng.integers(0, 12, 600)], rng.normal(size=600)])
    model = Additive().fit(unbag.random_bags(X, rng.random(600) < 0.5, size=6, seed=0))
    assert np.array_equal(model.scores(sparse.csr_array(X)), model.scores(X))
