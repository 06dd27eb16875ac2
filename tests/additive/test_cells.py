"""The additive model from marginal tables: exact laws first, then simulations with known truth."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from scipy import special, stats
from sklearn.linear_model import LogisticRegression

import unbag
from unbag.additive._cells import counts_of_cells, hidden_totals
from unbag.additive._counts import Counts, Spread
from unbag.additive._overlap import (
    BlockWhitener,
    Border,
    Factor,
    Linearised,
    blocks_of,
    factored,
    misfit_by_evidence,
)
from unbag.additive._rows import fit_evidence
from unbag.additive._terms import terms_of
from unbag.learners import Additive, AdditiveModel, DataWarning

LEVELS = {"a": 4, "b": 5, "c": 7}


def world(rows=4000, seed=0, spread=0.7):
    """Events with three columns of levels, and their scores."""
    rng = np.random.default_rng(seed)
    columns, score = {}, np.full(rows, -0.8)
    for name, levels in LEVELS.items():
        code = rng.integers(0, levels, rows)
        score += rng.normal(0, spread, levels)[code]
        columns[name] = pa.array([f"{name}{i}" for i in code])
    return pa.table(columns), score


def labels_of(score, seed=1):
    return (np.random.default_rng(seed).random(len(score)) < special.expit(score)).astype(float)


def table_of(events, keys, y, noise=0.0, rng=None):
    table = events.select(list(keys)).append_column("n", pa.array(y))
    table = table.group_by(list(keys)).aggregate([("n", "sum")])
    total = np.asarray(table["n_sum"])
    if noise:
        total = total + rng.normal(size=len(total)) * np.sqrt(noise)
    return table.drop(["n_sum"]).append_column("n", pa.array(total))


def cells_of(events, y, keys=(("a",), ("b",), ("c",)), noise=0.0, seed=2):
    rng = np.random.default_rng(seed)
    tables = [table_of(events, key, y, noise, rng) for key in keys]
    return unbag.join_marginals(events, tables, total="n", noise=noise or None)


def one_hot(events):
    blocks = []
    for name in LEVELS:
        value = np.array(events[name].to_pylist())
        blocks.append(value[:, None] == np.unique(value))
    return np.hstack(blocks).astype(float)


@pytest.mark.parametrize("precision", [0.5, 10.0])
@pytest.mark.parametrize("keys", [(("a",), ("b",), ("c",)), (("a", "b"), ("c",))])
def test_exact_tables_of_every_column_are_the_supervised_fit(keys, precision):
    """Also with a table by two columns, which holds the tables of both."""
    events, score = world()
    y = labels_of(score)
    cells = cells_of(events, y, keys)
    terms, design = terms_of(cells.X)
    _, fit = fit_evidence(design, counts_of_cells(cells), precision=np.full(3, precision))
    plain = LogisticRegression(C=1 / precision, tol=1e-12, max_iter=5000, solver="newton-cholesky")
    plain.fit(one_hot(events), y)
    ours = terms.matrix(events) @ (terms.basis @ fit.state.b)
    np.testing.assert_allclose(ours[:, 0], plain.decision_function(one_hot(events)), atol=2e-7)


def test_the_factor_of_overlapping_counts_is_the_root_of_their_inverse_covariance():
    events, score = world(300)
    cells = cells_of(events, labels_of(score), (("a", "b"), ("c",)), noise=2.0)
    counts = counts_of_cells(cells)
    h = special.expit(score)
    spread = Spread(misfit=0.04)
    W = counts.whitener(h, spread)
    S, d = cells.S.toarray(), h * (1 - h)
    V = S @ np.diag(d) @ S.T + np.diag(2 + 0.04 * (S @ d) ** 2)
    A = np.random.default_rng(0).normal(size=(len(cells), 3))
    np.testing.assert_allclose(W(A).T @ W(A), A.T @ np.linalg.solve(V, A), rtol=1e-6)
    np.testing.assert_allclose(W.adjoint(W(A)), np.linalg.solve(V, A), rtol=1e-5, atol=2e-7)
    np.testing.assert_allclose(W.logdet, np.linalg.slogdet(V)[1], rtol=1e-6)
    np.testing.assert_allclose(W.diagonal(), np.diag(np.linalg.inv(V)), rtol=1e-5)


def test_disjoint_counts_share_no_instance_and_include_the_largest_table():
    events, score = world(500)
    cells = cells_of(events, labels_of(score), (("a",), ("b", "c")))
    ((first, rest),) = blocks_of(cells.S)
    assert (cells.of_table[first] == 1).all()
    assert (cells.of_table[rest] == 0).all()
    assert cells.S[first].sum(axis=0).max() == 1


def test_the_lack_of_fit_maximises_the_evidence_of_the_linear_model():
    rng = np.random.default_rng(0)
    m, own = 60, rng.uniform(5, 50, 60)
    J = np.column_stack([own, rng.normal(size=(m, 3)) * own[:, None]])
    spread = np.array([np.inf, 0.3, 0.3, 0.3])
    V = np.diag(own) + 2.0
    shift = 0.4 * own * rng.normal(size=m)
    r = J @ rng.normal(size=4) + rng.multivariate_normal(np.zeros(m), V) + shift

    def minus_evidence(t):
        """By a flat prior of huge variance, with the determinant that it brings."""
        K = V + (J[:, 1:] * 0.3) @ J[:, 1:].T + np.diag(t * own**2)
        u, P = J[:, 0], np.linalg.inv(K)
        rest = P - np.outer(P @ u, P @ u) / (u @ P @ u)
        return np.linalg.slogdet(K)[1] + np.log(u @ P @ u) + r @ rest @ r

    def at(t):
        """The linear model with a dense factor: every count is in the border."""
        L = np.linalg.cholesky(V + np.diag(t * own**2))
        nothing = np.zeros(0, int)
        factor = Factor(Border(nothing, np.arange(m)), np.zeros(0), np.zeros((0, m)), L)
        W = BlockWhitener((factor,), 0.0)
        A = W(J)
        H = A.T @ A + np.diag(1 / spread)
        return Linearised(W, A, lambda x: np.linalg.solve(H, x))

    grid = np.linspace(0.01, 1, 2000)
    best = grid[np.argmin([minus_evidence(t) for t in grid])]
    assert abs(misfit_by_evidence(at, own, r, 0.0) - best) < 2e-3
    calm = J @ rng.normal(size=4)
    assert misfit_by_evidence(at, own, calm, 0.1) == 0


def test_cells_that_share_no_event_make_blocks_of_their_own():
    """Tables by shop and day and by shop and hour: one block for each shop, or several together."""
    rng = np.random.default_rng(0)
    events = pa.table({k: rng.integers(0, n, 900) for k, n in (("a", 9), ("b", 5), ("c", 4))})
    y = labels_of(np.zeros(900))
    cells = cells_of(events, y, (("a", "b"), ("a", "c")), noise=2.0)
    counts, h = counts_of_cells(cells), rng.uniform(0.1, 0.9, 900)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbag.additive._overlap.TOGETHER", 1)
        blocks = blocks_of(counts.S)
    assert len(blocks) == 9
    assert sorted(np.concatenate([np.concatenate(b) for b in blocks])) == list(range(len(cells)))
    whole = counts.whitener(h, Spread())
    apart = factored(counts.S, h * (1 - h), counts.noise, blocks)
    A = rng.normal(size=(len(cells), 2))
    np.testing.assert_allclose(apart(A).T @ apart(A), whole(A).T @ whole(A), rtol=1e-9)
    np.testing.assert_allclose(apart.adjoint(apart(A)), whole.adjoint(whole(A)), rtol=1e-8)
    np.testing.assert_allclose(apart.logdet, whole.logdet)


@pytest.mark.parametrize("shift, low, high", [(0.0, 0.0, 0.07), (0.5, 0.3, 0.7)])
def test_random_cells_have_no_lack_of_fit_and_shifted_ones_their_own(shift, low, high):
    """Two random partitions into 60 cells each; the second time the scores of cells are shifted."""
    rng = np.random.default_rng(0)
    events, score = world(12_000)
    events = events.append_column("p", pa.array(rng.integers(0, 60, 12_000)))
    events = events.append_column("q", pa.array(rng.integers(0, 60, 12_000)))
    for key in ("p", "q"):
        score = score + shift * rng.normal(size=60)[events[key].to_numpy()]
    tables = [table_of(events, [key], labels_of(score), 2.0, rng) for key in ("p", "q")]
    cells = unbag.join_marginals(events, tables, total="n", noise=2.0, features=["a", "b", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Additive().fit(cells)
    assert low <= model.misfit <= high


def test_a_hidden_cell_pulls_the_mean_as_the_log_probability_of_being_below_does():
    events, score = world(900)
    cells = cells_of(events, labels_of(score), noise=2.0)
    counts, h = counts_of_cells(cells), special.expit(score)
    total, noise = hidden_totals(counts, h, Spread(), 60.0)
    M, own = counts.S @ h, counts.S @ (h * (1 - h))
    s = np.sqrt(own + 2)

    def log_probability(mean):
        return stats.norm.logcdf((60.0 - mean) / s)

    eps = 1e-4
    slope = (log_probability(M + eps) - log_probability(M - eps)) / (2 * eps)
    near = np.abs(60 - M) < 5 * s
    assert near.sum() > 2
    np.testing.assert_allclose(((total - M) / (noise + own))[near], slope[near], rtol=1e-4)
    assert (noise >= 2 - 1e-6).all()


def test_the_additive_model_learns_from_noisy_tables_and_is_restored():
    events, score = world(20_000)
    cells = cells_of(events, labels_of(score), (("a", "b"), ("c",)), noise=2.0)
    model = Additive().fit(cells)
    assert np.corrcoef(model.scores(events), score)[0, 1] > 0.98
    again = AdditiveModel.restore(*model.arrays())
    np.testing.assert_array_equal(again.scores(events), model.scores(events))
    assert again.misfit == model.misfit


def test_totals_of_counts_are_learned_too():
    events, score = world(20_000, spread=0.4)
    y = np.random.default_rng(0).poisson(np.exp(score)).astype(float)
    rng = np.random.default_rng(1)
    tables = [table_of(events, key, y, 2.0, rng) for key in (("a", "b"), ("c",))]
    cells = unbag.join_marginals(events, tables, total="n", noise=2.0, kind="total")
    model = Additive().fit(cells)
    assert np.corrcoef(model.scores(events), score)[0, 1] > 0.95


def test_hidden_cells_below_a_threshold_bring_the_level_back():
    """Of 300 small cells those below 5 are hidden; leaving them out makes the rest too high."""
    rng = np.random.default_rng(0)
    events, score = world(9000, spread=0.3)
    shop = rng.integers(0, 300, 9000)
    events = events.append_column("shop", pa.array([f"s{i}" for i in shop]))
    y = labels_of(score - 1.2)
    table = table_of(events, ["shop"], y)
    total = np.asarray(table["n"])
    state = np.where(total < 5, "suppressed_by_value", "observed")
    table = table.set_column(1, "n", pa.array(np.where(total < 5, np.nan, total)))
    table = table.append_column("state", pa.array(state))
    assert 30 < (total < 5).sum() < 280
    levels = {}
    for name, options in {"left out": {"accept_bias": True}, "below": {"below": 5}}.items():
        cells = unbag.join_marginals(
            events, [table], total="n", status="state", features=["a", "b", "c"], **options
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            levels[name] = special.expit(Additive().fit(cells).scores(events)).mean() / y.mean()
    assert levels["left out"] > 1.1
    assert abs(levels["below"] - 1) < 0.05


@pytest.fixture(scope="module")
def learned():
    """Cells of made events, what `fit` and an estimator made of them, and the events."""
    events, score = world(6000)
    cells = cells_of(events, labels_of(score), (("a", "b"), ("c",)), noise=2.0)
    return cells, unbag.fit(cells), unbag.BagClassifier().fit_bags(cells), events


def test_fit_learns_from_tables_and_held_out_cells_judge(learned):
    cells, fitted, _, events = learned
    plain = Additive().fit(cells, seed=0)
    np.testing.assert_allclose(fitted.scores(events), plain.scores(events))
    assert fitted.evaluation.source == "cells"
    assert fitted.gain.low > 0
    assert abs(fitted.slope.value - 1) < 4 * fitted.slope.error
    assert fitted.verdict.answer == "better"
    assert "nats a cell" in " ".join(fitted.verdict)


def test_every_model_of_tables_is_a_step_that_is_shown(learned):
    cells, steps = learned[0], []
    unbag.fit(cells, folds=2, progress=lambda *step: steps.append(step))
    assert [step[:2] for step in steps] == [(1, 3), (2, 3), (3, 3)]


def test_the_estimator_learns_the_same_and_its_file_knows_the_cells(learned, tmp_path):
    cells, fitted, estimator, events = learned
    estimator.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag")
    np.testing.assert_allclose(again.predict_proba(events)[:, 1], fitted.predict(events))
    assert len(again.learned_) == len(cells)
    with pytest.raises(unbag.Refused, match="must not overlap"):
        again.fitted_.evaluate(cells)


def test_further_tables_judge_a_model(learned):
    _, fitted, _, _ = learned
    events, score = world(6000)
    cells = cells_of(events, labels_of(score, seed=9), (("b", "c"),), noise=2.0)
    judged = fitted.evaluate(cells)
    assert judged["explained"].value > 0.5
    assert judged["coverage"].value > 0.8


def test_too_few_cells_give_a_model_without_an_evaluation():
    events, score = world(300)
    cells = cells_of(events, labels_of(score), (("a",),)).take([0, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        fitted = unbag.fit(cells)
    assert fitted.evaluation is None
    assert "3 cells are too few to judge a model by." in fitted.notes


def test_counts_of_tables_are_learned_by_the_regressor():
    events, score = world(3000, spread=0.4)
    y = np.random.default_rng(0).poisson(np.exp(score)).astype(float)
    table = table_of(events, ("a", "b"), y)
    cells = unbag.join_marginals(events, [table], total="n", kind="total")
    model = unbag.BagRegressor(folds=2).fit_bags(cells)
    assert model.predict(events).mean() == pytest.approx(y.mean(), rel=0.02)


def test_bags_are_tables_of_one_key():
    """The same counts as bags and as cells give the same covariance."""
    events, score = world(600)
    bag = np.repeat(np.arange(60), 10)
    y = labels_of(score)
    bags = unbag.Bags(bag, y.reshape(60, 10).mean(axis=1), X=events)
    keyed = events.append_column("bag", pa.array(bag))
    cells = unbag.join_marginals(
        keyed, [table_of(keyed, ["bag"], y)], total="n", features=["a", "b", "c"]
    )
    one, two = Additive().fit(bags), Additive().fit(cells)
    np.testing.assert_allclose(one.scores(events), two.scores(events), atol=1e-8)
    assert isinstance(counts_of_cells(cells), Counts)
