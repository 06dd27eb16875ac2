import numpy as np
import pytest

from cases.losses import CASES, TABLE, scores
from cases.matching import BAG, match
from cases.packages import needs
from unbag import losses
from unbag.losses import smoothed

sigmoid = lambda z: 1 / (1 + np.exp(-z))


def by_bag(function, score):
    return [function(score[j == BAG]) for j in range(2)]


def test_the_log_loss_is_matched_at_the_mean_probability():
    z, alpha = np.random.default_rng(0).normal(size=5), np.array([0.5, 1 / 3])
    h = np.array(by_bag(lambda s: sigmoid(s).mean(), z))
    expected = -alpha * np.log(h) - (1 - alpha) * np.log(1 - h)
    np.testing.assert_allclose(match(z, alpha, losses.log, "binary"), expected)
    eps = 0.1 * 0.5
    smooth = 0.9 * alpha + eps
    expected = -smooth * np.log(h) - (1 - smooth) * np.log(1 - h)
    np.testing.assert_allclose(match(z, alpha, smoothed(losses.log, 0.1), "binary"), expected)


def test_counts_and_histograms_are_matched_at_the_mean_prediction():
    rng = np.random.default_rng(1)
    z, mean_count = rng.normal(size=5), np.array([1.5, 0.2])
    rate = np.array(by_bag(lambda s: np.exp(s).mean(), z))
    np.testing.assert_allclose(
        match(z, mean_count, losses.poisson, "total"), rate - mean_count * np.log(rate)
    )
    plain = np.array(by_bag(np.mean, z))
    np.testing.assert_allclose(
        match(z, mean_count, losses.square, "total"), plain**2 - 2 * plain * mean_count
    )

    z, share = rng.normal(size=(5, 3)), rng.dirichlet(np.ones(3), size=2)
    h = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    h = np.stack(by_bag(lambda s: s.mean(axis=0), h))
    np.testing.assert_allclose(
        match(z, share, losses.cross_entropy, "histogram"), -(share * np.log(h)).sum(axis=1)
    )
    # the Brier loss is extended to shares as sum_r alpha_r loss(h, r): that adds a constant to
    # |alpha - h|^2 / c
    square = ((share - h) ** 2).sum(axis=1) / 3 + (1 - (share**2).sum(axis=1)) / 3
    np.testing.assert_allclose(match(z, share, losses.brier, "histogram"), square)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bags_of_one_are_ordinary_labels(case):
    loss, _, labels = TABLE[case]
    z = scores(*case, count=len(labels))
    y = np.array(labels, float)
    report = np.eye(3)[y.astype(int)] if case[1] == "histogram" else y
    matched = match(z, report, loss, case[1], bag=np.arange(len(y)), size=np.ones(len(y)))
    np.testing.assert_allclose(matched, loss.value(z, y, kind=case[1]), rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 0.4])
@pytest.mark.parametrize("z", [1e4, -1e4])
def test_extreme_scores_and_proportions_are_finite_with_finite_gradients(z, alpha):
    import jax

    score = np.full(5, z)
    expected = 1e4 * (alpha if z < 0 else 1 - alpha)
    np.testing.assert_allclose(
        match(score, np.full(2, alpha), losses.log, "binary"), expected, atol=1e-9
    )
    with jax.enable_x64(True):
        total = lambda s: match(s, np.full(2, alpha), losses.log, "binary").sum()
        gradient = jax.jit(jax.grad(total))(score)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_are_those_of_finite_differences_and_of_pytorch(case):
    import jax

    loss, _, _ = TABLE[case]
    z = scores(*case, count=5, seed=4)
    report = np.random.default_rng(5).dirichlet(np.ones(3), size=2)
    report = report if case[1] == "histogram" else report[:, 0]
    total = lambda s: match(s, report, loss, case[1]).sum()
    with jax.enable_x64(True):
        gradient = np.asarray(jax.jit(jax.grad(total))(z))
    for where in np.ndindex(z.shape):
        step = np.zeros_like(z)
        step[where] = 1e-6
        assert gradient[where] == pytest.approx(
            (total(z + step) - total(z - step)) / 2e-6, abs=1e-7
        )
    torch = needs("torch")
    tensor = torch.tensor(z, requires_grad=True)
    total(tensor).backward()
    np.testing.assert_allclose(tensor.grad.numpy(), gradient, rtol=1e-10, atol=1e-12)


def test_a_proportion_that_is_1_but_for_rounding_is_matched():
    expected = match(np.zeros(5), [1.0, 0.0], losses.log, "binary")
    np.testing.assert_allclose(
        match(np.zeros(5), [1 + 1e-12, -1e-12], losses.log, "binary"), expected
    )


def test_the_square_loss_can_match_noisy_proportions():
    np.testing.assert_allclose(
        match(np.zeros(5), [1.2, -0.1], losses.square, "binary"), [0.25, 0.25]
    )
