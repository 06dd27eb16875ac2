"""The laws of a linear method: exactly unbiased, equal to the paper, indifferent to order, bounded
variance."""

import itertools
from math import factorial, inf
from typing import NamedTuple

import jaxtyping
import numpy as np
import pytest
from scipy import special

from cases.packages import needs
from unbag import losses, weights
from unbag._arrays import like, sum_by
from unbag.methods import LINEAR
from worlds import World, outcomes, random_world

RNG = np.random.default_rng(0)
LOSS = {"binary": losses.log, "total": losses.poisson, "histogram": losses.cross_entropy}
KINDS = list(LOSS)


def components_of(kind, states=2, seed=1):
    """Loss components of a model that scores each state x of a world."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=(states, 3) if kind == "histogram" else states)
    return LOSS[kind].components(score, kind=kind)


def reference_of(world, seed=2):
    """A reference prediction for each state, in component form."""
    rng = np.random.default_rng(seed)
    if world.kind == "histogram":
        return rng.dirichlet(np.ones(world.classes), size=len(world.q))
    return np.stack([np.ones(len(world.q)), rng.uniform(size=len(world.q))], axis=1)


class Outcomes(NamedTuple):
    """Every outcome of a small world in bags of these sizes, and its chance."""

    bag: np.ndarray
    size: np.ndarray
    x: np.ndarray  # (outcomes, instances)
    report: np.ndarray  # (outcomes, bags, components)
    chance: np.ndarray

    @classmethod
    def of(cls, worlds, size):
        """`worlds` is the world of each instance, or of all of them."""
        size = np.asarray(size)
        bag = np.repeat(np.arange(len(size)), size)
        if isinstance(worlds, World):
            worlds = [worlds] * len(bag)
        x, y, chance = outcomes(worlds)
        member = (bag == np.arange(len(size))[:, None]) / size[:, None]
        report = np.einsum("bn,onr->obr", member, worlds[0].label_components(y))
        return cls(bag, size, x, report, chance)


def estimates(
    method, all_of, f, prior, *, g=None, g_mean=None, weight=None, stratum=None, pool=False
):
    """The estimate in every outcome. All are made in one call, in which each outcome is a stratum
    (or has some) with a share of one in so many; the last bag may serve as the pool."""
    bag, size, x, report, chance = all_of
    count, inside = len(chance), np.ones(len(bag), bool)
    options, own = {}, np.zeros(len(size), int)
    if pool:
        inside = bag < len(size) - 1
        options["pool"] = np.full(count, np.sum(~inside))
        size, report, own = size[:-1], report[:, :-1], own[:-1]
    strata = 1
    if stratum is not None:
        own, strata = stratum, int(stratum.max()) + 1

    def each(rows, ndim=2):
        """The same rows, or those of each outcome, one outcome after the other."""
        rows = np.asarray(rows)
        if rows.ndim == ndim - 1:
            rows = np.broadcast_to(rows, (count, *rows.shape))
        return rows.reshape(-1, *rows.shape[2:])

    if weight is not None:
        options["weight"] = each(weight)
    options["stratum"] = each(own + strata * np.arange(count)[:, None])
    of_bags = (
        each(size),
        each(report, 3),
        each(prior if strata > 1 else np.expand_dims(prior, -2), 3),
    )
    bags = each(bag[inside] + len(size) * np.arange(count)[:, None])
    if method == "anchored":
        if g_mean is not None:
            options["reference_mean"] = each(
                g_mean if strata > 1 else np.expand_dims(g_mean, -2), 3
            )
        W = weights.anchored(bags, *of_bags, each(g[x[:, inside]], 3), **options)
        own_rows, further = W[: len(bags)], W[len(bags) :]
    else:
        W = getattr(weights, method)(*of_bags, **options)
        own_rows, further = W[: count * len(size)][bags], W[count * len(size) :]
    value = np.sum(own_rows.reshape(count, -1, f.shape[1]) * f[x[:, inside]], axis=(1, 2))
    if pool:
        value = value + np.sum(further * f[x[:, ~inside]].mean(axis=1), axis=1)
    return count * value


METHODS = ("upm", "easy", "anchored")


def known_reference(method, world):
    """What `anchored` needs beside the others: a reference, and its mean in the world."""
    if method != "anchored":
        return {}
    g = reference_of(world)
    return {"g": g, "g_mean": world.q @ g}


def test_every_linear_method_is_in_the_table():
    assert set(LINEAR) == set(METHODS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(1, 1, 1), (2, 2), (1, 2, 1), (3, 1)])
def test_the_estimate_is_exactly_unbiased(method, kind, size):
    world, f = random_world(kind, seed=3), components_of(kind)
    every = Outcomes.of(world, size)
    values = estimates(method, every, f, world.prior, **known_reference(method, world))
    assert every.chance @ values == pytest.approx(world.loss(f), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_bag_weights_and_mean_zero_noise_keep_it_unbiased(method, kind):
    world, f = random_world(kind, seed=4), components_of(kind)
    every, total = Outcomes.of(world, (1, 2, 1)), 0.0
    given = {"weight": np.array([0.5, 0.2, 0.3]), **known_reference(method, world)}
    for noise in (0.7, -0.7):  # of two points, on the report of the first bag
        report = every.report.copy()
        report[:, 0, -1] += noise
        values = estimates(method, every._replace(report=report), f, world.prior, **given)
        total += every.chance @ values / 2
    assert total == pytest.approx(world.loss(f), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_bag_without_weight_lends_its_instances_to_the_means_and_needs_no_report(method):
    world, f = random_world("binary", seed=4), components_of("binary")
    every = Outcomes.of(world, (2, 1, 1))
    every.report[:, 1] = np.nan
    given = {"weight": np.array([0.6, 0.0, 0.4]), **known_reference(method, world)}
    values = estimates(method, every, f, world.prior, **given)
    assert every.chance @ values == pytest.approx(world.loss(f), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_of_further_instances_keeps_it_unbiased(method, kind):
    world, f = random_world(kind, seed=5), components_of(kind)
    for size in [(2, 1, 1), (3, 1)]:
        every = Outcomes.of(world, size)
        given = {"pool": True, **known_reference(method, world)}
        values = estimates(method, every, f, world.prior, **given)
        assert every.chance @ values == pytest.approx(world.loss(f), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_strata_with_different_worlds_are_unbiased_together(method, kind):
    first, second = random_world(kind, seed=6), random_world(kind, seed=7)
    f = components_of(kind)
    size, stratum = np.array([1, 1, 1, 1]), np.array([0, 1, 0, 1])
    if kind == "binary":
        size = np.array([1, 1, 2, 1])
    bag = np.repeat(np.arange(4), size)
    every = Outcomes.of([(first, second)[stratum[j]] for j in bag], size)
    prior = np.stack([first.prior, second.prior])
    share = np.bincount(stratum[bag]) / len(bag)
    given = {}
    if method == "anchored":
        g = reference_of(first)
        given = {"g": g, "g_mean": np.stack([first.q @ g, second.q @ g])}
    values = estimates(method, every, f, prior, stratum=stratum, **given)
    expected = share[0] * first.loss(f) + share[1] * second.loss(f)
    assert every.chance @ values == pytest.approx(expected, abs=1e-12)


def test_the_mean_report_as_prior_is_exact_up_to_the_covariance_over_n():
    """DESIGN section 4: leave-one-bag-out means with the size-weighted mean report, for any
    sizes."""
    world, f = random_world("binary", seed=8), components_of("binary")
    for size in [(1, 2, 1), (2, 2), (3, 1)]:
        every = Outcomes.of(world, size)
        prior = np.einsum("b,obr->or", size, every.report) / sum(size)
        bias = every.chance @ estimates("upm", every, f, prior) - world.loss(f)
        assert bias == pytest.approx(world.covariance(f) / sum(size), abs=1e-12)


@pytest.mark.parametrize("pending", [False, True])
def test_instances_outside_an_estimated_prior_bring_the_bias_that_the_docs_state(pending):
    """The prior is the mean report of all bags but the last, whose report is pending, or which is a
    pool."""
    world, f = random_world("binary", seed=8), components_of("binary")
    for size in [(2, 1, 1), (1, 1, 2)]:
        k, N, M = np.array(size[:-1]), sum(size[:-1]), sum(size)
        every = Outcomes.of(world, size)
        prior = np.einsum("b,obr->or", k, every.report[:, :-1]) / N
        given = {"weight": np.append(np.full(len(k), 1 / len(k)), 0)} if pending else {"pool": True}
        bias = every.chance @ estimates("upm", every, f, prior, **given) - world.loss(f)
        expected = -world.covariance(f) * np.mean((k * (M - N) - (N - k)) / (N * (M - k)))
        assert bias == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("pool", [False, True])
def test_the_mean_of_the_reference_over_batch_and_pool_is_exact_up_to_the_covariance_over_both(
    pool,
):
    world, f = random_world("binary", seed=8), components_of("binary")
    g = reference_of(world)
    covariance = world.q @ (g[:, 1] * f[:, 1]) - (world.q @ g[:, 1]) * (world.q @ f[:, 1])
    for size in [(1, 2, 1), (2, 2), (3, 1)]:
        every = Outcomes.of(world, size)
        given = {"pool": True, "g_mean": g[every.x].mean(axis=1)} if pool else {}
        values = estimates("anchored", every, f, world.prior, g=g, **given)
        assert every.chance @ values - world.loss(f) == pytest.approx(
            -covariance / sum(size), abs=1e-12
        )


def naive_upm(size, bag, report, prior, f, w):
    """Equation (2) of the paper (and its multi-class form), bag by bag, with leave-one-bag-out
    means."""
    total = 0.0
    for j in range(len(size)):
        mean = f[bag != j].mean(axis=0)
        inside = f[bag == j]
        bag_loss = sum(
            (report[j, r] - prior[r]) * (inside[:, r].sum() - size[j] * mean[r])
            + prior[r] * mean[r]
            for r in range(f.shape[1])
        )
        total += w[j] * bag_loss
    return total


def naive_easy(size, bag, report, prior, f, w):
    """The paper's EasyLLP, written with the losses at 1 and 0 as it stands there."""
    total = 0.0
    for j in range(len(size)):
        k, alpha, p = size[j], report[j, 1], prior[1]
        at_zero, at_one = f[bag == j, 0], f[bag == j].sum(axis=1)
        terms = (k * (alpha - p) + p) * at_one + (k * (p - alpha) + (1 - p)) * at_zero
        total += w[j] * terms.sum() / k
    return total


def naive_anchored(size, bag, report, prior, f, w, g, g_mean):
    residual = np.stack([report[j] - g[bag == j].mean(axis=0) for j in range(len(size))])
    return (g * f).sum(axis=1).mean() + naive_upm(size, bag, residual, prior - g_mean, f, w)


def random_batch(kind, seed, bags=7):
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 9, size=bags)
    bag = rng.permutation(np.repeat(np.arange(bags), size))
    f = LOSS[kind].components(
        rng.normal(size=(len(bag), 3) if kind == "histogram" else len(bag)), kind=kind
    )
    if kind == "histogram":
        report, prior = rng.dirichlet(np.ones(3), size=bags), rng.dirichlet(np.ones(3))
        g = rng.dirichlet(np.ones(3), size=len(bag))
    else:
        report = np.stack([np.ones(bags), rng.uniform(size=bags)], axis=1)
        prior, g = (
            np.array([1, rng.uniform()]),
            np.stack([np.ones(len(bag)), rng.uniform(size=len(bag))], axis=1),
        )
    return size, bag, report, prior, f, g, rng.dirichlet(np.ones(bags))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_the_weights_equal_the_papers_formulas_written_bag_by_bag(kind, seed):
    size, bag, report, prior, f, g, w = random_batch(kind, seed)
    uniform = np.full(len(size), 1 / len(size))
    for weight, given in ((uniform, None), (w, w)):
        upm = np.sum(weights.upm(size, report, prior, weight=given)[bag] * f)
        assert upm == pytest.approx(naive_upm(size, bag, report, prior, f, weight), rel=1e-12)
        anchored = np.sum(weights.anchored(bag, size, report, prior, g, weight=given) * f)
        expected = naive_anchored(size, bag, report, prior, f, weight, g, g.mean(axis=0))
        assert anchored == pytest.approx(expected, rel=1e-12)
        if kind != "histogram":
            easy = np.sum(weights.easy(size, report, prior, weight=given)[bag] * f)
            assert easy == pytest.approx(naive_easy(size, bag, report, prior, f, weight), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_known_means_give_the_papers_ideal_estimator(kind):
    size, bag, report, prior, f, _, _ = random_batch(kind, 0)
    mean = np.arange(1.0, 1.0 + f.shape[1])
    W = weights.upm(size, report, prior, pool=inf)
    ideal = [
        prior @ mean + (report[j] - prior) @ (f[bag == j] - mean).sum(axis=0)
        for j in range(len(size))
    ]
    assert np.sum(W[:-1][bag] * f) + W[-1] @ mean == pytest.approx(np.mean(ideal), rel=1e-12)


def test_a_growing_pool_leads_to_the_known_means():
    size, _bag, report, prior, *_ = random_batch("binary", 1)
    for method in (weights.upm, weights.easy):
        big, known = method(size, report, prior, pool=1e12), method(size, report, prior, pool=inf)
        np.testing.assert_allclose(big, known, atol=1e-10)
        assert np.abs(method(size, report, prior, pool=10)[-1] - known[-1]).max() > 1e-3


def test_strata_with_pools_are_the_strata_one_by_one():
    size, _, report, prior, *_ = random_batch("binary", 2)
    stratum, pool = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([5, 9])
    priors = np.stack([prior, [1, 0.5]])
    for method in (weights.upm, weights.easy):
        W = method(size, report, priors, stratum=stratum, pool=pool)
        for s in (0, 1):
            own = stratum == s
            alone = (
                method(size[own], report[own], priors[s], pool=pool[s])
                * size[own].sum()
                / size.sum()
            )
            np.testing.assert_allclose(W[:7][own], alone[:-1])
            np.testing.assert_allclose(W[7 + s], alone[-1])


def test_the_losses_of_the_bags_average_to_the_estimate():
    for kind in KINDS:
        size, bag, report, prior, f, *_ = random_batch(kind, 9)
        by_bag = weights.upm_by_bag(f, bag, size, report, prior)
        assert by_bag.shape == (len(size),)
        assert by_bag.mean() == pytest.approx(
            np.sum(weights.upm(size, report, prior)[bag] * f), rel=1e-12
        )


def test_bag_weights_add_up_to_one_but_for_rounding():
    given = np.array([2, 2]), np.array([0.5, 0.0]), 0.25
    weights.upm(*given, weight=np.array([0.5, 0.5 + 1e-7]))
    with pytest.raises(ValueError, match="must add up to 1 in each stratum"):
        weights.upm(*given, weight=np.array([0.5, 0.5 + 1e-5]))


def test_padding_of_size_zero_changes_nothing():
    """Under `jit`, where nothing is checked."""
    import jax

    size, weight = np.array([2, 2, 0]), np.array([0.5, 0.5, 0.0])
    report, prior = np.array([[1, 0.5], [1, 0.0], [1, 7.0]]), np.array([1, 0.25])
    for method in (weights.upm, weights.easy):
        padded = jax.jit(lambda r, m=method: m(size, r, prior, weight=weight))(report)
        np.testing.assert_allclose(padded[:2], method(size[:2], report[:2], prior), rtol=1e-6)
        assert np.isfinite(padded).all()


def test_a_lone_bag_is_fine_with_a_pool():
    W = weights.upm(np.array([4]), np.array([[1, 0.5]]), np.array([1, 0.25]), pool=8)
    np.testing.assert_allclose(W, [[0, 0.25], [1, 0.25 - 4 * 0.25]])


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_bags_and_rows_is_irrelevant(kind):
    size, bag, report, prior, _f, g, w = random_batch(kind, 3)
    bags, rows = RNG.permutation(len(size)), RNG.permutation(len(bag))
    new_bag = np.argsort(bags)[bag][rows]
    for method in ("upm", "easy"):
        before = getattr(weights, method)(size, report, prior, weight=w)[bag]
        after = getattr(weights, method)(size[bags], report[bags], prior, weight=w[bags])[new_bag]
        np.testing.assert_allclose(after, before[rows], atol=1e-14)
    before = weights.anchored(bag, size, report, prior, g, weight=w)
    after = weights.anchored(new_bag, size[bags], report[bags], prior, g[rows], weight=w[bags])
    np.testing.assert_allclose(after, before[rows], atol=1e-14)


def test_easy_with_the_batch_prior_collapses_to_upm_with_batch_means_and_both_are_biased():
    """The trap: with the batch's own mean as prior the two methods are one, and it is biased."""
    size, bag, report, _, f, _, _ = random_batch("binary", 4)
    size = np.full(len(size), 3)
    bag = np.repeat(np.arange(len(size)), 3)
    f = f[RNG.integers(0, len(f), size=len(bag))]
    prior, mean = report.mean(axis=0), f.mean(axis=0)
    in_batch_means = np.mean(
        [
            prior @ mean + (report[j] - prior) @ (f[bag == j] - mean).sum(axis=0)
            for j in range(len(size))
        ]
    )
    easy = np.sum(weights.easy(size, report, prior)[bag] * f)
    assert easy == pytest.approx(in_batch_means, abs=1e-12)

    world, f = random_world("binary", seed=9), components_of("binary")

    for size in [(1, 1, 1, 1), (2, 2)]:
        every = Outcomes.of(world, size)
        values = estimates("easy", every, f, every.report.mean(axis=1))
        assert every.chance @ values - world.loss(f) == pytest.approx(
            -world.covariance(f) * (1 / len(size) - 1 / sum(size)), abs=1e-12
        )


def bag_moments(world, f, k):
    """Exact mean and variance of one bag's ideal UPM and EasyLLP loss, over all compositions of k
    instances."""
    joint = world.joint.ravel()
    x, y = (index.ravel() for index in np.indices(world.joint.shape))
    bars = list(itertools.combinations(range(k + len(joint) - 1), len(joint) - 1))
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, k + len(joint) - 1)))
    counts = np.diff(edges) - 1  # of each pair of x and y, (compositions, pairs)
    ways = factorial(k) / np.prod(special.factorial(counts), axis=1)
    chance = ways * np.prod(joint**counts, axis=1)
    assert chance.sum() == pytest.approx(1)
    report, total = counts @ world.label_components(y) / k, counts @ f[x]
    # each composition is a stratum of one bag, with a share of one in so many
    number = np.arange(len(counts))
    every = np.full(len(counts), k), report, np.tile(world.prior, (len(counts), 1))
    W = weights.upm(*every, stratum=number, pool=np.full(len(counts), inf))
    upm = np.sum(W[: len(counts)] * total + W[len(counts) :] * (world.q @ f), axis=1)
    easy = np.sum(weights.easy(*every, stratum=number) * total, axis=1)
    result = {}
    for name, value in {"upm": len(counts) * upm, "easy": len(counts) * easy}.items():
        mean = chance @ value
        result[name] = mean, chance @ (value - mean) ** 2
    return result


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_the_variance_of_a_binary_bag_is_below_the_lemmas_bound(seed, k):
    world, f = random_world("binary", seed), components_of("binary", seed=seed)
    mean, variance = bag_moments(world, f, k)["upm"]
    assert mean == pytest.approx(world.loss(f), abs=1e-12)
    assert variance <= 2.5 * world.q @ f[:, 1] ** 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_variance_of_a_histogram_bag_is_below_the_lemmas_bound(seed, k):
    world, f = random_world("histogram", seed), components_of("histogram", seed=seed)
    mean, variance = bag_moments(world, f, k)["upm"]
    assert mean == pytest.approx(world.loss(f), abs=1e-12)
    assert variance <= 64 * world.q @ f.max(axis=1) ** 2


def test_the_variance_of_upm_does_not_grow_with_the_bag_and_that_of_easy_does():
    world = World("binary", np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.7, 0.3]]))
    f = losses.log.components(np.array([-3.0, -1.0]))
    variance = {k: bag_moments(world, f, k) for k in (4, 16, 28)}
    limit = 2.5 * world.q @ f[:, 1] ** 2
    upm = [variance[k]["upm"][1] for k in variance]
    easy = [variance[k]["easy"][1] for k in variance]
    p, mean_f2 = world.prior[1], world.q @ f[:, 1]
    assert max(upm) < limit
    assert max(upm) / min(upm) < 1.2
    growth = (easy[2] - easy[1]) / (28 - 16)
    assert growth == pytest.approx(p * (1 - p) * mean_f2**2, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_noise_weights_are_the_best_weights(seed):
    """No small change that keeps the sum lowers sum_j w_j^2 (Var y + s2_j / k_j), the variance of
    the estimate."""
    rng = np.random.default_rng(seed)
    size, noise = rng.integers(1, 50, size=6), rng.uniform(0, 30, size=6)
    spread = 0.2 + noise / size
    w = weights.noise_weights(size, noise, variance=0.2)
    assert w.sum() == pytest.approx(1)
    for _ in range(20):
        change = rng.normal(size=6) * 0.01
        other = w + change - change.mean()
        assert other**2 @ spread > w**2 @ spread


def test_noise_weights_add_up_to_one_in_each_stratum():
    w = weights.noise_weights(
        np.ones(5), np.arange(5.0), variance=0.2, stratum=np.array([0, 1, 0, 1, 1])
    )
    np.testing.assert_allclose(np.bincount([0, 1, 0, 1, 1], weights=w), 1)


def test_noise_free_bags_get_equal_weights_whatever_their_size():
    np.testing.assert_allclose(
        weights.noise_weights(np.array([1, 100]), np.zeros(2), variance=0.1), 0.5
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_pseudo_labels_give_back_the_same_estimate(kind, method):
    size, bag, report, prior, f, g, _ = random_batch(kind, 5)
    rng = np.random.default_rng(0)
    score = rng.normal(size=(len(bag), 3) if kind == "histogram" else len(bag))
    f = LOSS[kind].components(score, kind=kind)
    if method == "anchored":
        W = weights.anchored(bag, size, report, prior, g)
    else:
        W = getattr(weights, method)(size, report, prior)[bag]
    target, sample_weight = weights.pseudo_labels(W, kind=kind)
    assert (sample_weight > 0).all()
    value = np.sum(sample_weight * LOSS[kind].value(score, target, kind=kind))
    assert value == pytest.approx(np.sum(W * f), rel=1e-10)


def test_bags_of_one_are_ordinary_labels_for_easy():
    y = np.array([1.0, 0, 0, 1])
    W = weights.easy(np.ones(4), np.stack([np.ones(4), y], axis=1), np.array([1, 0.3]))
    np.testing.assert_allclose(W, np.stack([np.ones(4), y], axis=1) / 4)


def test_bags_of_one_are_ordinary_labels_for_upm_in_expectation_only():
    size, report = np.ones(2), np.array([[1, 1.0], [1, 0.0]])
    W = weights.upm(size, report, np.array([1, 0.3]))
    assert np.abs(W - report / 2).max() > 0.05
    world, f = random_world("binary", seed=1), components_of("binary")
    every = Outcomes.of(world, (1, 1))
    values = estimates("upm", every, f, world.prior)
    assert every.chance @ values == pytest.approx(world.loss(f), abs=1e-12)


@pytest.mark.parametrize("framework", ["jax", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_framework_gives_the_same_weights_also_under_jit(framework, kind):
    needs(framework)
    size, bag, report, prior, _, g, w = random_batch(kind, 6)
    stratum = np.array([0, 0, 0, 1, 1, 1, 1])
    w = w / np.bincount(stratum, weights=w)[stratum]
    priors = np.stack([prior, prior[::-1] if kind == "histogram" else [1, 0.5]])
    options = {"weight": w, "stratum": stratum}
    cases = {
        "upm": (lambda r: weights.upm(size, r, priors, **options), report),
        "upm pool": (
            lambda r: weights.upm(size, r, priors, pool=np.array([5.0, 6.0]), **options),
            report,
        ),
        "easy": (lambda r: weights.easy(size, r, priors, **options), report),
        "easy pool": (lambda r: weights.easy(size, r, prior, pool=5), report),
        "anchored": (
            lambda r: weights.anchored(bag, size, r, like(r, priors), g, **options),
            report,
        ),
    }
    for function, argument in cases.values():
        expected = function(argument)
        if framework == "jax":
            import jax

            with jax.enable_x64(True):
                actual = np.asarray(jax.jit(function)(jax.numpy.asarray(argument)))
        else:
            import torch

            actual = function(torch.as_tensor(argument)).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_sums_by_stratum_of_absent_strata_are_harmless():
    """A batch may hold no bag of some stratum: its prior is there all the same."""
    size, report = np.array([2, 2]), np.array([[1, 0.5], [1, 0.0]])
    alone = weights.upm(size, report, np.array([1, 0.25]))
    priors = np.array([[1, 0.9], [1, 0.25]])
    np.testing.assert_allclose(weights.upm(size, report, priors, stratum=np.array([1, 1])), alone)
    assert sum_by(np.array([1, 1]), np.ones(2), 3).tolist() == [0, 2, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_the_weighted_loss_is_that_of_the_papers_formula(kind):
    """The means over the other bags carry a gradient too; in the weights it is already there."""
    import jax
    import jax.numpy as jnp

    size, bag, report, prior, _, _, w = random_batch(kind, 7)
    rng = np.random.default_rng(8)
    X = rng.normal(size=(len(bag), 4))
    theta = rng.normal(size=(4, 3) if kind == "histogram" else 4)
    W = weights.upm(size, report, prior, weight=w)[bag]

    def weighted(theta):
        return jnp.sum(W * LOSS[kind].components(X @ theta, kind=kind))

    def paper(theta):
        return naive_upm(size, bag, report, prior, LOSS[kind].components(X @ theta, kind=kind), w)

    with jax.enable_x64(True):
        theta = jnp.asarray(theta)
        ours, papers = (jax.jit(jax.grad(value))(theta) for value in (weighted, paper))
        np.testing.assert_allclose(ours, papers, rtol=1e-10, atol=1e-12)


def test_shapes_are_checked_in_the_tests():
    with pytest.raises(jaxtyping.TypeCheckError):
        weights.upm(np.ones(3), np.ones((2, 2)), np.ones(2))


@pytest.mark.parametrize("make", [list, tuple, np.array])
def test_the_papers_own_form_of_reports_and_prior_is_the_component_form(make):
    """alpha as one number per bag, p as one number; with strata one p for each."""
    size, alpha, p = make([2, 3, 2]), make([0.5, 0.0, 1.0]), 0.25
    report, prior = np.array([[1, 0.5], [1, 0.0], [1, 1.0]]), np.array([1, 0.25])
    for method in (weights.upm, weights.easy):
        np.testing.assert_array_equal(method(size, alpha, p), method(size, report, prior))
        np.testing.assert_array_equal(method(size, alpha, prior), method(size, report, prior))
    strata = {"stratum": np.array([0, 0, 0])}
    np.testing.assert_array_equal(
        weights.upm(size, alpha, make([p]), **strata),
        weights.upm(size, report, prior[None], **strata),
    )
