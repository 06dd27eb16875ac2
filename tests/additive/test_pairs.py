"""Pairs of columns whose effects are not a sum: found where they are, and only there."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse, special, stats

import unbag
from unbag._model_file import Misfit
from unbag.additive._counts import Spread, counts_of
from unbag.additive._interactions import (
    USUAL,
    VARIANCES,
    CellProducts,
    FurtherTerm,
    _gain,
    _margins,
    asked_for,
    candidates,
    cell_products,
)
from unbag.additive._model import _few_bags
from unbag.additive._pairs import cut, part_labels, places_of
from unbag.additive._sums import LocalParts, PairsAt, SumsAt, fit_parts, narrow_part
from unbag.additive._terms import Term, Terms, terms_of
from unbag.learners import Additive, AdditiveModel

FLAT = 1e6


def crossed(kind="binary", seed=0, rows=6000, size=10):
    """Shop and day matter together only, and so do x and a column of two values; z does not."""
    rng = np.random.default_rng(seed)
    shop, day, two = rng.integers(0, 4, rows), rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    x, z = rng.normal(size=(2, rows))
    score = 1.2 * np.where((shop + day) % 2, 1, -1) + 1.2 * np.where((x > 0) == two, 1, -1)
    x[:60] = np.nan
    X = pa.table(
        {
            "shop": [f"s{i}" for i in shop],
            "day": [f"d{i}" for i in day],
            "x": pa.array(x, from_pandas=True),
            "two": two,
            "z": z,
        }
    )
    y = {
        "binary": rng.random(rows) < special.expit(score),
        "total": rng.poisson(np.exp(score / 2)),
        "histogram": np.searchsorted([-1.0, 1.0], score + rng.logistic(size=rows)),
    }[kind]
    return unbag.random_bags(X, y, size=size, seed=seed, kind=kind), score


def pairs_of(model):
    return {term.pair for term in model.terms.terms if term.pair}


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_pairs_that_matter_are_found_and_no_others(kind):
    bags, _ = crossed(kind)
    assert pairs_of(Additive().fit(bags)) == {("shop", "day"), ("x", "two")}
    assert pairs_of(Additive(pairs=1).fit(bags)) < {("shop", "day"), ("x", "two")}
    assert pairs_of(Additive(pairs=0).fit(bags)) == set()


def test_the_scores_of_pairs_are_the_true_ones():
    bags, score = crossed(rows=20_000)
    right = score[bags.rows]
    together, apart = (Additive(pairs=pairs).fit(bags).scores(bags.X) for pairs in (8, 0))
    assert np.corrcoef(together, right)[0, 1] > 0.9
    assert abs(np.corrcoef(apart, right)[0, 1]) < 0.4


def test_no_pair_is_found_in_a_sum_of_columns():
    """At most one table in 20 is expected to have one: of 20 at most 4 (p = 0.003)."""
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1500, 5))
        y = rng.random(1500) < special.expit(X @ [1.0, -1.0, 0.5, 0.0, 0.0])
        wrong += bool(pairs_of(Additive().fit(unbag.random_bags(X, y, size=10, seed=0))))
    assert wrong <= 4


def test_the_gain_is_that_of_the_evidence():
    """Against the density of normal residuals whose covariance is written out."""
    rng = np.random.default_rng(0)
    J, r = rng.normal(size=(40, 6)), rng.normal(size=40)
    margins = _margins(2, 3)
    assert margins.tolist()[4] == [0, 1, 0, 1, 0]  # part 1 of a, part 1 of b
    main = J @ margins
    wide = np.eye(40) + FLAT * main @ main.T

    def density(t):
        return stats.multivariate_normal(np.zeros(40), wide + t * J @ J.T).logpdf(r)

    expected = special.logsumexp([density(t) - density(0) for t in VARIANCES])
    gain = _gain(J.T @ J, J.T @ r, margins)
    assert gain == pytest.approx(expected - np.log(len(VARIANCES)), abs=1e-4)


@pytest.mark.parametrize("kind", ["binary", "histogram"])
def test_products_are_those_of_dense_matrices(kind):
    bags, _ = crossed(kind, rows=300)
    bags = bags.take(np.arange(len(bags)))
    terms, design = terms_of(bags.X)
    counts = counts_of(bags)
    b = np.random.default_rng(1).normal(0, 0.2, (len(terms.group), counts.classes))
    moments = counts.moments(design.Z @ (design.T @ b))
    W = counts.whitener(moments.h, Spread())
    pairs = candidates(terms, np.ones(len(terms.terms)), 1)
    assert len(pairs) == 10
    made = cell_products(pairs, terms, design.Z, counts, moments, W)
    number = [pair.few.pair for pair in pairs].index(("shop", "day"))
    (first, second), code = pairs[number].few.cuts, []
    for term in terms.terms[:2]:
        labels = terms.labels(term)
        code.append([labels.index(value) for value in bags.X[term.name].to_pylist()])
    cell = np.array(first)[code[0]] * (max(second) + 1) + np.array(second)[code[1]]
    X = np.eye(pairs[number].few.levels)[cell]
    J = np.block([[counts.S @ (d[:, None] * X) for d in row] for row in counts.slopes(moments.h)])
    J, r = W(J), W(counts.observed - moments.mean)
    assert np.allclose(made[number].gram, J.T @ J)
    assert np.allclose(made[number].gradient, J.T @ r)


@pytest.mark.parametrize("kind, classes", [("binary", 1), ("total", 1), ("histogram", 3)])
def test_parts_find_the_pairs_of_all_bags(kind, classes):
    bags, _ = crossed(kind, rows=3000)
    terms, _ = terms_of(bags.X)
    pieces = np.array_split(np.arange(len(bags)), 3)
    parts = [narrow_part(bags.take(piece), terms) for piece in pieces]
    model = fit_parts(LocalParts(parts), terms, kind, classes=classes)
    whole = Additive().fit(bags)
    assert pairs_of(model) == pairs_of(whole) == {("shop", "day"), ("x", "two")}
    assert np.allclose(model.terms.share, whole.terms.share)
    assert (
        np.abs(model.scores(bags.X) - whole.scores(bags.X)).max() < 0.2
    )  # within 0.3 nats of the evidence


def test_parts_take_only_pairs_that_their_curvature_has_room_for(monkeypatch):
    bags, _ = crossed(rows=3000)
    terms, _ = terms_of(bags.X)
    parts = LocalParts([narrow_part(bags, terms)])
    cells = {term.pair: term.levels for term in Additive().fit(bags).terms.terms if term.pair}
    fewest = min(cells.values())
    monkeypatch.setattr("unbag.additive._sums.MOST", len(terms.group) + fewest - 1)
    assert pairs_of(fit_parts(parts, terms, "binary")) == set()


def test_a_fold_that_is_left_out_has_no_part_in_the_search():
    bags, _ = crossed(rows=600)
    terms, _ = terms_of(bags.X)
    part = narrow_part(bags, terms, folds=2)
    pairs = candidates(terms, np.ones(len(terms.terms)), 1)[:1]
    b = np.zeros((len(terms.group), 1))
    both, *apart = (
        PairsAt(SumsAt(terms, b, Spread(), fold), pairs)(part)[0] for fold in (-1, 0, 1)
    )
    assert np.allclose(both.gram, apart[0].gram + apart[1].gram)
    assert np.allclose(both.gradient, apart[0].gradient + apart[1].gradient)
    assert not np.allclose(apart[0].gram, 0)


def test_few_pairs_must_say_as_much_as_one_of_twenty():
    term = Term("a x b", levels=4, pair=("a", "b"), cuts=((0, 1), (0, 1)))
    rng = np.random.default_rng(0)
    J = rng.normal(size=(60, 4))
    effect = J @ [1.0, -1.0, -1.0, 1.0]

    def taken(size):
        products = CellProducts(J.T @ J, J.T @ (size * effect))
        return asked_for([FurtherTerm(term, term, _margins(2, 2), USUAL)], [[products]], 8)

    def gain(size):
        return _gain(J.T @ J, J.T @ (size * effect), _margins(2, 2))

    sizes = np.linspace(0, 0.5, 51)
    assert [bool(taken(size)) for size in sizes] == [gain(size) > np.log(20) for size in sizes]
    assert taken(sizes[-1]) == (term,)
    terms, _ = terms_of(crossed(rows=300)[0].X)
    assert {pair.among for pair in candidates(terms, np.ones(len(terms.terms)), 1)} == {20}


def test_many_rows_leave_the_strongest_columns():
    bags, _ = crossed(rows=300)
    terms, _ = terms_of(bags.X)
    strength = np.array([0.1, 0.5, 0.2, 0.4, 0.3])
    names = {pair.few.pair for pair in candidates(terms, strength, 15_000_000)}
    assert names == {("day", "two"), ("day", "z"), ("two", "z")}


def test_rows_of_training_have_the_same_design_when_predicted():
    for X in (
        crossed(rows=500)[0].X,
        np.random.default_rng(0).integers(0, 2, (500, 6)).astype(float),
    ):
        terms, design = terms_of(X)
        pairs = tuple(pair.more for pair in candidates(terms, np.ones(len(terms.terms)), 1)[:3])
        assert len(pairs) == 3
        wider = terms.further(pairs)
        completed = wider.completed(design.Z)
        assert completed.shape[1] == len(wider.share)
        assert (wider.matrix(X).csr() != completed.csr()).nnz == 0


def test_a_model_with_pairs_survives_its_file_and_new_rows():
    bags, _ = crossed()
    model = Additive().fit(bags)
    arrays, settings = model.arrays()
    again = AdditiveModel.restore(arrays, json.loads(json.dumps(settings)))
    assert np.array_equal(again.scores(bags.X), model.scores(bags.X))
    row = {"shop": ["new"], "day": ["d0"], "x": [None], "two": [1], "z": [0.0]}
    new = pa.table(row, schema=bags.X.schema)
    assert np.isfinite(model.scores(new)).all()
    of_pairs = {t.pair: rows.start for t, rows, _ in model.terms.places if t.pair}
    places = {slot.start: slot.place for slot in model.terms.matrix(new).slots}
    assert places[of_pairs["shop", "day"]] == [-1]  # a new shop has no cell
    assert places[of_pairs["x", "two"]] >= [0]
    low, high = model.interval(bags.X)
    assert (low < high).all()


@pytest.mark.parametrize(
    "change", [{"pair": ["shop", "nobody"]}, {"cuts": [[0, -1], [0]]}, {"cuts": [["0"], [0]]}]
)
def test_damaged_pairs_are_refused(change):
    bags, _ = crossed()
    arrays, settings = Additive().fit(bags).arrays()
    settings = json.loads(json.dumps(settings))
    settings["terms"][-1].update(change)
    with pytest.raises(Misfit):
        Terms.restore(settings, arrays["share"])


def test_the_effects_of_a_pair_have_names():
    bags, _ = crossed()
    effects = {effect.name: effect for effect in Additive().fit(bags).effects()}
    at = effects["shop x day"].at
    assert len(at) == 12
    assert {"shop s0, day d0", "shop s3, day d2"} <= set(at)
    of_numbers = effects["x x two"].at
    assert any(label.startswith("x missing") for label in of_numbers)
    assert any(label.endswith("two 1") for label in of_numbers)


def test_columns_are_cut_into_few_parts():
    many = Term("page", levels=40)
    share = np.append(np.full(20, 0.04), np.full(20, 0.01))
    part = cut(many, share)
    assert part.tolist() == [*range(24), *[24] * 16]
    assert part_labels(many, part, [str(i) for i in range(40)])[-1] == "others"
    number = Term("x", low=0.0, high=9.0, edges=(1.0, 2.0, 3.0), missing=True)
    part = cut(number, np.array([0.0, 0.2, 0.2, 0.2, 0.2, 0.2]))
    assert part.tolist() == [0, 1, 2, 3, 4]
    flag, line = (
        Term("x", mean=0.5, sd=0.5, low=0, high=1),
        Term("x", mean=0.5, sd=0.2, low=0, high=1),
    )
    assert part_labels(flag, [0, 1], []) == ["0", "1"]
    assert part_labels(line, [0, 1], []) == ["up to 0.5", "above 0.5"]
    labels = part_labels(number, part, [])
    assert labels == ["0 to 1", "1 to 2", "2 to 3", "3 to 9", "missing"]
    large = Term("x", low=1e9, high=1e9 + 3, edges=(1e9 + 1, 1e9 + 2))
    assert part_labels(large, [0, 1, 2], [])[1] == "1000000001 to 1000000002"


def test_a_block_of_a_matrix_is_a_column_of_a_pair():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 200)
    X = np.eye(4)[code][:, :3]  # the last level has no column of its own
    terms, design = terms_of(np.column_stack([X, rng.normal(size=200)]))
    term, rows, _ = terms.places[0]
    assert np.array_equal(places_of(term, rows.start, design.Z), code)
    assert len(cut(term, terms.share[rows])) == 4


def test_a_zero_that_a_sparse_matrix_stores_is_no_one():
    code = np.random.default_rng(0).integers(0, 4, 200)
    X = np.eye(4)[code][:, :3]
    rows, columns = np.indices(X.shape).reshape(2, -1)
    stored = sparse.csr_array((X.ravel(), (rows, columns)), shape=X.shape)
    assert stored.nnz == X.size
    terms, design = terms_of(stored)
    assert np.array_equal(places_of(terms.terms[0], 1, design.Z), code)
    X[0] = np.nan  # a missing one is none
    assert places_of(terms.terms[0], 1, terms.matrix(X))[0] == 3


@pytest.mark.parametrize("name", ["shop x day", "x x two"])
def test_a_column_may_be_called_as_a_pair_is(name):
    bags, score = crossed()
    other = np.random.default_rng(1).normal(size=bags.X.num_rows)
    bags = replace(bags, X=bags.X.append_column(name, pa.array(other)))
    model = Additive().fit(bags)
    assert pairs_of(model) == {("shop", "day"), ("x", "two")}
    names = [term.name for term in model.terms.terms]
    assert len({*names}) == len(names)
    assert np.corrcoef(model.scores(bags.X), score)[0, 1] > 0.95
    terms = terms_of(pa.table({"a x b": other, "c": other, "a": other, "b x c": other}))[0]
    pairs = candidates(terms, np.ones(4), 1)
    assert len({pair.more.name for pair in pairs}) == len(pairs) == 6


def test_pairs_do_not_count_as_columns():
    bags, _ = crossed(rows=6000, size=1000)  # six bags, five columns
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Additive(pairs=0).fit(bags)
    assert len(model.terms.terms) == 5
    pairs = tuple(pair.more for pair in candidates(model.terms, np.ones(5), 1)[:3])
    wider = replace(model, terms=model.terms.further(pairs))
    assert not _few_bags(wider, counts_of(bags))


def test_the_trend_of_a_date_in_a_pair_is_called_by_its_days():
    day = np.datetime64("2024-01-01") + np.arange(400)
    terms = terms_of(pa.table({"day": day, "two": ["a", "b"] * 200}))[0]
    pairs = [pair.more for pair in candidates(terms, np.ones(len(terms.terms)), 1)]
    (trend,) = (pair for pair in pairs if pair.pair == ("day trend", "two"))
    first = terms.further((trend,)).labels(trend)[0]
    assert first.startswith("day trend 2024-01-01 to 2024-04-")
    assert first.endswith(", two a")


def test_many_columns_of_few_rows_leave_the_strongest():
    terms = Terms(tuple(Term(f"c{i}", levels=3) for i in range(100)), share=np.full(301, 1 / 3))
    pairs = candidates(terms, np.arange(100.0), 1000)
    assert 1000 < len(pairs) < 4950 / 2  # each takes half a millisecond, however few rows there are
    assert {name for pair in pairs for name in pair.few.pair} >= {"c99", "c60"}
