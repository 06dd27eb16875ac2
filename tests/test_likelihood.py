"""The likelihood of a bag's count: against enumeration of all labels, against its own laws, and at
the extremes."""

from functools import cache
from itertools import product
from math import comb

import jax
import numpy as np
import pytest
from scipy import stats

from cases.likelihood import simple
from cases.packages import needs
from unbag import as_components, losses
from unbag.likelihood import FLOOR, count_likelihood

sigmoid = lambda z: 1 / (1 + np.exp(-z))
softmax = lambda z: np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
SIZE = np.array([3, 1, 6, 2, 5])
BAG = np.random.default_rng(0).permutation(np.repeat(np.arange(5), SIZE))
COUNT = np.array([1, 0, 4, 2, 0])
LABELS = np.random.default_rng(1).multinomial(SIZE, [0.5, 0.3, 0.2])
REPORT = {
    "binary": as_components(COUNT / SIZE),
    "total": as_components(np.array([7, 0, 3, 2, 11]) / SIZE, "total"),
    "histogram": LABELS / SIZE[:, None],
}
NOISE = np.array([2.0, 0.5, 0.0, 9.0, 1.0])
# what to compute: kind, and whatever changes the law
CASES = {
    "binary, exact": ("binary", {}),
    "binary, Gaussian": ("binary", {"exact": 1}),
    "binary, both": ("binary", {"exact": 3}),
    "binary, noise": ("binary", {"noise": NOISE}),
    "total": ("total", {}),
    "total, noise": ("total", {"noise": NOISE}),
    "histogram": ("histogram", {}),
    "histogram, noise": ("histogram", {"noise": NOISE}),
}


def scores(kind, count=17, seed=2):
    return np.random.default_rng(seed).normal(size=(count, 3) if kind == "histogram" else count)


def likelihood(score, kind="binary", bag=BAG, size=SIZE, report=None, **how):
    return count_likelihood(
        score, bag, size, REPORT[kind] if report is None else report, kind=kind, **how
    )


def one_bag(score, report, kind="binary", **how):
    """The value of a single bag; under JAX the report is taken as it is."""
    bag, size = np.zeros(len(score), int), np.array([len(score)])
    report = report[None] if kind == "histogram" else as_components([report], kind)
    return count_likelihood(score, bag, size, report, kind=kind, **how)[0]


# the same bags with two of size 0: bag 5 has no instances, bag 6 has two of padding
PADDED_BAG, PADDED_SIZE = np.append(BAG, [6, 6]), np.append(SIZE, [0, 0])


def padded(values, fill=np.nan, count=2):
    return np.concatenate([values, np.full((count, *values.shape[1:]), fill)])


@cache
def compiled(case):
    """Two rounds of scores at once -> values of all bags and slopes of their weighted sum, under
    vmap and jit."""
    import jax

    kind, how = CASES[case]

    def total(score, bag, size, report, noise, weight):
        noise = {"noise": noise} if "noise" in how else {}
        value = count_likelihood(score, bag, size, report, kind=kind, largest=6, **{**how, **noise})
        return value @ weight, value

    return jax.jit(jax.vmap(jax.grad(total, has_aux=True), (0, *5 * [None])))


def slopes_and_values(score, case, report=None, weight=None):
    """Of the padded bags, by JAX in double precision."""
    import jax

    report = REPORT[CASES[case][0]] if report is None else report
    weight = np.ones(5) if weight is None else weight
    with jax.enable_x64(True):
        more = (PADDED_BAG, PADDED_SIZE, padded(report), padded(NOISE), padded(weight, 1.0))
        slope, value = compiled(case)(
            np.broadcast_to(score, (2, *score.shape[-scores_dim(case) :])), *more
        )
    return np.asarray(slope), np.asarray(value)


def scores_dim(case):
    return 2 if CASES[case][0] == "histogram" else 1


def slopes(score, case, **how):
    """Of one round of scores; the padding is added and taken away again."""
    return slopes_and_values(padded(score, 50.0), case, **how)[0][0, :-2]


def enumerated(score, count):
    """P(sum y = count) as a sum over all 2^k labels."""
    h = sigmoid(score)
    labels = np.array(list(product((0, 1), repeat=len(h))))
    return np.where(labels, h, 1 - h).prod(axis=1)[labels.sum(axis=1) == count].sum()


def test_small_bags_have_the_probability_that_all_labels_add_up_to():
    z = 2 * scores("binary")
    expected = [-np.log(enumerated(z[j == BAG], COUNT[j])) for j in range(5)]
    np.testing.assert_allclose(likelihood(z), expected, rtol=1e-12)
    for count in range(7):
        value = one_bag(z[BAG == 2], count / 6)
        assert value == pytest.approx(-np.log(enumerated(z[BAG == 2], count)), rel=1e-12)


def test_the_probabilities_of_all_counts_add_up_to_one():
    z = scores("binary", count=21)
    assert sum(np.exp(-one_bag(z, count / 21)) for count in range(22)) == pytest.approx(
        1, rel=1e-12
    )


def test_the_gaussian_has_the_mean_and_variance_of_the_model():
    z = scores("binary")
    h = sigmoid(z)
    mean, variance = np.bincount(BAG, h), np.bincount(BAG, h * (1 - h))
    expected = -stats.norm.logpdf(COUNT, mean, np.sqrt(variance))
    value = likelihood(z, exact=1)
    np.testing.assert_allclose(value[SIZE > 1], expected[SIZE > 1], rtol=1e-12)
    noisy = -stats.norm.logpdf(COUNT, mean, np.sqrt(variance + NOISE))
    np.testing.assert_allclose(
        likelihood(z, exact=1, noise=NOISE)[SIZE > 1], noisy[SIZE > 1], rtol=1e-12
    )
    assert likelihood(z, noise=NOISE)[2] == likelihood(z)[2], "no noise, no Gaussian"


def test_the_gaussian_is_close_to_the_exact_law_in_large_bags():
    z = scores("binary", count=200) - 1
    h = sigmoid(z)
    mean, deviation = h.sum(), np.sqrt((h * (1 - h)).sum())
    for count in range(round(mean - 2 * deviation), round(mean + 2 * deviation) + 1):
        assert one_bag(z, count / 200) == pytest.approx(
            one_bag(z, count / 200, exact=200), abs=0.06
        )
    assert abs(one_bag(z, round(mean) / 200) - one_bag(z, round(mean) / 200, exact=200)) < 0.01


def test_small_and_large_bags_do_not_disturb_each_other():
    z = scores("binary")
    mixed, exact, gaussian = likelihood(z, exact=3), likelihood(z), likelihood(z, exact=1)
    np.testing.assert_allclose(mixed, np.where(SIZE <= 3, exact, gaussian), rtol=1e-12)
    expected = np.where(SIZE[BAG] <= 3, slopes(z, "binary, exact"), slopes(z, "binary, Gaussian"))
    np.testing.assert_allclose(slopes(z, "binary, both"), expected, rtol=1e-12, atol=1e-15)


def test_a_count_that_is_not_whole_has_a_gaussian_law():
    z = scores("binary", count=3)
    h = sigmoid(z)
    for share in (0.5, 0.34):
        expected = -stats.norm.logpdf(3 * share, h.sum(), np.sqrt((h * (1 - h)).sum()))
        assert one_bag(z, share) == pytest.approx(expected)
    assert one_bag(z, 0.3333) == pytest.approx(one_bag(z, 1 / 3)), (
        "a rounded proportion still is a count"
    )


def test_totals_have_the_poisson_law_of_the_summed_rates():
    z, total = scores("total"), REPORT["total"][:, 1] * SIZE
    rate = np.bincount(BAG, np.exp(z))
    np.testing.assert_allclose(likelihood(z, "total"), rate - total * np.log(rate), rtol=1e-12)
    constant = stats.poisson.logpmf(total, rate) + likelihood(z, "total")
    np.testing.assert_allclose(
        constant, stats.poisson.logpmf(total, 1) + 1, err_msg="only log(total!) is left out"
    )
    noisy = -stats.norm.logpdf(total, rate, np.sqrt(rate + NOISE))
    expected = np.where(NOISE > 0, noisy, rate - total * np.log(rate))
    np.testing.assert_allclose(likelihood(z, "total", noise=NOISE), expected, rtol=1e-12)


def moments(score):
    h = softmax(score)
    return h.sum(axis=0), np.diag(h.sum(axis=0)) - h.T @ h


def test_histograms_have_the_gaussian_law_of_all_classes_but_one():
    z, share = scores("histogram", count=40), np.array([0.3, 0.5, 0.2])
    mean, covariance = moments(z)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        kept = order[:2]
        expected = -stats.multivariate_normal.logpdf(
            40 * share[kept], mean[kept], covariance[np.ix_(kept, kept)]
        )
        assert one_bag(z[:, order], share[order], "histogram") == pytest.approx(expected, rel=1e-12)


def test_a_class_below_the_floor_leaves_the_others_the_covariance_that_follows():
    """One class is nearly impossible, so that its variance is raised to the floor: the others are
    what is left of them after `own / floor` times its residual."""
    z = scores("histogram", count=40) - [6.0, 0.0, 0.0]
    share = np.array([0.05, 0.55, 0.4])
    mean, covariance = moments(z)
    assert covariance[0, 0] < FLOOR
    residual, value = 40 * share - mean, 0.0
    for c in range(2):
        v = max(covariance[c, c], FLOOR)
        value -= stats.norm.logpdf(residual[c], 0, np.sqrt(v))
        left = np.eye(3)
        left[:, c] -= covariance[:, c] / v
        residual, covariance = left @ residual, left @ covariance @ left.T
    assert one_bag(z, share, "histogram") == pytest.approx(value, rel=1e-12)


def test_noisy_histograms_use_every_class():
    z, share = scores("histogram", count=40), np.array([0.35, 0.5, 0.2])
    mean, covariance = moments(z)
    expected = -stats.multivariate_normal.logpdf(40 * share, mean, covariance + 3 * np.eye(3))
    assert one_bag(z, share, "histogram", noise=np.array([3.0])) == pytest.approx(
        expected, rel=1e-12
    )


def test_two_classes_are_the_binary_case():
    z = 3 * scores("binary")
    two = np.stack([np.zeros_like(z), z], axis=1)
    share = np.stack([1 - COUNT / SIZE, COUNT / SIZE], axis=1)
    np.testing.assert_allclose(
        likelihood(two, "histogram", report=share), likelihood(z, exact=1), rtol=1e-12
    )


def test_bags_of_one_are_ordinary_labels():
    z, y, bag = scores("binary", count=4), np.array([0.0, 1, 1, 0]), np.array([2, 0, 3, 1])
    alone = lambda s, report, kind: count_likelihood(
        s, bag, np.ones(4), report, kind=kind, exact=1
    )[bag]
    of_bag = lambda value: value[np.argsort(bag)]
    np.testing.assert_allclose(
        alone(z, as_components(of_bag(y)), "binary"), losses.log.value(z, y), rtol=1e-15
    )
    count = np.array([0.0, 3, 1, 8])
    value = alone(z, as_components(of_bag(count), "total"), "total")
    np.testing.assert_allclose(value, losses.poisson.value(z, count), rtol=1e-15)
    z, label = scores("histogram", count=4), np.array([0, 2, 1, 2])
    value = alone(z, of_bag(np.eye(3)[label]), "histogram")
    np.testing.assert_allclose(value, losses.cross_entropy.value(z, label), rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extreme_scores_and_proportions_have_the_right_value_and_slope(dtype):
    import jax

    sign, count = (np.array(column) for column in zip(*product((1, -1), (0, 2, 5)), strict=True))
    bag, size, report = np.repeat(np.arange(6), 5), np.full(6, 5), as_components(count / 5)
    score = (1e4 * sign[bag]).astype(dtype)
    wrong = np.where(sign > 0, 5 - count, count)
    value = count_likelihood(score, bag, size, report)
    np.testing.assert_allclose(value, 1e4 * wrong - np.log([comb(5, c) for c in count]), rtol=1e-6)
    assert value.dtype == dtype
    with jax.enable_x64(dtype == np.float64):
        slope = jax.jit(jax.grad(lambda s: count_likelihood(s, bag, size, report).sum()))(score)
    np.testing.assert_allclose(slope, (sign * wrong / 5)[bag], rtol=1e-3)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("z", [1e4, -1e4, 0.0])
def test_values_and_gradients_are_finite_at_extreme_scores(case, z):
    kind, how = CASES[case]
    high = 400.0 if kind == "total" else np.inf  # beyond 700 the rate itself overflows
    score = np.full(scores(kind).shape, min(z, high))
    if kind == "histogram":
        score[:, 0] *= -1
    assert np.isfinite(likelihood(score, kind, **how)).all()
    assert np.isfinite(slopes(score, case)).all()


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_finite_differences_and_of_pytorch(case):
    kind, how = CASES[case]
    z, weight = scores(kind, seed=4), np.arange(1.0, 6)
    total = lambda s: likelihood(s, kind, **how) @ weight
    slope = slopes(z, case, weight=weight)
    for where in np.ndindex(z.shape):
        step = np.zeros_like(z)
        step[where] = 1e-6
        assert slope[where] == pytest.approx((total(z + step) - total(z - step)) / 2e-6, abs=2e-7)
    torch = needs("torch")
    tensor = torch.tensor(z, requires_grad=True)
    value = likelihood(tensor, kind, **how)
    np.testing.assert_allclose(value.detach(), likelihood(z, kind, **how), rtol=1e-10)
    (value @ torch.tensor(weight)).backward()
    np.testing.assert_allclose(tensor.grad.numpy(), slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_values_are_the_same_under_jit_and_vmap_with_traced_bags_and_padding(case):
    kind, how = CASES[case]
    rounds = np.stack([scores(kind, seed=5), scores(kind, seed=6)])
    _, value = slopes_and_values(np.stack([padded(z, 50.0) for z in rounds]), case)
    np.testing.assert_allclose(
        value, [padded(likelihood(z, kind, **how), 0.0) for z in rounds], rtol=1e-11
    )


@pytest.mark.parametrize("case", CASES)
def test_bags_of_size_zero_are_harmless_padding(case):
    kind, how = CASES[case]
    z = padded(scores(kind), 50.0)
    more = {"bag": PADDED_BAG, "size": PADDED_SIZE, "report": padded(REPORT[kind])}
    if "noise" in how:
        how = {"noise": padded(NOISE)}
    expected = padded(likelihood(z[:-2], kind, **CASES[case][1]), 0.0)
    np.testing.assert_allclose(likelihood(z, kind, **more, **how), expected, rtol=1e-12)
    np.testing.assert_array_equal(slopes_and_values(z, case)[0][0, -2:], 0)


def test_under_jit_the_largest_bag_need_not_be_known():
    import jax

    z = scores("binary")
    with jax.enable_x64(True):
        value = jax.jit(count_likelihood)(z, BAG, SIZE, REPORT["binary"])
    np.testing.assert_allclose(value, likelihood(z), rtol=1e-12)


def test_a_largest_bag_that_is_too_small_costs_the_exact_law_and_nothing_else():
    z = scores("binary")
    np.testing.assert_allclose(likelihood(z, largest=3), likelihood(z, exact=3), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_the_rows_is_irrelevant(case):
    kind, how = CASES[case]
    z, order = scores(kind), np.random.default_rng(7).permutation(len(BAG))
    expected = likelihood(z, kind, **how)
    np.testing.assert_allclose(
        likelihood(z[order], kind, bag=BAG[order], **how), expected, rtol=1e-12
    )


@pytest.mark.parametrize("case", CASES)
def test_single_precision_stays_single_precision_and_is_close(case):
    kind, how = CASES[case]
    z = scores(kind)
    value = likelihood(z.astype(np.float32), kind, **how)
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, likelihood(z, kind, **how), rtol=1e-4, atol=1e-5)


def test_the_best_common_score_is_the_logit_of_the_pooled_proportion():
    pooled = COUNT.sum() / SIZE.sum()
    total = lambda z: likelihood(np.full(17, z)).sum()
    best = np.log(pooled / (1 - pooled))
    assert slopes(np.full(17, best), "binary, exact").sum() == pytest.approx(0, abs=1e-12)
    assert total(best) < min(total(best - 0.1), total(best + 0.1))


# at the true model the expected gradient is zero: (scores, every outcome, its probability, how)
def fair_binary(shift):
    z = scores("binary", count=12) / 2 + shift
    return z, [count / 12 for count in range(13)], lambda a: np.exp(-one_bag(z, a)), "binary"


def fair_total():
    z = scores("total", count=4)
    rate = np.exp(z).sum()
    return z, [t / 4 for t in range(80)], lambda a: stats.poisson.pmf(round(4 * a), rate), "total"


def fair_histogram():
    z = scores("histogram", count=5) / 2
    outcomes = [np.eye(3)[list(y)] for y in product(range(3), repeat=5)]
    shares = {tuple(y.sum(axis=0)): y.mean(axis=0) for y in outcomes}
    weight = dict.fromkeys(shares, 0.0)
    for y in outcomes:
        weight[tuple(y.sum(axis=0))] += (softmax(z) ** y).prod()
    return z, list(shares.values()), lambda a: weight[tuple(np.round(5 * a))], "histogram"


FAIR = {
    "exact": (fair_binary(0), {}),
    "Gaussian": (fair_binary(0), {"exact": 1}),
    "Gaussian, rare labels": (fair_binary(-5), {"exact": 1}),
    "total": (fair_total(), {}),
    "histogram": (fair_histogram(), {}),
}


@pytest.mark.parametrize("name", FAIR)
def test_at_the_true_model_the_expected_gradient_is_zero(name):
    """Every outcome is enumerated: also the Gaussian approximations, and the one at the floor, are
    fair."""
    import jax

    (z, outcomes, probability, kind), how = FAIR[name]
    p = np.array([probability(a) for a in outcomes])
    assert p.sum() == pytest.approx(1, rel=1e-9)
    bags, k = len(outcomes), len(z)
    report = np.stack(outcomes) if kind == "histogram" else as_components(outcomes, kind)
    bag, size = np.repeat(np.arange(bags), k), np.full(bags, k)
    repeats = (bags,) + (1,) * (z.ndim - 1)
    expected = lambda s: (
        p @ count_likelihood(jax.numpy.tile(s, repeats), bag, size, report, kind=kind, **how)
    )
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(expected))(z)
    np.testing.assert_allclose(slope, 0, atol=1e-9)


def test_a_rare_label_is_below_the_floor_in_the_test_above():
    h = sigmoid(FAIR["Gaussian, rare labels"][0][0])
    assert (h * (1 - h)).sum() < FLOOR


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.startswith(("binary", "histogram"))]
)
def test_overconfidence_earns_nothing(case):
    kind, how = CASES[case]
    label = [0, 2, 1, 1, 0, 0]
    certain = np.eye(3)[label] if kind == "histogram" else np.array(label) == 1
    share = certain.mean(axis=0)
    how = {**how, "noise": np.zeros(1)} if "noise" in how else how
    for z in (0.0, 1.0, 3.0, 10.0, 100.0):
        assert one_bag(z * (2.0 * certain - 1), share, kind, **how) > -1e-12
    assert one_bag(1e4 * (2.0 * certain - 1), share, kind, **how) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("case", ["binary, exact", "binary, Gaussian", "total"])
def test_scores_move_towards_the_report(case):
    """Each score under the exact laws; under the Gaussian all together, since single ones may widen
    it instead."""
    z = scores(CASES[case][0]) / 2
    for report, sign in ((np.zeros(5), 1), (np.full(5, 9.0 if case == "total" else 1.0), -1)):
        slope = sign * slopes(z, case, report=as_components(report))
        assert (
            (slope > 0).all() if case != "binary, Gaussian" else (np.bincount(BAG, slope) > 0).all()
        )


def test_class_scores_move_towards_the_histogram():
    slope = slopes(scores("histogram") / 4, "histogram", report=np.tile([0.0, 1.0, 0.0], (5, 1)))
    assert (np.stack([np.bincount(BAG, column) for column in slope.T], axis=1)[:, 1] < 0).all()
    np.testing.assert_allclose(slope.sum(axis=1), 0, atol=1e-12)


def test_reports_outside_their_range_are_normal_once_noise_is_declared():
    assert np.isfinite(simple([1.5, -0.5], noise=np.ones(2))).all()
    assert np.isfinite(simple([1.5, -0.5], "total", noise=np.ones(2))).all()
    assert np.isfinite(simple([[1.5, -0.5], [0.3, 0.3]], "histogram", noise=np.ones(2))).all()


def test_jax_reports_are_taken_as_they_are_and_stay_finite():
    import jax

    report = jax.numpy.asarray(as_components([1.5, -0.5]))
    value = jax.jit(count_likelihood)(np.zeros(4), np.array([0, 0, 1, 1]), np.array([2, 2]), report)
    np.testing.assert_allclose(value, -stats.norm.logpdf(2, 0, np.sqrt(0.5)), rtol=1e-5)


def test_many_classes_are_taken_one_by_one():
    """The naive formula, for 40 classes; with 200 it still ends at once."""
    rng = np.random.default_rng(0)
    for classes in (40, 200):
        score, bag, size = rng.normal(size=(20, classes)), np.repeat([0, 1], 10), np.full(2, 10.0)
        report = rng.multinomial(10, np.full(classes, 1 / classes), 2) / 10
        value = count_likelihood(score, bag, size, report, kind="histogram")
        h = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        for j in (0, 1):
            own = h[bag == j]
            v = np.maximum((own * (1 - own)).sum(axis=0), 1 / (2 * np.pi))
            r = 10 * report[j] - own.sum(axis=0)
            naive = (r**2 / (2 * v) + np.log(2 * np.pi * v) / 2).sum() * (1 - 1 / classes)
            assert value[j] == pytest.approx(naive)


def test_the_program_for_histograms_does_not_grow_with_their_classes():
    """Written out class by class, 16 classes took minutes to compile."""

    def equations(classes):
        bag, size = np.repeat(np.arange(3), 4), np.full(3, 4)
        report = np.full((3, classes), 1 / classes)
        value = lambda score: count_likelihood(score, bag, size, report, kind="histogram").sum()
        return len(jax.make_jaxpr(jax.grad(value))(np.zeros((12, classes), np.float32)).eqns)

    assert equations(4) == equations(20)
