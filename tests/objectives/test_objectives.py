"""The objectives of other papers: every one against every law."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import comb, expit

from unbag import models, objectives, random_bags, train
from unbag.bags import Bags
from unbag.likelihood import count_likelihood
from unbag.losses import log, square
from unbag.matching import proportion_matching
from unbag.methods import METHODS
from unbag.objectives import (
    DELTA,
    OBJECTIVES,
    RADIUS,
    SHARE,
    Ask,
    Residuals,
    centred,
    count_profiles,
    debiased,
    worst_direction,
)
from unbag.training._loader import Loader, Shape

RNG = np.random.default_rng(3)
SIZES = (1, 2, 4, 5, 3, 6)
BAG = np.repeat(np.arange(6), SIZES)
LABEL = (RNG.uniform(size=len(BAG)) < 0.4).astype(float)
REPORT = np.bincount(BAG, LABEL) / SIZES
X = RNG.normal(size=(len(BAG), 3)).astype(np.float32)
COEFFICIENTS = np.array([1.0, -0.5, 0.3], np.float32)
PRIOR = LABEL.mean()
STEP = RADIUS * np.sqrt(np.mean((X**2).sum(axis=1)))  # of the consistency


def linear(rows):
    return rows @ COEFFICIENTS - 0.2


def padded(report=REPORT, *, bag=BAG, more=0, weight=None):
    """A batch of all bags, in their order."""
    bags = Bags(bag, report, known_prior=PRIOR)
    loader = Loader(bags, batch=10**6, seed=0)
    batch = loader.arrays([np.arange(len(bags))], 0, Shape(len(bag) + 3 * more, len(bags) + more))
    batch = jax.tree.map(jnp.asarray, batch)
    if weight is not None:
        batch = batch._replace(weight=jnp.asarray(weight, jnp.float32))
    return batch


profiles = jax.jit(count_profiles, static_argnums=2)


@partial(jax.jit, static_argnums=(0, 3))
def compiled(name, batch, features, errors, shift=0.0):
    """Value and gradient in the scores, of a linear model that is shifted."""
    moved = lambda rows: linear(rows) + shift
    ask = Ask(moved, features, jax.random.key(0))
    return jax.value_and_grad(lambda z: OBJECTIVES[name](z, batch, ask))(moved(features))


def value_of(name, batch, *, shift=0.0):
    """The objective of a linear model on the rows, and its gradient in the scores."""
    return compiled(name, batch, X[np.asarray(batch.row)], objectives.STANDARD_ERRORS, shift)


def match_of(score):
    """Proportion matching of all bags."""
    report = np.stack([np.ones(6), REPORT], axis=1)
    size = np.array(SIZES, float)
    by_bag = proportion_matching(score, BAG, size, report, loss=log, kind="binary")
    return by_bag.mean()


def by_hand(name):
    """Each formula written naively, bag by bag."""
    h, sizes = expit(linear(X).astype(float)), np.array(SIZES)
    rows = [np.flatnonzero(j == BAG) for j in range(6)]
    means = np.array([h[own].mean() for own in rows])
    others = np.array([np.delete(h, own).mean() for own in rows])
    excess, common = REPORT - means, PRIOR - others
    match = [log.value(np.log(m / (1 - m)), a) for m, a in zip(means, REPORT, strict=True)]
    if name == "debiased_square":
        return np.mean(sizes * excess**2 - (sizes - 1) * common**2)
    if name == "centred_square":
        return np.mean(sizes * (excess - common) ** 2 + common**2)
    if name == "clipped_square":
        bound = np.sqrt(2 * np.log(2 * 6 / DELTA) / sizes)
        return np.mean(sizes * np.clip(excess - common, -bound, bound) ** 2 + common**2)
    if name == "moments":
        return np.mean([profile_entropy(h[own], LABEL[own]) for own in rows])
    if name == "llp_fc":
        total = 0
        for i, j in [(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)]:
            one = REPORT[i] / max(REPORT[i] + REPORT[j], 1e-6)
            zero = (1 - REPORT[i]) / max(2 - REPORT[i] - REPORT[j], 1e-6)
            total -= np.mean(np.log(np.maximum(one * h[rows[i]] + zero * (1 - h[rows[i]]), 1e-6)))
        return total / 6
    if name == "llp_vat":
        moved = expit(np.log(h / (1 - h)) + STEP * np.linalg.norm(COEFFICIENTS))
        kl = h * np.log(h / moved) + (1 - h) * np.log((1 - h) / (1 - moved))
        return np.mean(match) + SHARE * kl.mean()
    assert name == "mixbag"
    mean, target, *_ = jax.jit(objectives.mixtures)(linear(X), padded(), jax.random.key(0))
    mean, target = np.clip(mean, 1e-6, 1 - 1e-6), np.asarray(target)
    mixed = -target * np.log(mean) - (1 - target) * np.log(1 - mean)
    return (np.mean(match) + mixed.mean()) / 2


def profile_entropy(h, y, order=3, smoothing=1e-4):
    """By enumerating all subsets of a bag and all labels of a subset."""
    values = []
    for r in range(1, min(order, len(h)) + 1):
        reported, predicted = np.zeros(r + 1), np.zeros(r + 1)
        for subset in itertools.combinations(range(len(h)), r):
            reported[int(y[list(subset)].sum())] += 1
            for labels in itertools.product([0, 1], repeat=r):
                chance = np.prod(
                    [h[i] if t else 1 - h[i] for i, t in zip(subset, labels, strict=True)]
                )
                predicted[sum(labels)] += chance
        both = [
            (1 - smoothing) * v / comb(len(h), r) + smoothing / (r + 1)
            for v in (reported, predicted)
        ]
        values.append(-np.sum(both[0] * np.log(both[1])))
    return np.mean(values)


def test_the_table_of_methods_has_every_objective():
    assert [n for n, facts in METHODS.items() if facts.objective == "function"] == list(OBJECTIVES)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_is_its_formula_written_naively(name):
    assert float(value_of(name, padded())[0]) == pytest.approx(by_hand(name), rel=2e-5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_padding_does_not_count_and_gets_no_gradient(name):
    value, slope = value_of(name, padded())
    batch = padded(more=2)
    again, padded_slope = value_of(name, batch)
    if name != "mixbag":  # which draws for every row
        assert float(again) == pytest.approx(float(value), rel=1e-5)
        np.testing.assert_allclose(padded_slope[: len(BAG)], slope, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(padded_slope)[~np.asarray(batch.real)], 0)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_report_of_a_bag_of_weight_zero_has_no_part(name):
    weight = np.array([1, 1, 0, 1, 1, 0]) / 4
    values = []
    for report in (0.0, 1.0):
        changed = np.where(weight > 0, REPORT, report)
        values.append(value_of(name, padded(changed, weight=weight)))
    np.testing.assert_allclose(values[0][0], values[1][0], rtol=1e-6)
    np.testing.assert_allclose(values[0][1], values[1][1], atol=1e-7)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_gradient_is_that_of_finite_differences(name, monkeypatch):
    monkeypatch.setattr(objectives, "STANDARD_ERRORS", -1.0)  # every mixed bag has a gradient
    batch, step = padded(), 1e-2
    values = [float(value_of(name, batch, shift=s)[0]) for s in (step, -step)]
    expected = (values[0] - values[1]) / (2 * step)
    if name == "llp_vat":  # its divergence reaches the model through the moved rows only
        matched = [float(match_of(linear(X) + s)) for s in (step, -step)]
        expected = (matched[0] - matched[1]) / (2 * step)
    slope = float(jnp.sum(value_of(name, batch)[1]))
    assert slope == pytest.approx(expected, rel=1e-2, abs=2e-4)


@pytest.mark.parametrize("name", ["debiased_square", "centred_square", "clipped_square", "moments"])
def test_the_order_of_bags_is_irrelevant(name):
    order = np.array([3, 1, 5, 0, 2, 4])
    bag = np.argsort(order)[BAG]
    value, _ = value_of(name, padded())
    moved = padded(REPORT[order], bag=bag)
    assert float(value_of(name, moved)[0]) == pytest.approx(float(value), rel=1e-5)


@pytest.mark.parametrize("name", ["debiased_square", "moments", "llp_fc"])
def test_bags_of_one_are_ordinary_labels(name):
    batch = padded(LABEL, bag=np.arange(len(LABEL)))
    usual = {True: square, False: log}["square" in name]
    slope = jax.jit(jax.grad(lambda z: jnp.mean(usual.value(z, LABEL))))(linear(X))
    ours = np.array(value_of(name, batch)[1])
    if name == "llp_fc" and len(LABEL) % 2:  # the last bag has no partner
        ours, slope = ours[:-1] * (len(LABEL) - 1) / len(LABEL), slope[:-1]
    np.testing.assert_allclose(ours, slope, atol=5e-5)  # the moments are smoothed a little


@pytest.mark.parametrize("estimate", [debiased, centred])
def test_the_square_estimators_are_unbiased_when_the_mean_prediction_is_known(estimate):
    q, eta, h, k = np.array([0.3, 0.7]), np.array([0.8, 0.1]), np.array([0.6, 0.3]), 3
    p, mean = q @ eta, q @ h
    expected = q @ (eta * (1 - h) ** 2 + (1 - eta) * h**2)
    total = 0.0
    for x in itertools.product([0, 1], repeat=k):
        for y in itertools.product([0, 1], repeat=k):
            chance = np.prod(
                [q[a] * (eta[a] if b else 1 - eta[a]) for a, b in zip(x, y, strict=True)]
            )
            own = np.mean(y) - h[list(x)].mean()
            total += chance * estimate(Residuals(k, own, p - mean))
    assert float(total) == pytest.approx(expected, abs=1e-6)


def test_the_variance_of_the_centred_square_is_lower_where_the_level_is_wrong():
    rng = np.random.default_rng(0)
    own = (rng.uniform(size=(20_000, 50)) < 0.3).mean(axis=1) - 0.6
    r = Residuals(50, own, np.full(len(own), -0.3))
    assert np.var(centred(r)) < 0.1 * np.var(debiased(r))


def test_clipping_acts_on_outliers_only():
    r = Residuals(np.full(2, 100.0), np.array([0.01, 0.9]), np.zeros(2))
    clipped, whole = np.asarray(centred(r, bound=0.5)), np.asarray(centred(r))
    assert clipped[0] == whole[0]
    assert clipped[1] == pytest.approx(100 * 0.5**2)


def test_the_first_moment_is_matching_and_the_last_the_likelihood_of_the_count():
    bag, report = np.repeat([0, 1], 3), np.array([[1, 1 / 3], [1, 2 / 3]])
    score, size = linear(X[:6]).astype(float), np.array([3, 3])
    first, _, third = map(np.asarray, profiles(score, padded(report[:, 1], bag=bag), 3))
    match = proportion_matching(score, bag, size, report, loss=log, kind="binary")
    entropy = -(1 - report[:, 1]) * np.log(first[:, 0]) - report[:, 1] * np.log(first[:, 1])
    np.testing.assert_allclose(entropy, match, rtol=1e-5)
    law = count_likelihood(score, bag, size, report)
    np.testing.assert_allclose([-np.log(third[0, 1]), -np.log(third[1, 2])], law, rtol=1e-4)
    np.testing.assert_allclose(third.sum(axis=1), 1, rtol=1e-5)


def test_profiles_of_large_bags_are_laws_in_single_precision():
    batch = padded(np.array([0.1, 0.2]), bag=np.repeat([0, 1], 2000))
    score = np.random.default_rng(0).normal(-2, 1, size=4000).astype(np.float32)
    for law in profiles(score, batch, 3):
        np.testing.assert_allclose(np.sum(law, axis=1), 1, atol=2e-5)


def test_the_worst_direction_is_the_gradient_of_the_logit():
    step = jax.jit(lambda rows: worst_direction(Ask(linear, rows, None), np.ones(len(X))))(X)
    np.testing.assert_allclose(
        step[0], STEP * COEFFICIENTS / np.linalg.norm(COEFFICIENTS), rtol=1e-5
    )
    rng = np.random.default_rng(1)
    other = rng.normal(size=(50, 3))
    other *= STEP / np.linalg.norm(other, axis=1, keepdims=True)
    assert (np.abs(other @ COEFFICIENTS) <= float(step[0] @ COEFFICIENTS) + 1e-5).all()


def test_mixtures_draw_without_replacement():
    # With the labels as scores the mixed mean is a draw of the mixed proportion, with its variance.
    sure, batch = jnp.asarray(40 * (LABEL - 0.5), jnp.float32), padded()
    keys = jax.random.split(jax.random.key(0), 600)
    drawn = jax.jit(jax.vmap(lambda key: objectives.mixtures(sure, batch, key)))(keys)
    mean, target, variance, weight = (np.asarray(each) for each in drawn)
    assert target.std(axis=0).max() > 0.01  # the parts differ in size from draw to draw
    gap = mean - target
    error = np.sqrt(variance.mean(axis=0) / len(keys))
    assert (np.abs(gap.mean(axis=0)) <= 4 * error + 1e-6).all()
    np.testing.assert_allclose((gap**2).mean(axis=0), variance.mean(axis=0), rtol=0.3, atol=1e-9)
    np.testing.assert_allclose(weight, np.tile(batch.weight, (600, 1)))


def test_inside_its_interval_a_mixed_bag_has_no_gradient(monkeypatch):
    monkeypatch.setattr(objectives, "STANDARD_ERRORS", 1e6)
    slope = value_of("mixbag", padded())[1]
    plain = jax.jit(jax.grad(match_of))(linear(X))
    np.testing.assert_allclose(slope, plain / 2, atol=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_training_by_an_objective_beats_the_trivial_predictor(name):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 2)).astype(np.float32)
    y = rng.uniform(size=1500) < expit(2 * rows[:, 0])
    bags = random_bags(rows, y, size=5, seed=0)
    model = models.linear(2, key=0)
    run = train(model, bags, name, learning_rate=0.05, epochs=8, batch=300)
    assert np.corrcoef(run.scores(rows), rows[:, 0])[0, 1] > 0.9
