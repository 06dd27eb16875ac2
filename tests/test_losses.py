"""Every loss x every law, and one test that says that the table is complete."""

import pickle

import numpy as np
import pytest

from cases.losses import CASES, TABLE, cross, one_hot, scores, sigmoid
from cases.packages import needs
from unbag import losses
from unbag.losses import LOSSES, smoothed


def test_every_shipped_loss_and_form_is_in_the_table():
    shipped = {(loss.name, kind) for loss in LOSSES.values() for kind in loss.forms}
    assert shipped <= set(TABLE)
    assert {loss.name for loss in vars(losses).values() if isinstance(loss, losses.Loss)} == set(
        LOSSES
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_value_is_the_one_written_by_hand(case):
    loss, by_hand, labels = TABLE[case]
    z = scores(*case)
    for y in labels:
        value = loss.value(z, np.full(len(z), float(y)), kind=case[1])
        np.testing.assert_allclose(value, [by_hand(row, y) for row in z], rtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loss_is_the_label_times_the_components(case):
    loss, _, labels = TABLE[case]
    z = scores(*case)
    f = loss.components(z, kind=case[1])
    assert f.shape == (len(z), 3 if case[1] == "histogram" else 2)
    for y in labels:
        label = one_hot(y) if case[1] == "histogram" else np.array([1, y])
        np.testing.assert_allclose(
            f @ label, loss.value(z, np.full(len(z), float(y)), kind=case[1]), rtol=1e-12
        )


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("z", [1e4, -1e4])
def test_extreme_scores_are_finite_unless_the_loss_itself_overflows(case, z):
    loss, _, _labels = TABLE[case]
    name, kind = case
    score = np.full(scores(*case).shape, z)
    if score.ndim == 2:
        score[:, 0] = -z
    overflows = name == "poisson" and z > 0
    with np.errstate(over="ignore" if overflows else "raise", invalid="raise"):
        f = loss.components(score, kind=kind)
    assert not np.isnan(f).any()
    if not overflows:
        assert np.isfinite(f).all()


def test_extreme_scores_have_the_right_values():
    np.testing.assert_array_equal(
        losses.log.components(np.array([1e4, -1e4])), [[1e4, -1e4], [0, 1e4]]
    )
    np.testing.assert_array_equal(
        losses.square.components(np.array([1e4, -1e4])), [[1, -1], [0, 1]]
    )
    np.testing.assert_array_equal(losses.poisson.components(np.array([-1e4])), [[0, 1e4]])
    np.testing.assert_array_equal(
        losses.cross_entropy.components(np.array([[1e4, 0.0]])), [[0, 1e4]]
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_gradient_is_that_of_finite_differences(case):
    import jax

    loss, _, _ = TABLE[case]
    kind = case[1]
    z = scores(*case, count=3, seed=1)
    weights = np.random.default_rng(2).normal(size=loss.components(z, kind=kind).shape)
    total = lambda s: (weights * loss.components(s, kind=kind)).sum()
    with jax.enable_x64(True):
        gradient = np.asarray(jax.jit(jax.grad(total))(z))
    step = 1e-6
    for where in np.ndindex(z.shape):
        up, down = z.copy(), z.copy()
        up[where] += step
        down[where] -= step
        assert gradient[where] == pytest.approx((total(up) - total(down)) / (2 * step), abs=1e-7)


def test_the_gradient_at_score_zero_is_right_where_models_start():
    import jax

    torch = needs("torch")
    for loss, expected in ((losses.log, (0.5, -1.0)), (losses.square, (0.25, -0.5))):
        for component, slope in enumerate(expected):
            assert (
                float(
                    jax.grad(lambda z, c=component, f=loss: f.components(z)[0, c])(np.zeros(1))[0]
                )
                == slope
            )
            score = torch.zeros(1, requires_grad=True)
            loss.components(score)[0, component].backward()
            assert score.grad.item() == slope


@pytest.mark.parametrize(
    "case, z",
    [(case, z) for case in CASES for z in (1e4, -1e4) if not (case[0] == "poisson" and z > 0)],
    ids=str,
)
def test_gradients_at_extreme_scores_are_finite_where_the_loss_is(case, z):
    import jax

    score = np.full(scores(*case).shape, z)
    with jax.enable_x64(True):
        total = lambda s: TABLE[case][0].components(s, kind=case[1]).sum()
        gradient = jax.jit(jax.grad(total))(score)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pytorch_gives_the_same_components_and_gradients_as_jax(case):
    torch = needs("torch")
    import jax

    loss, _, _ = TABLE[case]
    z = scores(*case, seed=3)
    total = lambda s: (loss.components(s, kind=case[1]) ** 2).sum()
    with jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(total))(z)
    tensor = torch.tensor(z, requires_grad=True)
    total(tensor).backward()
    assert total(tensor).item() == pytest.approx(float(value), rel=1e-12)
    np.testing.assert_allclose(tensor.grad.numpy(), gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        loss.components(z, kind=case[1]), loss.components(tensor, kind=case[1]).detach()
    )


@pytest.mark.parametrize("case", [case for case in CASES if case[0] in LOSSES], ids=str)
def test_single_precision_stays_single_precision(case):
    z = scores(*case).astype(np.float32)
    assert TABLE[case][0].components(z, kind=case[1]).dtype == np.float32


def test_smoothing_moves_the_optimum_to_what_the_docstring_says():
    eta, eps = 0.2, 0.1
    z = np.linspace(-4, 2, 60001)
    f = smoothed(losses.log, eps).components(z)
    best = sigmoid(z[np.argmin(f @ [1, eta])])
    assert best == pytest.approx((1 - eps) * eta + eps / 2, abs=1e-4)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case[0] in LOSSES or "poisson" in case[0]], ids=str
)
def test_the_trivial_score_predicts_the_prior(case):
    loss, _, _ = TABLE[case]
    form = loss.form(case[1])
    for rate in (0.3, 1e-5):
        prior = np.array([0.2, 0.8 - rate, rate]) if case[1] == "histogram" else rate
        prediction = form.predict(loss.trivial_score(prior, kind=case[1])[None])
        prediction = np.exp(prediction) if form.log_space else prediction
        found = prediction[..., -1] if prediction.ndim > 1 else prediction
        np.testing.assert_allclose(found, rate, rtol=1e-6)


def test_shipped_losses_can_be_pickled():
    for loss in LOSSES.values():
        z = np.zeros((2, 3)) if "histogram" in loss.forms else np.zeros(2)
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(loss)).components(z), loss.components(z)
        )


def test_histogram_labels_may_be_class_probabilities():
    z = scores("cross_entropy", "histogram")
    share = np.tile([0.2, 0.3, 0.5], (4, 1))
    np.testing.assert_allclose(
        losses.cross_entropy.value(z, share), [cross(row, share[0]) for row in z]
    )
