"""What tables can tell without labels, which to ask for next, and held-out cells."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import special

import unbag
from unbag.additive._terms import terms_of
from unbag.learners import Additive, identifiable, rank_tables
from unbag.learners._held_cells import held_cells, mean_rate
from unbag.tables import plan_marginals


def made_events(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    levels = {"a": 4, "b": 5, "c": 6}
    codes = {name: rng.integers(0, n, rows) for name, n in levels.items()}
    return pa.table({name: pa.array([f"{name}{i}" for i in code]) for name, code in codes.items()})


def naive(events, keys, noise, rate, spread):
    """The expected posterior covariance, with dense matrices and one precision for each column."""
    S = plan_marginals(events, keys).S.toarray()
    terms, design = terms_of(events)
    X = design.Z.csr().toarray() @ design.T.toarray()
    d = rate * (1 - rate)
    V = d * S @ S.T + noise * np.eye(len(S))
    J = d * S @ X
    precision = np.full(X.shape[1], 1e-6)
    for group in range(3):
        inside = design.group == group
        precision[inside] = X[:, inside].var(axis=0).sum() / spread**2
    C = np.linalg.inv(J.T @ np.linalg.solve(V, J) + np.diag(precision))
    return terms, design.group, X, C


def test_expected_widths_are_those_of_the_dense_formula():
    events = made_events()
    keys = [("a", "b"), ("c",)]
    terms, group, X, C = naive(events, keys, 2.0, 0.1, 0.5)
    told = {one.column: one for one in identifiable(events, keys, noise=2.0, rate=0.1)}
    for number, term in enumerate(terms.terms):
        part = X[:, group == number]
        part = part - part.mean(axis=0)
        inside = np.ix_(group == number, group == number)
        after = np.einsum("ij,jk,ik->i", part, C[inside], part).mean()
        np.testing.assert_allclose(told[term.name].width, 3.92 * np.sqrt(after), rtol=1e-4)
        np.testing.assert_allclose(told[term.name].share, 1 - after / 0.25, atol=1e-4)


def test_counted_columns_are_told_and_others_are_not():
    told = {one.column: one.share for one in identifiable(made_events(), ["a"], rate=0.2)}
    assert told["a"] > 0.9
    assert told["b"] < 0.1
    assert told["c"] < 0.1


def test_a_column_that_follows_a_counted_one_is_told_through_it():
    """Copy b into the column a with some errors: a table by a then says something of b."""
    events = made_events()
    rng = np.random.default_rng(1)
    b = np.array(events["b"].to_pylist())
    near = np.where(rng.random(len(b)) < 0.9, b, "other")
    events = events.set_column(0, "a", pa.array(near))
    told = {one.column: one.share for one in identifiable(events, ["a"], noise=1, rate=0.2)}
    assert 0.2 < told["b"] < told["a"] + 0.4
    assert told["c"] < 0.1


def test_a_column_of_one_value_has_no_effect_to_tell():
    day = np.full(3000, np.datetime64("2026-03-02T05:00", "s"))
    day[::2] += np.timedelta64(1, "h")  # the hour differs, the weekday does not
    events = made_events().append_column("day", pa.array(day))
    columns = [one.column for one in identifiable(events, ["a"], rate=0.2)]
    assert "day weekday" not in columns
    assert "a" in columns


def test_joined_tables_know_their_rate_and_noise():
    events = made_events()
    total = events.group_by(["a"]).aggregate([([], "count_all")])
    table = total.select(["a"]).append_column("n", pa.array([150.0] * total.num_rows))
    cells = unbag.join_marginals(events, [table], total="n", noise=2.0)
    rate = float(cells.reports.prior)
    one, two = identifiable(cells), identifiable(events, ["a"], noise=2.0, rate=rate)
    np.testing.assert_allclose([x.width for x in one], [x.width for x in two])


def test_tables_are_ranked_by_the_variance_that_is_left():
    events = made_events()
    ranked = rank_tables(events, ["a", ("a", "b"), ("a", "b", "c")], noise=2.0, rate=0.2)
    assert [one.name for one in ranked][-1] == "by_a"
    assert all(0 < one.reduction < 1 for one in ranked)
    _, group, X, C = naive(events, [("a", "b")], 2.0, 0.2, 0.5)
    own = next(one for one in ranked if one.name == "by_a_b")
    inside = group >= 0
    variance = np.einsum("ij,jk,ik->i", X[:, inside], C[np.ix_(inside, inside)], X[:, inside])
    np.testing.assert_allclose(own.variance, variance.mean(), rtol=1e-4)


def test_a_table_that_is_there_already_tells_little_more():
    ranked = rank_tables(
        made_events(), ["a", "b"], noise=2.0, rate=0.2, given=["a"], given_noise=2.0
    )
    assert [one.name for one in ranked] == ["by_b", "by_a"]
    assert ranked[1].reduction < 0.05 < ranked[0].reduction


def test_noise_makes_a_table_worth_less():
    best, worst = rank_tables(made_events(), {"calm": "a", "loud": "a"}, noise=[2, 500], rate=0.2)
    assert (best.name, worst.name) == ("calm", "loud")
    assert best.noise == 2


def test_held_out_cells_judge_the_model_and_say_what_they_are():
    events = made_events(12_000)
    rng = np.random.default_rng(0)
    score = np.full(12_000, -1.0)
    for name in ("a", "b", "c"):
        code = np.unique(np.array(events[name].to_pylist()), return_inverse=True)[1]
        score += rng.normal(0, 0.8, code.max() + 1)[code]
    y = (rng.random(12_000) < special.expit(score)).astype(float)
    labelled = events.append_column("n", pa.array(y))
    tables = []
    for keys in (["a", "b"], ["b", "c"], ["a", "c"]):
        table = labelled.group_by(keys).aggregate([("n", "sum")])
        noisy = np.asarray(table["n_sum"]) + rng.normal(0, np.sqrt(2), table.num_rows)
        tables.append(table.drop(["n_sum"]).append_column("n", pa.array(noisy)))
    cells = unbag.join_marginals(events, tables, total="n", noise=2.0)
    judged = held_cells(cells, Additive(), 5, 0).evaluation
    assert judged.bags == len(cells) == 74
    assert judged.source == "cells"
    assert judged["explained"].value > 0.8
    # 74 cells: a standard error of 2.5%
    assert judged["coverage"].value > 0.85
    assert judged["gain_over_prior"].low > 0
    assert "74 held-out cells" in str(judged)
    assert "not events" in str(judged)


def test_a_table_by_one_column_does_not_tell_of_a_level_that_was_held_out():
    """The mean rate, with the scatter of rates between cells, is as good there as the model."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 30, 30_000)
    events = pa.table({"a": [f"a{i}" for i in level], "b": [f"b{i}" for i in level % 7]})
    y = rng.random(30_000) < special.expit(-1 + rng.normal(0, 0.7, 30))[level]
    total = np.bincount(level, weights=y) + rng.normal(0, 1.4, 30)
    table = pa.table({"a": [f"a{i}" for i in range(30)], "n": total})
    cells = unbag.join_marginals(events, [table], total="n", noise=2.0)
    gain = held_cells(cells, Additive(), 5, 0).evaluation["gain_over_prior"]
    assert gain.low < 0.1


def test_the_mean_rate_has_the_scatter_of_the_cells():
    rng = np.random.default_rng(0)
    level = np.repeat(np.arange(200), 500)
    rate = special.expit(-1 + rng.normal(0, 0.5, 200))
    total = rng.binomial(500, rate).astype(float)
    events = pa.table({"a": level, "b": rng.integers(0, 3, len(level))})
    cells = unbag.join_marginals(events, [pa.table({"a": np.arange(200), "n": total})], total="n")
    mean, scatter = mean_rate(cells)
    assert mean == pytest.approx(total.sum() / len(level))
    assert np.sqrt(scatter) == pytest.approx(0.5, abs=0.1)  # four standard errors
