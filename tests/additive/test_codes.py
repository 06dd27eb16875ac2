"""Whole numbers that are codes, as those of shops: their values have effects where bags say so."""

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy import special

import unbag
from unbag._model_file import Misfit
from unbag.additive._counts import Spread, counts_of
from unbag.additive._interactions import candidates, cell_products
from unbag.additive._pairs import places_of
from unbag.additive._sums import LocalParts, SumsFit, fit_parts, narrow_part
from unbag.additive._terms import number_term, terms_of
from unbag.learners import Additive, AdditiveModel


def shops(kind="binary", rows=6000, size=10, gaps=True):
    """Sixty shops that differ by their codes alone, and an age that is a quantity."""
    rng = np.random.default_rng(0)
    shop, age = rng.integers(1000, 1060, rows), rng.integers(18, 80, rows)
    score = rng.normal(0, 1.5, 60)[shop - 1000] + (age - 50) / 20
    given = shop.astype(float)
    if gaps:
        given[:50] = np.nan
    X = pa.table({"shop": pa.array(given, from_pandas=True), "age": age})
    y = {
        "binary": rng.random(rows) < special.expit(score),
        "total": rng.poisson(np.exp(score / 2)),
        "histogram": np.searchsorted([-1.0, 1.0], score + rng.logistic(size=rows)),
    }[kind]
    return unbag.random_bags(X, y, size=size, seed=0, kind=kind), score


def further(model):
    return {term.pair for term in model.terms.terms if term.pair}


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_a_code_is_told_from_a_quantity(kind):
    bags, score = shops(kind)
    model = Additive(pairs=0).fit(bags)
    assert further(model) == {("shop",)}
    if kind != "histogram":
        assert np.corrcoef(model.scores(bags.X), score[bags.rows])[0, 1] > 0.9


def test_parts_find_the_codes_of_all_bags():
    bags, _ = shops(rows=3000)
    terms, _ = terms_of(bags.X)
    pieces = np.array_split(np.arange(len(bags)), 3)
    parts = [narrow_part(bags.take(piece), terms) for piece in pieces]
    model, whole = fit_parts(LocalParts(parts), terms, "binary"), Additive().fit(bags)
    assert further(model) == further(whole) == {("shop",)}
    assert np.abs(model.scores(bags.X) - whole.scores(bags.X)).max() < 0.2


def test_values_that_nobody_had_and_missing_ones_have_no_code():
    terms, _ = terms_of(shops()[0].X)
    (shop, where, _), *_ = terms.places
    rows = pa.table({"shop": [1000.0, 999.0, 1000.5, 1059.0, 1060.0, None, 1e9], "age": [30] * 7})
    code = places_of(shop, where.start, terms.matrix(rows), values=True)
    assert code.tolist() == [0, -1, -1, 59, -1, -1, -1]


@pytest.mark.parametrize("gaps", [0, 1])
def test_a_missing_number_is_not_taken_for_the_mean(gaps):
    x = np.append(np.repeat(np.arange(41.0), 10), np.full(gaps, np.nan))
    terms, _ = terms_of(x[:, None])
    term, where, _ = terms.places[0]
    assert term.mean == 20.0
    rows = np.array([[20.0], [np.nan], [np.inf], [-np.inf]])
    code = places_of(term, where.start, terms.matrix(rows), values=True)
    assert code.tolist() == [20, -1, -1, -1]


def test_a_number_that_is_rounded_to_a_value_is_not_that_value():
    x = np.repeat(np.append(np.arange(0.0, 500, 10), 1e9), 10)
    terms, _ = terms_of(x[:, None])
    term, where, _ = terms.places[0]
    assert term.on_line(np.array(11.0)) == term.on_line(np.array(10.0))
    rows = np.array([[10.0], [11.0], [-1e9], [2e9], [1e9]])
    code = places_of(term, where.start, terms.matrix(rows), values=True)
    assert code.tolist() == [1, -1, -1, -1, 50]


@pytest.mark.parametrize(
    "x",
    [
        np.arange(200.0),  # each value once
        np.repeat(np.arange(21.0), 20),  # the steps tell all of them apart
        np.repeat(np.arange(50) / 2, 20),  # no whole numbers
        np.repeat(1e9 + np.arange(50.0), 20) * np.where(np.arange(1000) % 2, 1, -1),  # too close
    ],
)
def test_numbers_that_are_no_codes(x):
    assert number_term("x", x, steps=20).values == ()


def test_the_products_of_values_are_those_of_dense_matrices():
    bags, _ = shops(rows=2000)
    bags = bags.take(np.arange(len(bags)))
    terms, design = terms_of(bags.X)
    counts = counts_of(bags)
    b = np.random.default_rng(1).normal(0, 0.2, (len(terms.group), 1))
    moments = counts.moments(design.Z @ (design.T @ b))
    W = counts.whitener(moments.h, Spread())
    shop, age = candidates(terms, np.ones(2), 1, pairs=False)
    assert (shop.few.name, age.few.name) == ("shop values", "age values")
    made = cell_products([shop], terms, design.Z, counts, moments, W)[0]
    values = np.array(bags.X["shop"].to_pylist(), float)
    X = (values[:, None] == np.array(terms.terms[0].values)).astype(float)
    order = np.argsort(shop.few.cuts[0])
    J = W(counts.S @ ((moments.h * (1 - moments.h))[:, None] * X[:, order]))
    assert np.allclose(made.gram, J.T @ J)
    assert np.allclose(made.gradient, J.T @ W(counts.observed - moments.mean))
    # what line and steps know of a value: its bin and its place on the line
    edges, known = terms.terms[0].edges, np.array(terms.terms[0].values)[order]
    assert np.array_equal(shop.known[:, :-1].argmax(axis=1), np.searchsorted(edges, known))
    assert np.allclose(shop.known[:, -1], terms.terms[0].on_line(known))


def test_only_frequent_values_are_looked_at_and_all_are_learned(monkeypatch):
    monkeypatch.setattr("unbag.additive._interactions.VALUES", 12)
    bags, _ = shops()
    terms, _ = terms_of(bags.X)
    shop = candidates(terms, np.ones(2), 1, pairs=False)[0]
    assert (shop.few.levels, shop.more.levels) == (12, 60)
    assert np.shape(shop.known) == (12, len(terms.terms[0].edges) + 2)
    assert further(Additive(pairs=0).fit(bags)) == {("shop",)}


@pytest.mark.parametrize("classes, values", [(1, 256), (3, 85), (20, 49)])
def test_of_many_classes_fewer_values_are_looked_at(classes, values):
    terms, _ = terms_of(np.repeat(np.arange(400.0), 10)[:, None])
    (own,) = candidates(terms, np.ones(1), 1, classes=classes, pairs=False)
    assert (own.few.levels, own.more.levels) == (values, 400)


def test_a_model_with_codes_survives_its_file():
    bags, _ = shops()
    model = Additive().fit(bags)
    arrays, settings = model.arrays()
    again = AdditiveModel.restore(arrays, json.loads(json.dumps(settings)))
    rows = pa.table({"shop": [1003.0, 5.0, None], "age": [20, 30, 40]})
    assert np.array_equal(again.scores(rows), model.scores(rows))
    for term in settings["terms"]:
        if term["name"] == "shop":
            term["values"] = term["values"][1:]
    with pytest.raises(Misfit):
        AdditiveModel.restore(arrays, json.loads(json.dumps(settings)))


def test_the_effects_of_values_have_their_names():
    effects = {effect.name: effect for effect in Additive().fit(shops()[0]).effects()}
    assert effects["shop values"].at[:2] == ("1000", "1001")
    assert len(effects["shop values"].effect) == 60


def test_the_values_of_days_are_dates():
    day = np.datetime64("2026-01-01") + np.arange(600) % 60
    terms, _ = terms_of(pa.table({"when": day, "x": np.random.default_rng(0).normal(size=600)}))
    (own,) = candidates(terms, np.ones(len(terms.terms)), 1, pairs=False)
    assert terms.labels(own.more)[:2] == ("2026-01-01", "2026-01-02")


def test_a_code_that_has_no_room_leaves_it_to_others(monkeypatch):
    rng = np.random.default_rng(0)
    wide, narrow = rng.integers(0, 120, 2400), rng.integers(0, 40, 2400)
    score = rng.normal(0, 3, 120)[wide] + rng.normal(0, 1.2, 40)[narrow]
    X = pa.table({"wide": wide, "narrow": narrow})
    bags = unbag.random_bags(X, rng.random(2400) < special.expit(score), size=2, seed=0)
    terms, _ = terms_of(bags.X)
    parts = LocalParts([narrow_part(bags, terms)])
    monkeypatch.setattr("unbag.additive._sums.MOST", len(terms.group) + 119)
    fit, _ = SumsFit(parts, terms, "binary").with_pairs(SumsFit(parts, terms, "binary").maximise())
    assert {term.pair for term in fit.terms.terms if term.pair} >= {("narrow",)}


def test_many_whole_numbers_must_each_say_more():
    rng = np.random.default_rng(0)
    for columns, among in ((2, 1.0), (60, 3.0)):
        X = rng.integers(0, 40, (500, columns)).astype(float)
        terms, _ = terms_of(X)
        looked = candidates(terms, np.ones(columns), 1, pairs=False)
        assert {one.among for one in looked} == {among}


def test_a_value_may_fill_several_blocks_of_rows_and_end_with_one():
    x = np.repeat([1.0, 2.0, 3.0, 4.0], [2**16, 2 * 2**16 + 5, 1, 2**16])
    assert number_term("x", x, steps=20).edges == (1.5, 2.5, 3.5)
