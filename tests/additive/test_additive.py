"""The additive learner equals what is known in closed form, and its evidence tells the truth."""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse, special
from sklearn.linear_model import LogisticRegression

from unbag import Bags, random_bags
from unbag._model_file import Misfit
from unbag.additive._counts import CountMoments, Counts, Spread, counts_of
from unbag.additive._evidence import EvidenceFit, Hyperprior, bent
from unbag.additive._jacobian import Jacobian, Split
from unbag.additive._kernel import RowProducts
from unbag.additive._posterior import FLAT, Space
from unbag.additive._rows import RowsFit, fit_evidence
from unbag.additive._terms import Terms, number_term, terms_of
from unbag.learners import Additive, AdditiveModel, DataWarning, Learner, Model
from unbag.tables import plan_features


def logistic(rows=2000, columns=3, seed=0, strength=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    score = strength * X[:, 0] - 0.5 * X[:, 1] - 0.7
    return X, (rng.random(rows) < special.expit(score)).astype(float), score


def mixed(rows=3000, seed=0):
    """A table with every kind of column, and labels that depend on some."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, 8, size=rows)
    age = rng.uniform(20, 70, size=rows)
    new = rng.random(rows) < 0.3
    hour = rng.integers(0, 24, size=rows)
    score = -1 + 1.5 * (shop % 3 == 0) - 0.8 * new + 1.2 * (age > 45)
    y = (rng.random(rows) < special.expit(score)).astype(float)
    gone = rng.random(rows) < 0.1
    table = pa.table(
        {
            "shop": pa.array([f"s{i}" for i in shop]),
            "age": pa.array(np.where(gone, np.nan, age), from_pandas=True),
            "new": pa.array(new),
            "at": pa.array(np.datetime64("2026-03-02", "s") + hour.astype("timedelta64[h]")),
        }
    )
    return table, y, score


def fixed(X, bags, precision, **options):
    terms, design = terms_of(X, steps=0)
    _, fit = fit_evidence(design, counts_of(bags), precision=precision, **options)
    return terms, fit


def test_bags_of_one_at_fixed_variances_are_penalised_logistic_regression():
    X, y, _ = logistic(800)
    X = (X - X.mean(0)) / X.std(0)
    bags = Bags(np.arange(len(y)), y, X=X)
    _, fit = fixed(X, bags, np.full(3, 4.0))
    plain = LogisticRegression(C=1 / 4.0, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(fit.state.b[1:, 0], plain.coef_[0], atol=1e-6)
    np.testing.assert_allclose(fit.state.b[0, 0], plain.intercept_[0], atol=1e-5)


def test_bags_of_one_of_classes_are_penalised_multinomial_regression():
    rng = np.random.default_rng(0)
    X, _, _ = logistic(600)
    X = (X - X.mean(0)) / X.std(0)
    p = special.softmax(X @ rng.normal(size=(3, 4)), axis=1)
    y = np.array([rng.choice(4, p=row) for row in p])
    bags = Bags(np.arange(len(y)), np.eye(4)[y], kind="histogram", X=X)
    _, fit = fixed(X, bags, np.full(3, 2.0))
    plain = LogisticRegression(C=1 / 2.0, tol=1e-10, max_iter=2000).fit(X, y)
    np.testing.assert_allclose(fit.state.b[1:], plain.coef_.T, atol=1e-5)


def test_one_feature_that_is_constant_in_bags_has_a_closed_form():
    """Two kinds of bags, flat prior on the level, one coefficient for each kind: shares become
    logits."""
    bag = np.repeat(np.arange(20), 10)
    kind = (np.arange(20) % 2).astype(float)
    report = np.where(kind == 1, 0.6, 0.2)
    bags = Bags(bag, report, X=kind[bag][:, None])
    _, fit = fixed(bags.X, bags, np.array([1e-9]))
    b = fit.state.b[:, 0]
    np.testing.assert_allclose(b[0], special.logit(0.2), atol=1e-5)
    np.testing.assert_allclose(b.sum(), special.logit(0.6), atol=1e-5)


def test_totals_with_exposure_have_the_rate_of_their_sums():
    rng = np.random.default_rng(0)
    bag = np.repeat(np.arange(30), 5)
    exposure = rng.uniform(0.1, 2, size=150)
    bags = Bags(bag, rng.poisson(2.0, size=30) / 5, kind="total", offset=np.log(exposure))
    model = Additive().fit(bags)
    total = (bags.report * bags.size).sum()
    score = model.scores(np.zeros((3, 0)))
    np.testing.assert_allclose(score, np.log(total / exposure.sum()), atol=1e-6)
    low, high = model.interval(np.zeros((1, 0)))
    assert low[0] < np.exp(score[0]) < high[0]


def test_a_model_that_explains_every_total_does_not_take_them_for_certain():
    """One residual is free, and five pretended totals scatter as all do around their mean."""
    rng = np.random.default_rng(0)
    bags = Bags(np.repeat(np.arange(40), 5), rng.gamma(2.0, 50, size=40), kind="total")
    counts = counts_of(bags)
    saturated = CountMoments(np.repeat(bags.report, 5), counts.count)
    aware = counts.spread(saturated, 39.0).dispersion
    np.testing.assert_allclose(aware, counts.around_mean.dispersion * 5 / 6)


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_the_order_of_rows_and_bags_is_irrelevant(kind):
    X, y, _ = logistic(600)
    report = {"binary": y, "total": 2 * y, "histogram": y}[kind]
    bags = random_bags(X, report, size=6, seed=0, kind=kind)
    rng = np.random.default_rng(1)
    place, where = rng.permutation(len(bags)), rng.permutation(len(bags.bag))
    name = np.argsort(place)
    other = Bags(name[bags.bag][where], bags.report[place], kind, X=bags.X[where])
    one, two = Additive(steps=5).fit(bags), Additive(steps=5).fit(other)
    np.testing.assert_allclose(one.scores(X), two.scores(X), atol=1e-6)


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_the_log_evidence_rises_from_step_to_step(kind):
    X, y, _ = logistic(2000, columns=6)
    bags = random_bags(X, y, size=8, seed=0, kind=kind)
    _, design = terms_of(bags.X)
    problem, fit = fit_evidence(design, counts_of(bags))
    assert len(fit.trace) > 1
    assert (np.diff(fit.trace) > 0).all()
    # at the end no step would gain anything at these precisions
    place, precision = fit.state.linear.place, problem.precisions(fit.state.precision)
    slope = problem.gradient(place) - precision * place.b
    assert slope @ fit.state.posterior.solve(slope) < 1e-4


def test_the_log_evidence_is_that_of_quadrature():
    """Of a level and a slope: how much likelier the reports are under one prior than another."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1))
    bags = random_bags(x, rng.random(600) < special.expit(0.6 * x[:, 0]), size=3, seed=0)
    _, design = terms_of(bags.X, steps=0)
    counts, own = counts_of(bags), design.T[:, 1:]  # the column as the design has it
    precisions, evidence = (0.3, 3.0, 300.0), []
    for precision in precisions:
        problem, fit = fit_evidence(design, counts, precision=np.array([precision]))
        of_law = problem.hyperprior.log_density(np.array([precision]))
        evidence.append(fit.state.evidence - of_law)
    level, slope = np.meshgrid(np.linspace(-1, 1, 61), np.linspace(-0.6, 2, 61))
    column = np.asarray(design.Z @ own).ravel()
    log_likelihood = np.empty(level.shape)
    for where in np.ndindex(level.shape):
        moments = counts.moments((level[where] + slope[where] * column)[:, None])
        whitener = counts.whitener(moments.h, Spread())
        log_likelihood[where] = counts.log_likelihood(moments, whitener, Spread())
    expected = [
        special.logsumexp(log_likelihood + (np.log(p) - p * slope**2) / 2) for p in precisions
    ]
    np.testing.assert_allclose(np.diff(evidence), np.diff(expected), atol=0.06)


@pytest.mark.parametrize("highest, share", [(1.0, 1.0), (0.3, 0.25), (0.01, None)])
def test_an_update_goes_no_further_than_the_evidence_rises(highest, share):
    """To the target, or half, a quarter or an eighth of the way: the first that is higher."""
    start = SimpleNamespace(
        precision=np.ones(2),
        evidence=0.0,
        linear=SimpleNamespace(place=SimpleNamespace(spread=Spread())),
    )

    def converge(linear, precision, spread):
        went = np.log(precision[0])
        assert spread.misfit == pytest.approx(0.5 * went)
        return SimpleNamespace(evidence=1.0 if went <= highest else -1.0, went=went)

    target = np.exp([1.0, -1.0]), Spread(misfit=0.5)
    fit = SimpleNamespace(_target=lambda state: target, converge=converge)
    after, change = EvidenceFit._better(fit, start)
    if share is None:
        assert after is None
    else:
        assert after.went == pytest.approx(share)
        assert np.abs(change).max() == pytest.approx(share)


def test_a_bent_step_is_that_of_bfgs_written_with_matrices():
    rng = np.random.default_rng(0)
    root, turned = rng.normal(size=(2, 4, 4))
    curvature, bend = root @ root.T + np.eye(4), turned @ turned.T
    pairs = [(s, (curvature + bend) @ s) for s in rng.normal(size=(3, 4))]
    inverse = np.linalg.inv(curvature)
    posterior = SimpleNamespace(solve=inverse.__matmul__)
    for s, y in pairs:
        away = np.eye(4) - np.outer(s, y) / (s @ y)
        inverse = away @ inverse @ away.T + np.outer(s, s) / (s @ y)
    gradient = rng.normal(size=4)
    np.testing.assert_allclose(bent(posterior, gradient, pairs), inverse @ gradient, rtol=1e-9)


def test_the_rate_of_the_hyperprior_is_the_most_probable_one():
    law, precision = Hyperprior(a=1.0, b=0.1, weight=5.0), np.array([0.5, 20.0, 300.0])

    def log_density(rate):
        own = law.a * np.log(precision * rate) - rate * precision
        return (own.sum() + law.weight * law.a * (np.log(rate) - rate / law.b)) / 2

    assert law.log_density(precision) == pytest.approx(log_density(law.rate(precision)), rel=1e-12)
    for other in (0.9, 1.1):
        assert log_density(other * law.rate(precision)) < law.log_density(precision)


@pytest.mark.parametrize("kind", ["binary", "histogram"])
def test_all_spaces_give_the_same_coefficients_and_evidence(kind):
    X, y, _ = logistic(900, columns=5)
    bags = random_bags(X, y, size=9, seed=0, kind=kind)
    _, design = terms_of(bags.X, steps=4)
    groups = design.group.max() + 1
    fits = {}
    for space in ("coefficients", "counts", "gradients"):
        problem, fit = fit_evidence(
            design, counts_of(bags), precision=np.full(groups, 3.0), space=space
        )
        posterior = fit.state.posterior
        fits[space] = fit.state.b, problem.unpack(posterior.gamma), posterior.logdet
    b, gamma, logdet = fits["coefficients"]
    for other in ("counts", "gradients"):
        np.testing.assert_allclose(fits[other][0], b, atol=1e-6)
    np.testing.assert_allclose(fits["counts"][1][1:], gamma[1:], atol=1e-6)
    np.testing.assert_allclose(fits["counts"][2], logdet, rtol=1e-6)
    # 32 probes: the sum of gamma and the log determinant are estimates
    np.testing.assert_allclose(fits["gradients"][1].sum(), gamma.sum(), rtol=0.1)
    np.testing.assert_allclose(fits["gradients"][2], logdet, rtol=0.1)


def test_conjugate_gradients_choose_nearly_the_same_variances():
    X, y, _ = logistic(3000, columns=4)
    bags = random_bags(X, y, size=10, seed=0)
    exact = Additive(steps=8).fit(bags)
    probes = Additive(steps=8, space="gradients").fit(bags)
    difference = exact.scores(X) - probes.scores(X)
    assert difference.std() < 0.1 * exact.scores(X).std()


def test_a_sparse_matrix_is_the_dense_one():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 5, size=1000)
    X = np.hstack([np.eye(5)[level], rng.integers(0, 2, size=(1000, 1))]).astype(float)
    y = (rng.random(1000) < special.expit(level - 2)).astype(float)
    dense = Additive().fit(random_bags(X, y, size=5, seed=0))
    thin = Additive().fit(random_bags(sparse.csr_array(X), y, size=5, seed=0))
    np.testing.assert_allclose(dense.scores(X), thin.scores(sparse.csr_array(X)), atol=1e-8)
    assert dense.terms.groups == thin.terms.groups == ("columns 0 to 4", "column 5")


def test_the_posterior_covers_the_true_scores():
    """50 worlds drawn from the prior; the share of scores inside the interval lies within 3 sigma
    of 90%."""
    inside = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3000, 4))
        truth = X @ (rng.normal(size=4) * 0.5) - 1
        y = (rng.random(3000) < special.expit(truth)).astype(float)
        bags = random_bags(X, y, size=10, seed=seed)
        model = Additive(steps=0).fit(bags)
        error = np.abs(model.scores(X[:200]) - truth[:200])
        inside.append(np.mean(error < 1.645 * model.errors(X[:200])))
    sigma = np.std(inside, ddof=1) / np.sqrt(len(inside))
    assert abs(np.mean(inside) - 0.9) < 3 * sigma


def test_declared_noise_widens_the_posterior_and_is_part_of_the_covariance():
    X, y, _ = logistic(2000)
    bags = random_bags(X, y, size=10, seed=0)
    rng = np.random.default_rng(0)
    noise = np.full(len(bags), 4.0)
    report = bags.report + rng.normal(size=len(bags)) * 2 / 10
    noisy = Bags(bags.bag, report, X=bags.X, noise=noise)
    one, two = Additive(steps=0).fit(bags), Additive(steps=0).fit(noisy)
    assert two.errors(X[:50]).mean() > 1.3 * one.errors(X[:50]).mean()
    counts = counts_of(noisy)
    h = counts.moments(np.zeros((2000, 1))).h
    np.testing.assert_allclose(counts.whitener(h, Spread()).root ** -2, 10 / 4 + 4)


def test_bags_that_are_not_observed_are_ignored():
    X, y, _ = logistic(400)
    bags = random_bags(X, y, size=8, seed=0)
    status = np.where(np.arange(len(bags)) < 40, "observed", "pending")
    partly = Bags(bags.bag, bags.report, X=bags.X, status=status)
    whole = bags.take(np.arange(40))
    np.testing.assert_allclose(
        Additive().fit(partly).scores(X), Additive().fit(whole).scores(X), atol=1e-9
    )


def test_overlapping_counts_of_all_levels_give_the_supervised_fit():
    """The likelihood equations ask for the totals of each column only: tables of every column are
    labels."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, size=500), rng.integers(0, 4, size=500)
    Z = np.hstack([np.eye(3)[a], np.eye(4)[b]])
    y = (rng.random(500) < special.expit(a - 0.5 * b)).astype(float)
    terms, design = terms_of(Z)
    S = sparse.csr_array(Z.T)
    counts = Counts(S, S @ y, np.zeros(7), np.zeros(500))
    assert not counts.disjoint
    precision = np.full(len(terms.groups), 1.0)
    _, tables = fit_evidence(design, counts, precision=precision)
    plain = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(tables.state.b[1:, 0], plain.coef_[0], atol=1e-3)


def test_a_table_of_every_kind_of_column_is_learned_and_restored():
    table, y, score = mixed()
    bags = random_bags(table, y, size=5, seed=0)
    learner = Additive()
    model = learner.fit(bags)
    assert isinstance(learner, Learner)
    assert isinstance(model, Model)
    assert np.corrcoef(model.scores(table), score)[0, 1] > 0.9
    arrays, settings = model.arrays()
    again = AdditiveModel.restore(arrays, json.loads(json.dumps(settings)))
    np.testing.assert_array_equal(again.scores(table), model.scores(table))
    np.testing.assert_array_equal(again.errors(table), model.errors(table))
    strongest = [effect.name for effect in model.effects()]
    assert set(strongest[:2]) == {"shop", "age"}
    shop = next(effect for effect in model.effects() if effect.name == "shop")
    assert shop.at == tuple(f"s{i}" for i in range(8))
    assert shop.effect[0] > 0 > shop.effect[1]
    assert (shop.error > 0).all()


def test_a_value_that_was_never_there_adds_nothing():
    table, y, _ = mixed()
    model = Additive().fit(random_bags(table, y, size=5, seed=0))
    rows = table.slice(0, 2).set_column(0, "shop", pa.array(["s0", "new shop"]))
    known = next(effect for effect in model.effects() if effect.name == "shop")
    rows = rows.set_column(1, "age", pa.array([30.0, 30.0]))
    rows = rows.set_column(2, "new", pa.array([True, True]))
    rows = rows.set_column(3, "at", pa.array([rows["at"][0].as_py()] * 2, rows["at"].type))
    mean = model.terms.share[1:9] @ (model.terms.basis @ model.b)[1:9, 0]
    np.testing.assert_allclose(np.diff(model.scores(rows)), -(known.effect[0] + mean), atol=1e-9)


def test_strata_that_no_column_tells_get_a_term_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 1))
    stratum = np.repeat([0, 1], 2000)
    y = (rng.random(4000) < special.expit(X[:, 0] + 2 * stratum - 1)).astype(float)
    bags = random_bags(X, y, size=10, seed=0, stratum=stratum)
    plain = Bags(bags.bag, bags.report, X=bags.X)
    with_strata = Additive(steps=0).fit(bags)
    with pytest.warns(DataWarning, match="scatter"):
        without = Additive(steps=0).fit(plain)
    np.testing.assert_allclose(with_strata.scores(X).mean(), 0, atol=0.3)
    assert with_strata.log_evidence > without.log_evidence + 20
    assert with_strata.terms.groups == ("column 0",)


@pytest.mark.parametrize(
    "x, edges",
    [
        (np.array([0.0, 0.0, 1.0]), ()),
        (np.array([1.0, 2.0, 3.0]), (1.5, 2.5)),
        (np.repeat([0.0, 5.0, 6.0, 7.0, 8.0], [90, 1, 1, 1, 1]), (2.5, 6.5)),
    ],
)
def test_steps_lie_between_values_and_a_frequent_value_has_its_own_bin(x, edges):
    assert number_term("x", x, steps=2 if len(x) > 10 else 20).edges == edges


def long_tails(power=1.0, largest=None):
    """Bags of a number with a long tail, whose logarithm matters."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    y = (rng.random(3000) < special.expit(x)).astype(float)
    number = np.exp(power * x)
    if largest is not None:
        number[np.argmax(number)] = largest
    return random_bags(pa.table({"price": number}), y, size=5, seed=0)


@pytest.mark.parametrize("change", [{"power": 3.0}, {"largest": 1e12}])
def test_only_the_order_of_a_number_with_a_long_tail_matters(change):
    bags, other = long_tails(1.5), long_tails(**{"power": 1.5, **change})
    same = Additive().fit(bags).scores(bags.X)
    np.testing.assert_allclose(Additive().fit(other).scores(other.X), same, atol=1e-9)


def test_a_line_of_ranks_needs_few_bags_where_a_logarithm_matters():
    model = Additive().fit(long_tails(1.5))
    line, steps = model.precision
    assert model.terms.groups == ("price line", "price steps")
    assert line < 5 < 20 < steps  # the line alone tells it
    effect = model.effects()[0]
    np.testing.assert_allclose(effect.effect[2:-2], np.log(effect.at[2:-2]) / 1.5, atol=0.3)


def test_a_file_whose_line_of_ranks_has_no_bins_is_refused():
    model = Additive().fit(long_tails(1.5))
    arrays, settings = model.arrays()
    settings["terms"][0].pop("edges")
    with pytest.raises(Misfit, match="no bins"):
        type(model).restore(arrays, settings)


def test_one_hot_columns_are_one_term_and_others_numbers():
    rng = np.random.default_rng(0)
    X = np.hstack(
        [
            np.eye(3)[rng.integers(0, 3, 50)],
            rng.normal(size=(50, 1)),
            np.eye(2)[rng.integers(0, 2, 50)],
        ]
    )
    terms, _ = terms_of(X, steps=0)
    assert [term.name for term in terms.terms] == ["columns 0 to 2", "column 3", "columns 4 to 5"]
    assert isinstance(terms, Terms)


def test_a_constant_column_is_left_out_with_a_warning():
    X, y, _ = logistic(400)
    X[:, 2] = 7
    with pytest.warns(DataWarning, match=r"Left out of the model: column 2 \(one value only\)"):
        model = Additive(steps=0).fit(random_bags(X, y, size=4, seed=0))
    assert np.isfinite(model.scores(X)).all()


def test_a_column_with_one_value_for_each_row_is_left_out_with_a_warning():
    table, y, _ = mixed(400)
    table = table.append_column("id", pa.array([f"row {i}" for i in range(400)]))
    with pytest.warns(DataWarning, match="'id' .*different value"):
        model = Additive().fit(random_bags(table, y, size=4, seed=0))
    assert np.isfinite(model.scores(table)).all()


def test_a_column_that_separates_the_labels_is_told():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.5).astype(float)
    X = np.column_stack([y + 0.1 * rng.normal(size=4000), rng.normal(size=4000)])
    with pytest.warns(DataWarning, match="separates the labels"):
        model = Additive().fit(Bags(np.arange(4000), y, X=X))
    assert np.isfinite(model.scores(X)).all()
    assert ((model.scores(X) > 0) == (y == 1)).all()


def test_more_columns_than_bags_are_told_and_near_the_prior():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 50)), (rng.random(400) < 0.3).astype(float)
    with pytest.warns(DataWarning, match=r"more columns \(50\) than bags \(10\)"):
        model = Additive().fit(random_bags(X, y, size=40, seed=0))
    assert np.isfinite(model.scores(X)).all()
    assert np.abs(model.scores(X) - special.logit(0.3)).mean() < 1


@pytest.mark.filterwarnings("ignore:The reports tell nothing")
def test_reports_that_contradict_each_other_are_told():
    bag = np.repeat(np.arange(100), 100)
    X = np.random.default_rng(0).normal(size=(10_000, 1))
    report = np.where(np.arange(100) % 2 == 0, 0.1, 0.9)
    with pytest.warns(DataWarning, match="contradict"):
        model = Additive().fit(Bags(bag, report, X=X))
    np.testing.assert_allclose(special.expit(model.scores(X)).mean(), 0.5, atol=0.02)


def test_noise_so_large_that_nothing_can_be_learned_gives_the_mean_and_says_so():
    X, y, _ = logistic(1000)
    bags = random_bags(X, y, size=10, seed=0)
    noisy = Bags(bags.bag, bags.report, X=bags.X, noise=np.full(len(bags), 1e6))
    with pytest.warns(DataWarning, match="tell nothing"):
        model = Additive().fit(noisy)
    np.testing.assert_allclose(special.expit(model.scores(X)), y.mean(), atol=0.02)


def test_a_number_whose_mean_is_exactly_zero_is_a_column_like_any_other():
    X = np.tile([-1.0, 1.0], 200)[:, None]
    y = np.random.default_rng(0).random(400) < 0.5 + 0.4 * X[:, 0]
    model = Additive().fit(random_bags(X, y, size=2, seed=0))
    assert np.diff(model.scores(np.array([[-1.0], [1.0]])))[0] > 1


def test_a_plain_fit_gives_no_warning():
    X, y, _ = logistic(1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Additive().fit(random_bags(X, y, size=10, seed=0))


@pytest.mark.parametrize("alike", [False, True])
def test_the_diagonal_of_a_quadratic_form_is_that_of_the_dense_product(alike):
    """Columns that no count, one, some and nearly all have; of those that are alike the mean."""
    rng = np.random.default_rng(0)
    share = rng.choice([0.0, 0.02, 0.05, 0.4], size=60)
    J = np.where(rng.random((80, 60)) < share, rng.normal(size=(80, 60)), 0.0)
    sums, basis = rng.normal(size=(80, 3)), sparse.eye_array(3).tocsr()
    made = Jacobian(sums, basis, sparse.csr_array(J), alike)
    whole, weight = np.hstack([sums, J]), rng.uniform(size=63)
    if alike:
        weight[3:] = 0.3
    outer = (whole * weight) @ whole.T
    np.testing.assert_allclose(np.tril(made.outer(weight)), np.tril(outer), atol=1e-12)
    K = np.eye(80) + outer
    diagonal = np.diag(whole.T @ np.linalg.solve(K, whole))
    if alike:
        diagonal = np.append(diagonal[:3], np.full(60, diagonal[3:].mean()))
    L = np.asfortranarray(np.linalg.cholesky(K))
    np.testing.assert_allclose(made.quadratic(L, weight), diagonal, rtol=1e-10)


class Units:
    """Draws that are the unit vectors, one after the other."""

    def __init__(self):
        self.made = 0

    def normal(self, size):
        z = np.eye(*size, k=self.made)
        self.made += size[0]
        return z


@pytest.mark.parametrize("space", ["coefficients", "counts"])
@pytest.mark.parametrize("alike", [False, True])
def test_sparse_coefficients_that_are_factored_apart_have_the_posterior_of_all(
    space, alike, monkeypatch
):
    """Also at further precisions, for which one factor serves as long as those apart stay."""
    monkeypatch.setattr("unbag.additive._posterior.APART", 10)
    rng = np.random.default_rng(0)
    J = np.where(rng.random((70, 60)) < 0.1, rng.normal(size=(70, 60)), 0.0)
    sums, basis = rng.normal(size=(70, 5)), sparse.eye_array(5).tocsr()
    made = Space(Jacobian(sums, basis, sparse.csr_array(J), alike), space=space)
    assert made.first == 5
    whole, precision = np.hstack([sums, J]), rng.uniform(1, 5, 65)
    precision[0], rhs = FLAT, rng.normal(size=(65, 3))
    np.testing.assert_allclose(made.squares, (whole**2).sum(axis=0))
    np.testing.assert_allclose(made.squared(rhs[:, 0]), whole.T @ whole @ rhs[:, 0], atol=1e-9)
    for factor in (1.0, 2.0):
        precision[1:5] *= factor
        if alike:
            precision[5:] = 3.0
        posterior = made.posterior(precision)
        H = whole.T @ whole + np.diag(precision)
        C = np.linalg.inv(H)
        gamma = 1 - precision * np.diag(C)
        np.testing.assert_allclose(posterior.first_gamma, np.where(np.arange(65) < 5, gamma, 0))
        if alike and space == "counts":
            gamma[5:] = gamma[5:].mean()
        np.testing.assert_allclose(posterior.gamma, gamma, atol=1e-10)
        np.testing.assert_allclose(posterior.logdet, np.linalg.slogdet(H)[1], rtol=1e-10)
        np.testing.assert_allclose(posterior.solve(rhs), C @ rhs, atol=1e-10)
        np.testing.assert_allclose(posterior.solve(rhs[:, 0]), C @ rhs[:, 0], atol=1e-10)
        root = posterior.draws(Units(), 65 + 70 * (space == "counts"))
        np.testing.assert_allclose(root @ root.T, C, atol=1e-10)
    near = precision * np.where(np.arange(65) < 5, 3.0, 1.1)
    known = np.append(near[:5], precision[5:])
    expected = np.linalg.solve(whole.T @ whole + np.diag(known), rhs)
    np.testing.assert_allclose(made.near(near).solve(rhs), expected, atol=1e-10)


@pytest.mark.parametrize("size", [8, 40])
def test_a_fit_with_levels_factored_apart_comes_to_the_same_fixed_point(size, monkeypatch):
    monkeypatch.setattr("unbag.additive._evidence.SMALL", 1e-3)
    monkeypatch.setattr("unbag.additive._evidence.NEGLIGIBLE", 1e-6)
    rng = np.random.default_rng(1)
    shop, kind = rng.integers(0, 300, 8000), rng.integers(0, 5, 8000)
    effect = rng.normal(size=300)
    y = rng.random(8000) < special.expit(effect[shop] + kind / 2 - 2)
    table = pa.table({"shop": [f"s{i}" for i in shop], "kind": [f"k{i}" for i in kind]})
    bags = random_bags(table, y, size=size, seed=0)
    together = Additive().fit(bags)
    monkeypatch.setattr("unbag.additive._posterior.APART", 50)
    apart = Additive().fit(bags)
    assert apart.log_evidence > together.log_evidence - 1e-3
    np.testing.assert_allclose(apart.precision, together.precision, rtol=0.02)
    np.testing.assert_allclose(apart.scores(table), together.scores(table), atol=0.02)


def test_levels_that_no_row_has_change_nothing(monkeypatch):
    """Large designs leave them out; narrow and wide columns alike."""
    rng = np.random.default_rng(0)
    wide, narrow = rng.integers(0, 100, 4000), rng.integers(0, 5, 4000)
    table = pa.table({"shop": [f"s{i}" for i in wide], "kind": [f"k{i}" for i in narrow]})
    kept = np.flatnonzero((wide % 3 != 1) & (narrow != 2))
    y = rng.random(len(kept)) < special.expit(wide[kept] / 50 - narrow[kept] / 2)
    bags = random_bags(table.take(kept), y, size=8, seed=0)
    learner = Additive(plan=plan_features(table))
    whole = learner.fit(bags)
    monkeypatch.setattr("unbag.additive._model.EXACT", 10)
    part = learner.fit(bags)
    assert (part.b == 0).sum() > 100
    np.testing.assert_allclose(part.b, whole.b, atol=1e-6)
    np.testing.assert_allclose(part.errors(table), whole.errors(table), rtol=0.3)


def test_products_of_rows_make_the_jacobian_of_few_rows_with_many_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 6, 60)
    bags = random_bags(X, y, size=4, seed=0, kind="histogram", classes=6)
    _, design = terms_of(bags.X, steps=6)
    counts = counts_of(bags)
    assert RowProducts.pays(design, counts)
    h = special.softmax(rng.normal(size=(60, 6)), axis=1)
    W = counts.whitener(h, Spread())
    products, split = RowProducts(design, counts), Split(design, counts)
    ours, plain = products.jacobian(counts, h, W), split.jacobian(counts, h, W)
    J = np.empty(ours.shape)
    J[:, split.order] = np.hstack([plain.dense, plain.sparse.toarray()])
    b, r = rng.normal(size=(ours.shape[1], 2)), rng.normal(size=(ours.shape[0], 2))
    np.testing.assert_allclose(ours.dot(b), J @ b, atol=1e-5)
    np.testing.assert_allclose(ours.tdot(r), J.T @ r, atol=1e-5)
    np.testing.assert_allclose(ours.columns(np.array([0, 7])), J[:, [0, 7]], atol=1e-5)
    weight = np.tile(rng.uniform(size=ours.shape[1] // 6), 6)
    np.testing.assert_allclose(ours.outer(weight), (J * weight) @ J.T, atol=1e-4)
    K = J @ J.T + np.eye(len(J))
    expected = np.diag(J.T @ np.linalg.solve(K, J)).reshape(6, -1).mean(axis=0)
    made = ours.quadratic(np.linalg.cholesky(K), weight).reshape(6, -1)
    np.testing.assert_allclose(made, np.tile(expected, (6, 1)), atol=1e-5)


@pytest.mark.parametrize("kind", ["binary", "total"])
def test_blocks_of_bags_add_up_to_the_products_of_the_whole_jacobian(kind, monkeypatch):
    X, y, _ = mixed(900)
    page = np.random.default_rng(0).integers(0, 70, 900)
    X = X.append_column("page", pa.array([f"p{i}" for i in page]))
    bags = random_bags(X, y, size=3, seed=0, kind=kind)
    _, design = terms_of(bags.X, steps=4)
    made = []
    for rows in (10**6, 100):
        monkeypatch.setattr("unbag.additive._rows.AT_ONCE", rows)
        problem = RowsFit(design, counts_of(bags))
        linear = problem.linearise(problem.start())
        made.append((linear.gradient, linear.space.gram, len(problem.split.blocks)))
    (gradient, gram, one), (added, sums, many) = made
    assert (one, many) == (1, 9)
    np.testing.assert_allclose(added, gradient, atol=1e-10)
    np.testing.assert_allclose(sums, gram, atol=1e-10)


@pytest.mark.filterwarnings("ignore::unbag.additive.DataWarning")
def test_one_bag_with_as_many_levels_as_a_byte_holds():
    level = np.repeat(np.arange(127), 3)
    X = pd.DataFrame({"c": pd.Categorical([f"v{i}" for i in level])})
    bags = Bags(np.zeros(len(level), int), np.array([0.3]), X=X)
    assert Additive().fit(bags).log_evidence == pytest.approx(-20.0474, abs=1e-3)


@pytest.mark.filterwarnings("ignore::unbag.additive.DataWarning")
@pytest.mark.parametrize("columns", [0, 1])
def test_totals_of_trillions_have_a_mean(columns):
    report = 1e12 * np.random.default_rng(0).uniform(1, 2, 5)
    bags = Bags(np.repeat(np.arange(5), 3), report, kind="total", X=np.ones((15, columns)))
    assert Additive().fit(bags).b[0, 0] == pytest.approx(np.log(report.mean()), rel=1e-3)


@pytest.mark.filterwarnings("ignore::unbag.additive.DataWarning")
def test_sparse_rows_may_have_strata():
    X = sparse.random(40, 5, 0.5, format="csr", random_state=0)
    bags = Bags(np.repeat(np.arange(10), 4), np.linspace(0, 1, 10), X=X,
                      stratum=np.arange(10) % 2)  # fmt: skip
    assert np.isfinite(Additive().fit(bags).strength).all()


@pytest.mark.filterwarnings("ignore:There are more columns:unbag.additive.DataWarning")
def test_steps_along_which_the_gradient_rises_do_not_end_the_fit():
    """Ten totals of fifty rows with heavy tails: such a step came, its curvature below zero was
    believed, and the fit ended with a warning that it had not converged."""
    rng = np.random.default_rng(79)
    rng.choice([10, 40, 150]), rng.choice([1, 3, 10, 50]), rng.choice([1, 4, 20])
    bag, X = np.repeat(np.arange(10), 50), rng.standard_t(2, size=(500, 20))
    w = rng.normal(size=(20, 8)) * rng.choice([0.3, 1, 4])
    rng.choice([2, 3, 8])
    count = rng.poisson(np.exp(np.clip((X @ w)[:, 0], -9, 8)))
    Additive().fit(Bags(bag, np.bincount(bag, count) / 50, X=X, kind="total"))


@pytest.mark.parametrize("steps", [1, 2, 20])
@pytest.mark.parametrize("seed", range(20))
def test_bins_of_a_number_hold_as_many_rows_but_for_values_that_fill_one(seed, steps):
    """By the rank of every value, in place of those near the ends of bins."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(300) < 0.4, 7.0, rng.normal(size=300).round(seed % 3) * 10)
    value, count = np.unique(x, return_counts=True)
    heavy = count * (steps + 1) > len(x)
    rest, bins = np.where(heavy, 0, count), max(steps + 1 - heavy.sum(), 1)
    rank = (np.cumsum(rest) - rest / 2) / max(rest.sum(), 1)
    label = np.minimum((rank * bins).astype(int), bins - 1)
    last = (np.diff(label) > 0) | (heavy[1:] | heavy[:-1])
    where = np.flatnonzero(last if len(value) > steps + 1 else np.ones(len(last)))
    edges = (value[where] + value[where + 1]) / 2
    np.testing.assert_array_equal(number_term("x", x, steps=steps).edges, edges)


@pytest.mark.parametrize("kind", ["binary", "total"])
def test_blocks_of_rows_change_nothing(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)).astype(np.float32)
    bag = np.sort(rng.integers(0, 200, 4000))
    bag = np.unique(bag, return_inverse=True)[1]
    y = rng.random(4000) < special.expit(X[:, 0])
    bags = Bags(bag, np.bincount(bag, y) / np.bincount(bag), X=X, kind=kind)
    whole = Additive().fit(bags).scores(X)
    monkeypatch.setattr("unbag._arrays.BLOCK", 100)
    np.testing.assert_allclose(Additive().fit(bags).scores(X), whole, atol=1e-9)
