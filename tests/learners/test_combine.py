from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from scipy.optimize import minimize

from unbag import Bags, fit, random_bags
from unbag.learners import Combination, combine
from unbag.learners._combine import (
    APART,
    HOPE,
    SLOPE,
    _derivatives,
    _design,
    _dispersion,
    _offset,
    _solve,
    log_likelihood_loss,
    slope_of,
    unsteadiness,
)


def world(kind="binary", n=6000, size=10, seed=0, factor=1.0):
    rng = np.random.default_rng(seed)
    x, other = rng.normal(size=(2, n))
    if kind == "histogram":
        z = np.stack([np.zeros(n), x, -x], axis=1)
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        y = (rng.uniform(size=n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
        noise = rng.normal(size=(n, 3))
    else:
        z, noise = x - 1, other
        draw = {
            "binary": lambda: rng.uniform(size=n) < 1 / (1 + np.exp(-z)),
            "total": lambda: rng.poisson(np.exp(z)),
        }
        y = draw[kind]()
    bags = random_bags(None, y, size=size, seed=seed, kind=kind)
    return bags, np.stack([factor * z, noise])[:, bags.rows]


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_a_good_learner_gets_the_weight_and_noise_none(kind):
    bags, scores = world(kind)
    found = combine(("good", "noise"), scores, bags)
    assert found.weights[0] == pytest.approx(1, abs=0.2)
    assert found.weights[1] == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_slope_and_level_are_repaired(kind):
    bags, scores = world(kind, n=20000, factor=0.5)
    found = combine(("one",), scores[:1] + 3.0, bags)
    assert found.weights[0] == pytest.approx(2, abs=0.2)
    score = found.apply(scores[:1] + 3.0)
    predicted = {
        "binary": lambda: (1 / (1 + np.exp(-score))).mean(),
        "total": lambda: np.exp(score).mean(),
        "histogram": lambda: (np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)).mean(0),
    }[kind]()
    np.testing.assert_allclose(predicted, bags.prior, rtol=0.01)


def test_the_prior_to_compare_with_is_the_mean_report_and_not_the_level():
    """Around the level scores vary, and their mean prediction is another one."""
    bags, scores = world(factor=1.0)
    found = combine(("steep",), 3 * scores[:1], bags)
    assert 1 / (1 + np.exp(-found.prior)) == pytest.approx(bags.prior, abs=1e-4)
    assert abs(1 / (1 + np.exp(-found.level)) - bags.prior) > 0.02


def test_bags_of_one_give_a_penalised_logistic_regression():
    """The covariance is updated and not differentiated, so the equations are the same."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2, 400))
    y = rng.uniform(size=400) < 1 / (1 + np.exp(-z[0]))
    found = combine(("a", "b"), z, Bags(np.arange(400), y.astype(float)))
    away = z - z.mean(axis=1, keepdims=True)

    def objective(theta):
        eta = theta[0] + theta[1:] @ away
        b = theta[1:]
        together = (b.sum() - 1) ** 2 / SLOPE**2
        apart = np.sum((b - b.mean()) ** 2) / APART**2
        return np.sum(np.logaddexp(0, eta) - y * eta) + (together + apart) / 2

    expected = minimize(objective, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose([found.level, *found.weights], expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["binary", "total"])
def test_the_slope_is_that_of_the_gaussian_likelihood_at_its_covariance(kind):
    bags, scores = world(kind, n=200)
    design, free, theta = _design(scores, bags), _offset(bags), np.array([-0.5, 0.3, 0.2])

    def mean(theta):
        eta = (free + design @ theta)[:, 0]
        h = 1 / (1 + np.exp(-eta)) if kind == "binary" else np.exp(eta)
        return h, np.bincount(bags.bag, h)

    h = mean(theta)[0]
    V = np.bincount(bags.bag, h * (1 - h) if kind == "binary" else h)
    count = bags.report * bags.size
    value = lambda theta: -np.sum((count - mean(theta)[1]) ** 2 / V) / 2
    steps = 1e-6 * np.eye(3)
    expected = [(value(theta + d) - value(theta - d)) / 2e-6 for d in steps]
    np.testing.assert_allclose(_derivatives(design, free, theta, bags)[0], expected, rtol=1e-5)


def test_learners_of_pure_noise_give_the_prior():
    """Scores that have learned nothing: weights vanish, and the level is that of the prior."""
    bags, scores = world(n=20000, size=20)
    rng = np.random.default_rng(1)
    found = combine(("a", "b"), 2 * rng.normal(size=scores.shape), bags)
    assert found.weights.sum() < 0.05
    assert 1 / (1 + np.exp(-found.level)) == pytest.approx(float(bags.prior), rel=0.02)


def test_a_mean_report_above_1_by_noise_leaves_a_finite_level():
    bags, scores = world(n=1000, size=10)
    noise = {"report": bags.report + 3.0, "noise": np.full(len(bags), 1e6)}
    combined = combine(("a", "b"), scores, replace(bags, **noise))
    assert abs(combined.prior) < 10
    assert abs(combined.level) < 10


def test_few_bags_leave_the_plain_mean_times_the_hope_that_they_teach_something():
    bags, scores = world(n=120, size=30)
    combined = combine(("a", "b"), 0.01 * scores, bags)
    np.testing.assert_allclose(combined.weights, special.expit(HOPE) / 2, atol=0.01)


def test_few_bags_leave_each_learner_the_share_that_is_expected_of_it():
    bags, scores = world(n=120, size=30)
    share = np.array([0.75, 0.25])
    combined = combine(("a", "b"), 0.01 * scores, bags, share=share)
    np.testing.assert_allclose(combined.weights, special.expit(HOPE) * share, atol=0.01)


def test_a_learner_that_says_nothing_leaves_its_share_to_the_others():
    bags, scores = world(n=120, size=30)
    silent = np.stack([0.01 * scores[0], np.zeros_like(scores[0]), 0.01 * scores[1]])
    combined = combine(("a", "silent", "b"), silent, bags, share=np.array([0.5, 0.25, 0.25]))
    expected = special.expit(HOPE) * np.array([2, 0, 1]) / 3
    np.testing.assert_allclose(combined.weights, expected, atol=0.01)


def test_the_trust_is_the_evidence_of_a_free_weight_against_none(monkeypatch):
    """Of one learner, by quadrature: the likelihood, averaged over the prior of the weight. Bags are
    few, so that the trust is in between."""
    bags, scores = world(n=400, size=10, seed=3)
    away, grid = scores[:1] - scores[:1].mean(), np.linspace(-0.6, 2.6, 81)

    def log_likelihood(weight):
        level = _solve(away, bags, fixed=np.array([weight]))[0]
        return -log_likelihood_loss(level + weight * away[0], bags).sum()

    gain = np.array([log_likelihood(w) for w in grid]) - log_likelihood(0.0)
    prior = -(((grid - 1) / SLOPE) ** 2) / 2
    evidence = special.logsumexp(gain + prior) - special.logsumexp(prior)
    found = combine(("one",), scores[:1], bags)
    assert found.level == pytest.approx(_solve(away, bags, fixed=found.weights)[0], abs=1e-9)
    monkeypatch.setattr("unbag.learners._combine.HOPE", 100.0)
    trusted = combine(("one",), scores[:1], bags)
    trust = found.weights / trusted.weights
    assert special.logit(trust) == pytest.approx(evidence + HOPE, abs=0.15)


@pytest.mark.parametrize("noise", [0.0, 400.0])
def test_the_dispersion_of_totals_is_beyond_their_declared_noise(noise):
    bags, _ = world("total", n=600)
    count = np.random.default_rng(0).uniform(0, 100, len(bags))
    bags = replace(bags, report=count / bags.size, noise=np.full(len(bags), noise))
    mean = 10.0  # of ten rows of rate 1
    pearson = np.sum((count - mean) ** 2 / (mean + noise)) / (len(bags) - 1)
    assert pearson > 1
    assert _dispersion(np.zeros(600), bags) == pytest.approx(pearson, rel=1e-12)


def test_a_constant_learner_is_left_out():
    bags, scores = world()
    found = combine(
        ("good", "constant"), np.stack([scores[0], np.full(scores.shape[1], 2.0)]), bags
    )
    assert found.weights[1] == 0
    assert found.weights[0] == pytest.approx(1, abs=0.2)


def test_order_of_rows_and_bags_does_not_matter():
    bags, scores = world(n=600)
    order = np.random.default_rng(0).permutation(len(bags.bag))
    number = np.random.default_rng(1).permutation(len(bags))
    report = np.empty_like(bags.report)
    report[number] = bags.report
    other = Bags(number[bags.bag[order]], report)
    first, second = combine(("a", "b"), scores, bags), combine(("a", "b"), scores[:, order], other)
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-7)


def test_an_offset_is_added_with_weight_one():
    bags, scores = world("total", n=20000)
    exposure = np.random.default_rng(7).normal(size=len(bags.bag))
    found = combine(("one",), scores[:1] - exposure, replace(bags, offset=exposure))
    assert found.weights[0] == pytest.approx(1, abs=0.1)


def test_noise_on_counts_is_taken():
    bags, scores = world(n=20000)
    rng = np.random.default_rng(0)
    report = bags.report + rng.normal(size=len(bags)) * 3 / bags.size
    noisy = replace(bags, report=report, noise=np.full(len(bags), 9.0))
    assert combine(("a", "b"), scores, noisy).weights[0] == pytest.approx(1, abs=0.25)


def test_a_combination_comes_back_from_its_arrays():
    bags, scores = world("histogram")
    found = combine(("a", "b"), scores, bags)
    back = Combination.restore(*found.arrays())
    np.testing.assert_array_equal(back.apply(scores), found.apply(scores))


def test_totals_that_vary_more_than_poisson_counts_do_not_make_the_learners_suspect():
    """Counts thirty times as variable: scores with some error still beat the prior by far."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=4000) + 3
    y = rng.poisson(np.exp(z) * rng.gamma(0.5, 2.0, size=4000))
    bags = random_bags(None, y, size=100, seed=0, kind="total")
    scores = (z + 0.3 * rng.normal(size=4000))[bags.rows]
    found = combine(("one",), scores[None], bags)
    assert found.weights[0] > 0.5


def cross_fitted_noise(seed, bags=60, size=10, columns=12):
    """Labels that no column tells, and scores by least squares on the bags of the other folds."""
    rng = np.random.default_rng(seed)
    X, fold = rng.normal(size=(bags, size, columns)), np.arange(bags) % 5
    count = rng.binomial(size, 0.3, bags).astype(float)
    means = X.sum(axis=1)
    scores = []
    for number in range(5):
        A, c = means[fold != number], count[fold != number]
        b = np.linalg.solve(A.T @ A + 40 * np.eye(columns), A.T @ (c - c.mean()))
        scores.append((X @ b).reshape(-1) / 0.21)
    scores, row_fold = np.stack(scores), np.repeat(fold, size)
    own = scores[row_fold, np.arange(bags * size)]
    known = Bags(np.repeat(np.arange(bags), size), count / size)
    return scores[None], own, known, count


def test_of_scores_that_are_noise_each_pair_of_bags_is_counted_twice():
    """What bags say of cross-fitted noise varies twice as much as what they say of scores that they
    have no part in, and `unsteadiness` knows that these scores are noise."""
    values, shares = [], []
    for seed in range(150):
        scores, own, bags, count = cross_fitted_noise(seed)
        sums, residual = np.bincount(bags.bag, own - own.mean()), count - count.mean()
        values.append(residual @ sums / np.sqrt((sums**2).sum() * residual.var()))
        shares.append(unsteadiness(scores))
    assert np.var(values) == pytest.approx(2, rel=0.3)
    assert 0.7 < np.median(shares) < 1.5


def test_unsteady_scores_are_believed_in_less_for_the_same_reports():
    """A nat counts half at the least: what is beyond pure noise is noise."""
    bags, scores = world(n=600)
    steady, noise, beyond = (
        combine(("x",), scores[:1], bags, unsteady=share).weights[0] for share in (0, 1, 4)
    )
    assert steady > noise > 0.25
    assert noise == beyond


def test_few_bags_hardly_choose_between_learners():
    """One learner is right and the other noise: 20 bags leave both, 2,000 take the first."""
    few, scores = world(n=200)
    some = combine(("good", "noise"), scores, few).weights
    many, scores = world(n=20_000)
    all_weights = combine(("good", "noise"), scores, many).weights
    assert some[1] > 0.15
    assert all_weights[1] < 0.05


def test_the_interval_of_the_slope_holds_where_totals_scatter_far_more_than_poissons():
    """Of the true score the slope is 1; Poisson's law alone said so in a fifth of the trials."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(150):
        z = rng.normal(size=600) / 2 + 3
        y = rng.poisson(np.exp(z) * rng.gamma(0.5, 2.0, size=600))
        bags = random_bags(None, y, size=20, seed=0, kind="total")
        slope = slope_of(z[bags.rows], bags)
        covered.append(slope.low <= 1 <= slope.high)
    assert 0.9 < np.mean(covered) < 0.99


def test_the_slope_of_scores_by_folds_is_as_uncertain_as_pairs_of_bags_count_twice():
    bags, scores = world(n=600)
    alone, twice = (slope_of(scores[0], bags, unsteady=share) for share in (0.0, 1.0))
    assert twice.value == alone.value
    assert twice.error == pytest.approx(np.sqrt(2) * alone.error)


class LeastSquares:
    """A learner that takes a moment: scores by least squares on the means of bags."""

    name, needs_random_bags = "least squares", False

    def fit(self, bags, *, seed=0, progress=None):
        A = np.stack([np.bincount(bags.bag, x) for x in bags.X.T], axis=1)
        c = (bags.report - bags.report.mean()) * bags.size
        b = np.linalg.solve(A.T @ A + 40 * np.eye(A.shape[1]), A.T @ c) / 0.21
        return LinearScores(b)


class LinearScores:
    kind = "binary"

    def __init__(self, b):
        self.b = b

    def scores(self, X):
        return X @ self.b


def test_the_slope_of_a_fit_is_not_made_small_by_the_combinations_of_single_folds():
    """That of a fold is steep where the fold's own bags say that it is not: judged with it, slopes
    were 1.7 standard errors too small. The models that are judged learned from fewer bags than the
    final one, so a half is left."""
    rng, away = np.random.default_rng(0), []
    w, fresh = np.array([0.8, 0.4, 0, 0, 0, 0]), np.random.default_rng(1).normal(size=(4000, 6))
    for seed in range(20):
        X = rng.normal(size=(1200, 6))
        y = rng.random(1200) < special.expit(X @ w - 1)
        fitted = fit(random_bags(X, y, size=10, seed=seed), learner=LeastSquares(), seed=seed)
        score = fitted.scores(fresh) - fitted.scores(fresh).mean()
        slope = score @ (fresh @ w) / (score @ score)  # of both scores as lines
        away.append((fitted.slope.value - slope) / fitted.slope.error)
    assert -1 < np.mean(away) < 0.5
