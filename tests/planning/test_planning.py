from math import exp, inf, log

import numpy as np
import pytest

from cases.planning import SPREAD
from unbag import losses, planning
from unbag.planning import HistogramSpread, ModelSpread, Noise, Problem, Sandwich, sandwich
from worlds import outcomes, random_world


def test_the_square_loss_is_sandwiched_by_one_half():
    c1, C1, c2, C2 = sandwich(losses.square)
    assert (c1, c2, C2) == pytest.approx((0.5, 0.5, 0.5), rel=1e-3)
    assert inf == C1


def test_the_square_loss_has_an_upper_constant_away_from_zero():
    low = 0.1
    constants = sandwich(losses.square, (log(low / (1 - low)), inf))
    assert pytest.approx(2 / (2 * low) ** 2, rel=2e-3) == constants.C1


@pytest.mark.parametrize("M", [0.5, 2.0, 4.0])
def test_the_log_loss_has_the_constants_that_calculus_gives(M):
    c1, C1, c2, C2 = sandwich(losses.log, (-M, M))
    slope = exp(M) / (1 + exp(M)) ** 2
    assert (c1, C1, c2, C2) == pytest.approx((exp(-M), exp(M), slope, 0.25), rel=2e-3)
    assert (1 + exp(M)) ** 2 > C1  # the paper's loose value


def test_the_poisson_and_the_square_loss_of_totals_have_the_constants_that_calculus_gives():
    """Poisson: f2 = -score, and the excess has the second derivative exp(score)."""
    _, _, c2, C2 = sandwich(losses.poisson, (-1.0, 1.0), kind="total")
    assert (c2, C2) == pytest.approx((exp(-1), exp(1)), rel=2e-3)
    _, _, c2, C2 = sandwich(losses.square, (1.0, 5.0), kind="total")
    assert (c2, C2) == pytest.approx((0.5, 0.5), rel=1e-3)


@pytest.mark.parametrize("kind, loss, scores, widths", [
    ("binary", losses.square, (-inf, inf), (1, 2)),
    ("binary", losses.log, (-3.0, 3.0), (3, 6)),
    ("binary", losses.log, (-inf, inf), (inf, inf)),
    ("total", losses.poisson, (-1.0, 1.0), (exp(1) - exp(-1), 2)),
    ("total", losses.square, (-2.0, 3.0), (9, 10)),
])  # fmt: skip
def test_models_with_scores_in_a_range_are_no_further_apart_than_the_range(
    kind, loss, scores, widths
):
    f1, f2, mean, bag = planning.bounded_spread(loss, scores, kind=kind)
    assert (f1, f2, mean, bag) == pytest.approx((widths[0] ** 2, widths[1] ** 2, f2, None))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_variance_of_a_bag_is_within_the_bound_of_lemma_3_1(k):
    """Exactly, over all outcomes of a bag in a small world."""
    world, score = random_world("binary", seed=3), np.array([1.5, -2.0])
    f = losses.log.components(score)
    p, means = world.prior[1], world.q @ f
    values, chances = [], []
    for x, y, chance in zip(*outcomes([world] * k), strict=True):
        centred = f[x, 1].sum() - k * means[1]
        values.append(means[0] + p * means[1] + (y.mean() - p) * centred)
        chances.append(chance)
    mean = np.dot(chances, values)
    variance = np.dot(chances, (np.array(values) - mean) ** 2)
    assert mean == pytest.approx(world.loss(f))
    assert 0 < variance <= planning.bag_variance(world.q @ f[:, 1] ** 2)


def test_sigma_of_the_classes_counts_without_a_factor_of_their_number():
    """Theorem C.2 has Sigma(H) alone: sum_r A_r B_r <= |A| |B| by Cauchy and Schwarz."""
    spread = HistogramSpread(0.0, 1.0, 0.0)
    at = lambda classes: Problem(2, 8, spread, classes=classes).deviations(spread, 300, share=0.001)
    assert at(2) == at(100) == pytest.approx(32 * log(1000) / 300)


@pytest.mark.parametrize("loss, limit", [(losses.log, 3.0), (losses.square, 3.0)])
def test_the_sandwich_holds_at_random_scores_and_is_tight(loss, limit):
    c1, C1, c2, C2 = sandwich(loss, (-limit, limit))
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-limit, limit, size=(2, 20000))
    f, g = loss.components(a), loss.components(b)
    eta = 1 / (1 + np.exp(-b))
    excess = f[:, 0] + eta * f[:, 1] - g[:, 0] - eta * g[:, 1]
    for i, (c, C) in enumerate(((c1, C1), (c2, C2))):
        square = (f[:, i] - g[:, i]) ** 2 / 2
        assert (excess >= 0.998 * c * square - 1e-12).all()
        assert (excess <= 1.002 * C * square + 1e-12).all()
        assert ((excess / square)[square > 1e-6]).min() < 1.2 * c


def naive_deviation(spread, m, k, share, prior=1.0, k1=None):
    """The terms of the proof of Theorem 3.2, one by one, as the paper displays them (with the
    factor k mended)."""
    f1, f2, mean, _ = spread
    k1 = k1 or k
    L, hoeffding = log(1 / share), log(2 / share)
    A = f2 * 32 * L / (m * k1)
    B = hoeffding / (2 * m * k1)
    inside_bag = k**2 * (1 / (4 * k)) * (2 * f2 / k + 2 * A)
    between = 4 / k**2 * (9 / 4 * k**2 * f2 + k**2 * B * k * f2 + k**2 * A * k / 4 + k**4 * A * B)
    sigma = np.sqrt(inside_bag + between)
    return (
        sigma * np.sqrt(32 * L / m)
        + np.sqrt(f1 * 32 * L / (m * k1))
        + prior * np.sqrt(A)
        + np.sqrt(mean) * np.sqrt(B)
        + k * np.sqrt(A) * np.sqrt(B)
    )


@pytest.mark.parametrize("k, m", [(1, 50), (8, 300), (64, 2000)])
def test_the_deviation_is_the_sum_of_the_proofs_terms(k, m):
    share = 0.001
    assert Problem(2, k, SPREAD).deviations(SPREAD, m, share=share) == pytest.approx(
        naive_deviation(SPREAD, m, k, share)
    )


@pytest.mark.parametrize("cap", [1.0, 30.0])
def test_with_the_variance_of_a_report_the_prior_errs_like_a_median_of_means(cap):
    spread, m, k, share = ModelSpread(0.02, 0.05, 0.01, bag=0.3), 300, 8, 0.001
    L = log(1 / share)
    e_f1, e_f2, e_p = (np.sqrt(32 * L * v / m) for v in (0.02 / k, 0.05 / k, 1.7))
    expected = np.sqrt(32 * L * 0.3 / m) + e_f1 + 2.5 * e_f2 + 0.1 * e_p + k * e_f2 * e_p
    problem = Problem(2, k, spread, prior=2.5 / cap, cap=cap, report=1.7)
    found = problem.deviations(spread, m, share=share)
    assert found == pytest.approx(expected)


def test_the_variance_of_a_histogram_bag_is_four_times_that_with_known_means():
    """(a + b + c + d)^2 <= 4 (a^2 + b^2 + c^2 + d^2), of which a^2 / k^2 is Lemma C.1's 64 times
    the largest."""
    m, k, share, known = 300, 8, 0.001, planning.histogram_variance(3, bound=1.0)
    problem = Problem(2, k, HistogramSpread(1.0, 0.0), classes=3)
    at = lambda bag: problem.deviations(HistogramSpread(1.0, 0.0, bag), m, share=share)
    assert at(None) == pytest.approx(at(4 * known))


def test_errors_of_means_and_prior_count_k_times_in_the_variance_of_a_bag():
    """The paper's display lets them count once, and is then too small; the mended bound holds
    (simulated, k = 256)."""
    rng = np.random.default_rng(1)
    k, A, B = 256, 0.16, 0.16  # squared errors of the mean and of the prior; Var f2 = 1
    x = rng.uniform(size=(4000, k)) < 0.5
    alpha = (rng.uniform(size=x.shape) < np.where(x, 0.3, 0.1)).mean(axis=1)
    value = (alpha - 0.2 - np.sqrt(B)) * (np.where(x, 1, -1).sum(axis=1) - k * np.sqrt(A))
    inside = k**2 / (4 * k) * (2 / k + 2 * A)
    displayed = inside + 4 / k**2 * (9 / 4 * k**2 + k * B + A * k / 4 + A * B)
    mended = inside + 4 / k**2 * (9 / 4 * k**2 + k**2 * B * k + k**2 * A * k / 4 + k**4 * A * B)
    sigma = value.var() * np.sqrt(2 / len(value))
    assert displayed + 5 * sigma < value.var() < mended


@pytest.mark.parametrize("problem", [
    Problem(10, 8, SPREAD),
    Problem(10, 8, SPREAD, means_size=20.0),
    Problem(10, 8, SPREAD, cap=4.0),
    Problem(10, 8, ModelSpread(0.02, 0.05, 0.01, bag=0.02), prior=0.2),
    Problem(10, 8, HistogramSpread(0.05, 0.2), classes=5),
], ids=["equal", "variable", "total", "measured", "histogram"])  # fmt: skip
def test_bags_and_regret_are_each_others_inverse(problem):
    for beta in (0.05, 0.3):
        bags = planning.bags_needed(beta, problem)
        assert bags % problem.parts == 0
        assert planning.regret_supported(bags, problem) <= beta * (1 + 1e-6)
        assert planning.regret_supported(bags - problem.parts, problem) > beta * 0.99
    assert planning.bags_needed(0.1, problem) == pytest.approx(
        4 * planning.bags_needed(0.2, problem), rel=0.4
    )


def test_the_fast_rate_is_linear_in_one_over_beta_and_the_slow_rate_quadratic():
    problem, curvature = Problem(10, 8, SPREAD), sandwich(losses.square)
    fast = [planning.bags_needed(beta, problem, curvature=curvature) for beta in (0.02, 0.01)]
    assert fast[1] / fast[0] == pytest.approx(2, rel=0.05)
    slow = [planning.bags_needed(beta, problem) for beta in (0.02, 0.01)]
    assert slow[1] / slow[0] == pytest.approx(4, rel=0.05)
    misfit = [
        planning.bags_needed(b, problem, curvature=Sandwich(0.5, 2, 0.5, 0.5), misfit=(1e-2, 1e-2))
        for b in (0.02, 0.01)
    ]
    assert 2.2 < misfit[1] / misfit[0] < 4


def test_bags_do_not_need_to_be_more_when_they_are_larger_but_instances_do():
    few = planning.bags_needed(0.05, Problem(10, 1, SPREAD))
    many = planning.bags_needed(0.05, Problem(10, 256, SPREAD))
    assert few / 3 < many < few


def test_total_counts_pay_the_square_of_the_cap():
    binary = planning.bags_needed(0.1, Problem(10, 8, ModelSpread(0.0, 0.05, 0.0)))
    total = planning.bags_needed(0.1, Problem(10, 8, ModelSpread(0.0, 0.05, 0.0), cap=10.0))
    assert total / binary == pytest.approx(100, rel=0.02)


def test_too_few_bags_for_the_groups_support_no_regret():
    assert planning.regret_supported(30, Problem(10, 8, SPREAD)) == inf


def test_histograms_depend_on_the_classes_not_at_all_or_logarithmically():
    assert (
        planning.histogram_variance(2, bound=1.5)
        == planning.histogram_variance(1000, bound=1.5)
        == 144
    )
    two, many = (planning.histogram_variance(c, sigma=1.0) for c in (2, 2048))
    assert many / two == pytest.approx((log(2048) + 2) / (log(2) + 2))


def test_the_best_bag_size_has_the_narrowest_interval():
    noise = Noise(label=0.15, report=50.0, mean_f2=1.5, var_f2=1.0)
    best = planning.best_bag_size(noise)
    widths = [planning.interval_width(10000, best * factor, noise) for factor in (0.8, 1.0, 1.25)]
    assert widths[1] == min(widths)
    assert planning.best_bag_size(Noise(0.15, 0.0, 1.5, 1.0)) == 1.0


@pytest.mark.parametrize("noise, best", [
    (Noise(0.16, 0.0, 0.0, 0.0), 1.0),
    (Noise(0.16, 9.0, 0.0, 0.0), 1.0),
    (Noise(0.16, 9.0, 1.0, 0.0), inf),
    (Noise(0.0, 9.0, 1.0, 1.0), inf),
])  # fmt: skip
def test_where_nothing_but_noise_varies_no_bag_is_too_large(noise, best):
    assert planning.best_bag_size(noise) == best
    widths = [planning.interval_width(10000, k, noise) for k in (1, 10, 100)]
    assert widths[0] == min(widths) if best == 1 else widths[2] == min(widths)


@pytest.mark.slow
@pytest.mark.parametrize("k, s2", [(4, 0.0), (16, 0.0), (16, 9.0), (64, 100.0)])
def test_the_planned_variance_is_the_one_that_simulation_shows(k, s2):
    """Estimates from noisy bags, with the size-weighted mean report as prior: within 5 sigma and
    what is neglected."""
    from unbag import weights

    rng = np.random.default_rng(5)
    bags, runs, p = 200, 3000, 0.2
    report = rng.binomial(k, p, size=(runs, bags)) + rng.normal(size=(runs, bags)) * np.sqrt(s2)
    f2 = 0.5 * k + 2 * rng.binomial(k, 0.5, size=(runs, bags))  # of each instance 0.5 or 2.5
    # every run is a stratum, with a share of one in so many
    given = np.full(runs * bags, k), report.ravel() / k, report.mean(axis=1) / k
    W = runs * weights.upm(*given, stratum=np.repeat(np.arange(runs), bags))
    estimates = np.sum(W[:, 1].reshape(runs, bags) * f2, axis=1)
    planned = planning.estimate_variance(bags * k, k, Noise(p * (1 - p), s2, 1.5, 1.0))
    sigma = np.sqrt(2 / runs)
    assert estimates.var() / planned == pytest.approx(1, abs=5 * sigma + 2 / bags)
