"""Learners of other papers: every one against every law, on one small world."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import unbag
from unbag import random_bags
from unbag.bags import Bags
from unbag.learners import LEARNERS, Learner, Model
from unbag.likelihood import count_likelihood
from unbag.peers import (
    PEERS,
    AlterSVM,
    BagMeans,
    BeliefPropagation,
    DistributionRegression,
    LaplacianMeanMap,
    MeanMap,
    PseudoLabelEM,
    choose_by_counts,
    count_evidence,
)
from unbag.peers._linear import BagData, LinearModel, fit_logistic, level_of, slope_and_level
from unbag.peers._papers import best_labels, marginals, ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
TRUE = 1.5 * X[:, 0] - X[:, 1] - 0.5
Y = (RNG.uniform(size=len(X)) < expit(TRUE)).astype(float)
SMALL = (
    MeanMap((0.01,)),
    LaplacianMeanMap((0.01,), (1.0,)),
    AlterSVM((10.0,), rounds=3),
    PseudoLabelEM((0.01,), rounds=6),
    BeliefPropagation((0.01,), rounds=4),
    DistributionRegression(),
    BagMeans(),
)
BY_NAME = {peer.name: peer for peer in SMALL}


def data_of(bags):
    return BagData(np.asarray(bags.X), bags.bag, bags.size.astype(float), bags.report)


@pytest.fixture(scope="module")
def models():
    """Every learner, fitted once to bags of five."""
    bags = random_bags(X, Y, size=5, seed=0)
    return {name: peer.fit(bags, seed=1) for name, peer in BY_NAME.items()}


def test_the_table_of_learners_has_every_one():
    assert [peer.name for peer in PEERS] == list(BY_NAME)
    for peer in PEERS:
        assert type(LEARNERS[peer.name].make()) is peer
        assert isinstance(peer(), Learner)


@pytest.mark.parametrize("name", BY_NAME)
def test_it_learns_from_random_bags(name, models):
    score = models[name].scores(X)
    assert isinstance(models[name], Model)
    assert np.corrcoef(score, TRUE)[0, 1] > 0.8
    assert expit(score).mean() == pytest.approx(Y.mean(), abs=0.07)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_seed_decides_everything(name, models):
    again = BY_NAME[name].fit(random_bags(X, Y, size=5, seed=0), seed=1)
    np.testing.assert_array_equal(again.scores(X[:20]), models[name].scores(X[:20]))


@pytest.mark.parametrize("name", BY_NAME)
def test_the_order_of_bags_and_rows_is_irrelevant(name):
    bags = random_bags(X[:200], Y[:200], size=5, seed=0)
    order = np.random.default_rng(1).permutation(len(bags.bag))
    moved = Bags(bags.bag[order], bags.report, X=X[:200][bags.rows[order]])
    scores = [BY_NAME[name].fit(each).scores(X[:30]) for each in (bags, moved)]
    tolerance = {"distribution_regression": 0.5}.get(name, 2e-2)  # which rows set its width
    np.testing.assert_allclose(*scores, atol=tolerance)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_units_of_a_column_are_irrelevant(name, models):
    factor, shift = np.array([100.0, 0.01, 1.0]), np.array([5.0, 0.0, -3.0])
    bags = random_bags(X * factor + shift, Y, size=5, seed=0)
    again = BY_NAME[name].fit(bags, seed=1)
    expected = models[name].scores(X[:50])
    np.testing.assert_allclose(again.scores(X[:50] * factor + shift), expected, atol=1e-2)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_model_goes_through_its_arrays(name, models):
    arrays, settings = models[name].arrays()
    again = type(models[name]).restore(arrays, settings)
    np.testing.assert_array_equal(again.scores(X[:20]), models[name].scores(X[:20]))


@pytest.mark.parametrize("name", ["mean_map", "em"])
def test_tables_are_read_by_their_columns(name):
    colour = np.where(X[:, 0] > 0, "red", "blue")
    table = pa.table({"colour": colour, "length": X[:, 1]})
    model = BY_NAME[name].fit(random_bags(table, Y, size=4, seed=0))
    red, blue = (pa.table({"colour": [c], "length": [0.0]}) for c in ("red", "blue"))
    assert model.scores(red)[0] > model.scores(blue)[0] + 0.3


def test_unbag_fit_takes_a_peer_by_name_and_restores_it():
    fitted = unbag.fit(random_bags(X, Y, size=3, seed=0), learner="bag_means", folds=2)
    assert fitted.evaluation["log_loss"].value < 0.66
    arrays, settings = fitted.arrays()
    again = unbag.learners.Fitted.restore(arrays, settings)
    np.testing.assert_allclose(again.scores(X[:10]), fitted.scores(X[:10]))


@pytest.mark.parametrize("learner", [MeanMap((0.01,)), PseudoLabelEM((0.01,), rounds=2)])
def test_bags_of_one_give_logistic_regression(learner):
    bags = random_bags(X[:400], Y[:400], size=1, seed=0)
    standard = (X[:400] - X[:400].mean(axis=0)) / X[:400].std(axis=0)
    usual = LogisticRegression(C=1 / (0.01 * 400), tol=1e-8).fit(standard, Y[:400])
    score = learner.fit(bags).scores(X[:400])
    np.testing.assert_allclose(score, usual.decision_function(standard), atol=0.03)


def test_the_mean_operator_of_bags_of_one_is_that_of_the_labels():
    data = data_of(random_bags(X[:60], Y[:60], size=1, seed=0))
    expected = ((Y[:60] - 0.5)[:, None] * X[:60]).mean(axis=0)
    np.testing.assert_allclose(MeanMap().operator(data, 0), expected, atol=1e-12)
    np.testing.assert_allclose(LaplacianMeanMap().operator(data, 1e-9), expected, atol=1e-4)


def test_an_endless_smoothness_makes_the_laplacian_mean_map_the_mean_map():
    data = data_of(random_bags(X[:300], Y[:300], size=10, seed=0))
    plain, smooth = MeanMap().operator(data, 0), LaplacianMeanMap().operator(data, 1e6)
    np.testing.assert_allclose(smooth, plain, atol=1e-4)


def test_the_mean_map_is_exact_when_bags_differ_in_proportions_only():
    a, ones, zeros = np.array([0.2, 0.7, 0.5]), np.array([1.0, 2.0]), np.array([-1.0, 0.5])
    means = a[:, None] * ones + (1 - a)[:, None] * zeros
    data = BagData(means, np.arange(3), np.ones(3), a)  # each bag stands for many rows
    p = a.mean()
    np.testing.assert_allclose(MeanMap().operator(data, 0), (p * ones - (1 - p) * zeros) / 2)


def test_logistic_regression_from_sums_is_logistic_regression():
    operator = ((Y - 0.5)[:, None] * X).mean(axis=0)
    w = fit_logistic(X, operator, Y.mean(), 0.1)
    usual = LogisticRegression(C=1 / (0.1 * len(Y)), tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(w, [*usual.coef_[0], *usual.intercept_], atol=1e-3)


def enumerated(odds, bag, count, edges=(), strength=()):
    """Marginals by looking at all labels."""
    total, sums = 0.0, np.zeros(len(bag))
    for y in itertools.product([0, 1], repeat=len(bag)):
        y = np.array(y)
        if (np.bincount(bag, y) != count).any():
            continue
        value = y @ odds - sum(
            w * (y[i] - y[j]) ** 2 for (i, j), w in zip(edges, strength, strict=True)
        )
        total += np.exp(value)
        sums += y * np.exp(value)
    return sums / total


def test_what_a_count_says_of_its_labels_is_exact():
    bag, count = np.array([1, 0, 0, 1, 0, 1, 1, 0]), np.array([1, 3])
    odds = np.random.default_rng(2).normal(size=8)
    q = expit(odds + count_evidence(odds, bag, count))
    np.testing.assert_allclose(q, enumerated(odds, bag, count), rtol=1e-10)
    np.testing.assert_allclose(np.bincount(bag, q), count, rtol=1e-10)


def test_a_count_of_none_or_of_all_decides():
    q = expit(count_evidence(np.zeros(5), np.array([0, 0, 1, 1, 1]), np.array([0, 3])))
    np.testing.assert_allclose(q, [0, 0, 1, 1, 1], atol=1e-9)


def test_a_step_of_em_goes_along_the_gradient_of_the_likelihood():
    bag, count, k = np.repeat([0, 1], 4), np.array([1, 3]), np.array([4.0, 4.0])
    score = np.random.default_rng(3).normal(size=8)
    report = np.stack([np.ones(2), count / k], axis=1)
    step, slope = 1e-5, np.zeros(8)
    for i in range(8):
        ends = [
            count_likelihood(score + s * np.eye(8)[i], bag, k, report).sum() for s in (step, -step)
        ]
        slope[i] = (ends[0] - ends[1]) / (2 * step)
    q = expit(score + count_evidence(score, bag, count))
    np.testing.assert_allclose(expit(score) - q, slope, atol=1e-6)


def test_belief_propagation_is_exact_on_a_tree():
    bag, count = np.array([0, 0, 0, 1, 1, 1, 2, 2]), np.array([1, 2, 1])
    edges, strength = np.array([[0, 3], [4, 6]]), np.array([0.8, 1.3])
    odds = np.random.default_rng(4).normal(size=8)
    q = marginals(bag, count, edges, strength, rounds=8, odds=odds)
    np.testing.assert_allclose(q, enumerated(odds, bag, count, edges, strength), rtol=1e-8)


def test_labels_of_the_svm_keep_the_counts_and_take_the_highest_scores():
    data = BagData(
        np.zeros((5, 1)), np.array([0, 1, 0, 1, 1]), np.array([2.0, 3.0]), np.array([0.5, 2 / 3])
    )
    np.testing.assert_array_equal(best_labels(np.array([1, 5, 2, 4, 9.0]), data), [0, 1, 1, 0, 1])


def test_ridge_leaves_one_out_without_fitting_again():
    rng = np.random.default_rng(0)
    A, weight = rng.normal(size=(40, 4)), rng.uniform(1, 3, size=40)
    y = A @ [1.0, 2.0, 0.0, -1.0] + 0.7
    np.testing.assert_allclose(ridge(A, y, weight), [1, 2, 0, -1, 0.7], atol=1e-4)
    assert np.abs(ridge(A, rng.normal(size=40), weight)[:-1]).max() < 0.5


def test_the_choice_is_by_counts_of_bags_not_learned_from():
    data = data_of(random_bags(X, Y, size=4, seed=0))
    asked = []

    def fit(learn, stretch):
        asked.append(len(learn.size))
        return lambda rows: stretch * (1.5 * rows[:, 0] - rows[:, 1])

    chosen, scores = choose_by_counts(fit, data, (0.1, 1.0, 5.0), seed=0)
    assert chosen == 1.0
    assert set(asked) == {100}  # two of three folds of 150 bags
    assert np.corrcoef(scores, TRUE)[0, 1] > 0.99


def test_level_and_slope_are_those_of_the_truth():
    bags = random_bags(X, Y, size=4, seed=3)
    score = TRUE[bags.rows]
    slope, level = slope_and_level(score / 4 + 1, data_of(bags))
    assert slope == pytest.approx(4, rel=0.4)
    assert expit(slope * (score / 4 + 1) + level).mean() == pytest.approx(Y.mean(), abs=2e-3)
    assert level_of(np.zeros(3), 0.25) == pytest.approx(logit(0.25))


@pytest.mark.parametrize("name", ["mean_map", "laplacian_mean_map", "bag_means"])
def test_declared_noise_is_taken_by_learners_that_guess_no_labels(name):
    """Counts below zero were refused with the advice to declare the noise that was declared."""
    bags = random_bags(X, Y, size=5, seed=0)
    noisy = bags.report + np.random.default_rng(1).laplace(0, 1, len(bags)) / bags.size
    assert noisy.min() < 0
    bags = replace(bags, report=noisy, noise=np.full(len(bags), 2.0))
    assert np.corrcoef(BY_NAME[name].fit(bags).scores(X), TRUE)[0, 1] > 0.5


def test_ridge_on_bag_means_keeps_the_level_of_rare_labels():
    """One label in 250, where a floor of 0.01 on each probability made the mean twice as high."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 1))
    y = rng.random(20_000) < 0.004
    model = BagMeans().fit(random_bags(x, y, size=50, seed=0))
    assert expit(model.scores(x)).mean() == pytest.approx(y.mean(), rel=0.1)
    again = LinearModel.restore(*model.arrays())
    np.testing.assert_array_equal(again.scores(x), model.scores(x))
