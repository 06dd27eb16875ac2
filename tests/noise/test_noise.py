"""Noise of mean zero does no harm, and what depends on the labels does: exactly where it can be
enumerated."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm
from suppression import HARMFUL, HARMLESS, biases

import unbag
from unbag import Bags, losses, noise, planning, random_bags, weights
from unbag.bags import as_components
from worlds import World, outcomes

MECHANISMS = [
    noise.Laplace(1.7),
    noise.Gaussian(2.5),
    noise.Geometric(0.4),
    noise.Geometric(9.0),
    noise.DiscreteGaussian(0.3),
    noise.DiscreteGaussian(1.0),
    noise.DiscreteGaussian(12.5),
]


def law(mechanism, reach):
    """The whole numbers up to `reach` and their chances."""
    n = np.arange(-reach, reach + 1)
    geometric = isinstance(mechanism, noise.Geometric)
    chance = np.exp(
        -np.abs(n) / mechanism.scale if geometric else -(n**2) / (2 * mechanism.sigma**2)
    )
    return n, chance / chance.sum()


@pytest.mark.parametrize("mechanism", MECHANISMS[2:], ids=repr)
def test_the_variance_of_discrete_noise_is_the_sum_over_its_support(mechanism):
    n, chance = law(mechanism, 1000)
    assert mechanism.variance == pytest.approx(chance @ n**2, rel=1e-12)


def test_discrete_noise_becomes_the_continuous_one_when_it_is_wide():
    assert noise.Geometric(1e4).variance == pytest.approx(noise.Laplace(1e4).variance, rel=1e-8)
    just_below = noise.DiscreteGaussian(9.999999)
    assert just_below.variance == pytest.approx(just_below.sigma**2, rel=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_samples_have_mean_zero_and_the_declared_variance(mechanism):
    drawn = mechanism.sample((400, 500), seed=1).astype(float)
    squares = drawn**2
    for value, truth in ((drawn, 0.0), (squares, mechanism.variance)):
        sigma = value.std() / np.sqrt(value.size)
        assert abs(value.mean() - truth) < 4 * sigma
    np.testing.assert_array_equal(
        drawn, mechanism.sample((400, 500), seed=np.random.default_rng(1))
    )


@pytest.mark.parametrize("mechanism", MECHANISMS[2:], ids=repr)
def test_discrete_samples_follow_their_law_at_every_number(mechanism):
    drawn = mechanism.sample(200_000, seed=2)
    assert drawn.dtype.kind == "i"
    chance = law(mechanism, 100)[1]
    expected = chance * len(drawn)
    seen = np.bincount(drawn[np.abs(drawn) <= 100] + 100, minlength=201)
    often = expected > 20
    assert often.sum() >= 3
    assert (np.abs(seen - expected)[often] / np.sqrt(expected * (1 - chance))[often]).max() < 4.5


def test_budgets_give_the_textbook_scales():
    assert noise.laplace(epsilon=2, cap=3) == noise.Laplace(1.5)
    assert noise.geometric(epsilon=2, cap=3) == noise.Geometric(1.5)
    assert noise.discrete_gaussian(rho=2, cap=3) == noise.DiscreteGaussian(1.5)


@pytest.mark.parametrize(
    "epsilon, delta", list(itertools.product([0.01, 0.5, 1, 5, 50], [1e-12, 1e-5, 0.1]))
)
def test_gaussian_noise_spends_its_budget_exactly(epsilon, delta):
    s = noise.gaussian(epsilon=epsilon, delta=delta, cap=7).sigma / 7
    leak = norm.cdf(0.5 / s - epsilon * s) - np.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s)
    assert leak == pytest.approx(delta, rel=1e-4)
    if epsilon < 1:
        assert s < np.sqrt(2 * np.log(1.25 / delta)) / epsilon


def test_the_ratio_of_chances_of_geometric_noise_is_the_budget():
    chance = law(noise.geometric(epsilon=0.8, cap=2), 50)[1]
    ratio = np.log(chance[2:] / chance[:-2])
    assert np.abs(ratio).max() == pytest.approx(0.8)


def test_noisy_bags_carry_noise_on_their_counts_and_declare_it():
    exact = random_bags(None, np.tile([0, 0, 1], 40), size=[3, 6, 9, 12], seed=0)
    once = noise.noisy(exact, noise.geometric(epsilon=1), seed=3)
    added = (once.report - exact.report) * exact.size
    np.testing.assert_allclose(added, noise.geometric(epsilon=1).sample(4, seed=3), atol=1e-12)
    twice = noise.noisy(once, noise.Gaussian(2.0), seed=0)
    np.testing.assert_allclose(twice.noise, noise.Geometric(1.0).variance + 4)
    histogram = random_bags(None, np.tile([0, 1, 2], 4), size=3, seed=0, kind="histogram")
    assert noise.noisy(histogram, noise.laplace(epsilon=0.1), seed=0).report.shape == (4, 3)
    partly = noise.noisy(noise.thresholded(exact, minimum_size=6), noise.Laplace(1.0), seed=0)
    assert partly.observed.tolist() == [False, True, True, True]


def test_hidden_counts_and_small_bags_get_their_status():
    bags = Bags(np.repeat([0, 1, 2], [2, 10, 20]), [1.0, 0.5, 0.25])
    hidden = noise.hidden_below(bags, 5, accept_bias=True)
    assert hidden.status.tolist() == ["interval", "observed", "observed"]
    named = noise.hidden_below(bags, 5, status="suppressed_by_value", accept_bias=True)
    assert named.status[0] == "suppressed_by_value"
    both = noise.hidden_below(noise.thresholded(bags, minimum_size=3), 5)
    assert both.status.tolist() == ["suppressed_by_size", "observed", "observed"]
    histogram = Bags(np.repeat([0, 1], 10), [[0.5, 0.5], [0.9, 0.1]], "histogram")
    assert noise.hidden_below(histogram, 2, accept_bias=True).observed.tolist() == [True, False]


def test_a_cap_by_person_counts_rows_in_their_order_until_it_is_reached():
    rng = np.random.default_rng(0)
    y, person = rng.integers(0, 4, 60).astype(float), rng.integers(0, 9, 60)
    expected, spent = np.zeros(60), dict.fromkeys(range(9), 0.0)
    for i in range(60):
        expected[i] = min(y[i], 5 - spent[person[i]])
        spent[person[i]] += expected[i]
    np.testing.assert_array_equal(noise.capped(y, cap=5, person=person), expected)


WORLD = World("binary", np.array([0.3, 0.7]), np.array([[0.8, 0.2], [0.4, 0.6]]))
SCORE = np.array([-1.0, 0.5])


def enumerated(change):
    """Mean of GeneralUPM over every outcome of two bags, of one and two instances, and noise of -2
    to 2 on each."""
    f, bag, size = losses.log.components(SCORE), np.array([0, 1, 1]), np.array([1, 2])
    n, chance = law(noise.Geometric(0.5), 2)
    x, y, likely = outcomes([WORLD] * 3)
    total = 0.0
    for i in range(len(x)):
        counts = np.bincount(bag, weights=y[i])
        for a, b in itertools.product(range(len(n)), repeat=2):
            report = change((counts + n[[a, b]]) / size)
            W = weights.upm(size, as_components(report), WORLD.prior)
            total += likely[i] * chance[a] * chance[b] * np.sum(W[bag] * f[x[i]])
    return total


def test_noise_leaves_upm_exactly_unbiased_and_clipping_does_not():
    truth = WORLD.loss(losses.log.components(SCORE))
    assert enumerated(lambda report: report) == pytest.approx(truth, abs=1e-12)
    clipped = enumerated(lambda report: np.clip(report, 0, 1))
    assert abs(clipped - truth) > 0.01


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not_look_at_the_labels_leaves_upm_unbiased(name):
    bias, sigma = biases(HARMLESS[name], sizes=(8, 16, 24))
    assert abs(bias) < 4 * sigma
    assert sigma < 0.03


@pytest.mark.parametrize("name", HARMFUL)
def test_what_looks_at_the_labels_biases_upm(name):
    bias, sigma = biases(HARMFUL[name], sizes=(8, 16, 24))
    assert abs(bias) > 10 * sigma


def test_planning_predicts_the_variance_that_noise_brings():
    mechanism, k, count, repetitions = noise.laplace(epsilon=0.5), 8, 100, 800
    rng = np.random.default_rng(0)
    x = rng.normal(size=(repetitions, k * count))
    y = rng.uniform(size=x.shape) < 1 / (1 + np.exp(1 - x))
    bag, size, p = np.repeat(np.arange(count), k), np.full(count, k), float(y.mean())
    estimates = np.zeros(repetitions)
    for r in range(repetitions):
        report = y[r].reshape(count, k).mean(axis=1) + mechanism.sample(count, seed=rng) / k
        W = weights.upm(size, as_components(report), np.array([1, p]))
        estimates[r] = np.sum(W[bag] * losses.log.components(x[r] - 1))
    f2 = 1 - x
    expected = planning.estimate_variance(
        k * count,
        k,
        planning.Noise(p * (1 - p), mechanism.variance, float(f2.mean()), float(f2.var())),
    )
    assert estimates.var(ddof=1) == pytest.approx(expected, rel=4 * np.sqrt(2 / repetitions))
    assert expected > 2 * planning.estimate_variance(
        k * count, k, planning.Noise(p * (1 - p), 0.0, float(f2.mean()), float(f2.var()))
    )
    assert unbag.noise is noise


@pytest.mark.parametrize("person", [
    np.array([1.0, np.nan, 1.0, np.nan, np.nan]),
    ["ann", None, "ann", np.nan, None],
    np.array(["2024-01-01", "NaT", "2024-01-01", "NaT", "NaT"], "datetime64[D]"),
    [None, 1, None, 2, 3],
])  # fmt: skip
def test_rows_without_a_person_are_not_taken_for_one_person(person):
    known = sum(one is not None and one == one for one in np.asarray(person, object).tolist())
    expected = [1, 3, 2, 3, 3] if known == 2 else [1, 3, 3, 3, 3]
    np.testing.assert_array_equal(noise.capped([1, 4, 4, 4, 4], cap=3, person=person), expected)
