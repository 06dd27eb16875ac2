"""Every loss x every law, and one test that says that the table is complete."""

import pickle

import numpy as np
import pytest

from unbag import losses
from unbag.losses import LOSSES, from_callable, poisson_loss, smoothed

sigmoid = lambda z: 1 / (1 + np.exp(-z))
softmax = lambda z: np.exp(z) / np.exp(z).sum()


def one_hot(y, c=3):
    return np.eye(c)[int(y)]


def smooth(y, eps=0.1):
    return (1 - eps) * y + eps / 2


def cross(z, t):
    return -np.sum(t * np.log(softmax(z)))


# (loss, kind): the loss of one instance written by hand, and its labels
TABLE = {
    ("log", "binary"): (
        losses.log,
        lambda z, y: -y * np.log(sigmoid(z)) - (1 - y) * np.log(1 - sigmoid(z)),
        (0, 1),
    ),
    ("square", "binary"): (losses.square, lambda z, y: (y - sigmoid(z)) ** 2, (0, 1)),
    ("square", "total"): (losses.square, lambda z, y: (y - z) ** 2 - y**2, (0, 1, 4)),
    ("poisson", "total"): (losses.poisson, lambda z, y: np.exp(z) - y * z, (0, 1, 4)),
    ("poisson", "binary"): (losses.poisson, lambda z, y: np.exp(z) - y * z, (0, 1)),
    ("poisson(softplus)", "total"): (
        poisson_loss(link="softplus"),
        lambda z, y: np.log1p(np.exp(z)) - y * np.log(np.log1p(np.exp(z))),
        (0, 1, 4),
    ),
    ("poisson(cap=5)", "total"): (
        poisson_loss(cap=5),
        lambda z, y: 5 * sigmoid(z) - y * np.log(5 * sigmoid(z)),
        (0, 1, 5),
    ),
    ("cross_entropy", "histogram"): (
        losses.cross_entropy,
        lambda z, y: cross(z, one_hot(y)),
        (0, 1, 2),
    ),
    ("brier", "histogram"): (
        losses.brier,
        lambda z, y: np.sum((one_hot(y) - softmax(z)) ** 2) / 3,
        (0, 1, 2),
    ),
    ("smoothed(log, 0.1)", "binary"): (
        smoothed(losses.log, 0.1),
        lambda z, y: -smooth(y) * np.log(sigmoid(z)) - (1 - smooth(y)) * np.log(1 - sigmoid(z)),
        (0, 1),
    ),
    ("smoothed(square, 0.1)", "binary"): (
        smoothed(losses.square, 0.1),
        lambda z, y: 0.95 * (y - sigmoid(z)) ** 2 + 0.05 * (1 - y - sigmoid(z)) ** 2,
        (0, 1),
    ),
    ("smoothed(cross_entropy, 0.3)", "histogram"): (
        smoothed(losses.cross_entropy, 0.3),
        lambda z, y: cross(z, 0.7 * one_hot(y) + 0.1),
        (0, 1, 2),
    ),
    ("absolute", "binary"): (
        from_callable(lambda h, y: abs(y - h)),
        lambda z, y: abs(y - z),
        (0, 1),
    ),
    ("cubic", "histogram"): (
        from_callable(lambda h, y: (h - y) ** 3, labels=(0, 1, 2)),
        lambda z, y: (z - y) ** 3,
        (0, 1, 2),
    ),
    ("gamma", "total"): (
        from_callable(lambda h, y: y * h - h**2, labels=(0, 1, 2), affine=True),
        lambda z, y: y * z - z**2,
        (0, 1, 2),
    ),
}
CASES = list(TABLE)


def scores(name, kind, count=4, seed=0):
    per_class = kind == "histogram" and "cubic" not in name
    return np.random.default_rng(seed).normal(size=(count, 3) if per_class else count)


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
    soft = poisson_loss(link="softplus").components(np.array([1e4, -1e4]), kind="total")
    np.testing.assert_allclose(soft, [[1e4, -np.log(1e4)], [0, 1e4]])
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
        gradient = np.asarray(jax.grad(total)(jax.numpy.asarray(z)))
    step = 1e-6
    for where in np.ndindex(z.shape):
        up, down = z.copy(), z.copy()
        up[where] += step
        down[where] -= step
        assert gradient[where] == pytest.approx((total(up) - total(down)) / (2 * step), abs=1e-7)


def test_the_gradient_at_score_zero_is_right_where_models_start():
    import jax

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
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
        gradient = jax.grad(lambda s: TABLE[case][0].components(s, kind=case[1]).sum())(
            jax.numpy.asarray(score)
        )
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pytorch_gives_the_same_components_and_gradients_as_jax(case):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import jax

    loss, _, _ = TABLE[case]
    z = scores(*case, seed=3)
    total = lambda s: (loss.components(s, kind=case[1]) ** 2).sum()
    with jax.enable_x64(True):
        value, gradient = jax.value_and_grad(total)(jax.numpy.asarray(z))
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
    prior = np.array([0.2, 0.3, 0.5]) if case[1] == "histogram" else 0.3
    form = loss.form(case[1])
    prediction = form.predict(loss.trivial_score(prior, kind=case[1])[None])
    prediction = np.exp(prediction) if form.log_space else prediction
    np.testing.assert_allclose(
        prediction[..., -1] if prediction.ndim > 1 else prediction, np.ravel(prior)[-1], rtol=1e-6
    )


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


def total_only():
    return losses.Loss("counts", {"total": losses.poisson.forms["total"]})


MESSAGES = [
    (
        lambda: losses.cross_entropy.components(np.ones((1, 3)), kind="total"),
        "A loss for total counts must be affine in the label (loss = f1 + y f2), because only "
        "the sum of the counts in a bag is known: cross_entropy is not. Use square or poisson, "
        "or report full histograms.",
    ),
    (
        lambda: losses.brier.form("total"),
        "A loss for total counts must be affine in the label (loss = f1 + y f2), because only "
        "the sum of the counts in a bag is known: brier is not. Use square or poisson, or "
        "report full histograms.",
    ),
    (
        lambda: losses.log.form("histogram"),
        (
            "A loss for histogram reports must give one component per class: log does not. Use "
            "cross_entropy or brier."
        ),
    ),
    (
        lambda: losses.log.form("ternary"),
        (
            "A kind of report must be one of binary, total, histogram: 'ternary' came. Choose one "
            "of these."
        ),
    ),
    (
        lambda: from_callable(lambda h, y: h * y).trivial_score(0.5),
        "A loss must know the score that predicts a prior, to start from it: your loss does "
        "not. Start from the usual initialisation.",
    ),
    (
        lambda: losses.brier.form("binary"),
        "A loss for binary reports must take one score per instance and labels 0 and 1: brier "
        "does not. Use log or square or poisson.",
    ),
    (
        lambda: smoothed(losses.log, 1.5),
        "Smoothing must lie in [0, 1): 1.5 came. The paper uses 0.1.",
    ),
    (
        lambda: smoothed(total_only()),
        "Smoothing must have classes to smooth over: counts has only counts. Leave it out.",
    ),
    (
        lambda: poisson_loss(link="log"),
        "A link must be one of ['exp', 'softplus']: 'log' came. Choose one of these.",
    ),
    (
        lambda: poisson_loss(cap=0),
        "A cap must be positive: 0 came. Give the largest count one instance can have.",
    ),
    (
        lambda: from_callable(lambda h, y: h, labels=(1, 2)),
        (
            "Labels must be 0, 1, ..., c - 1 with c at least 2: (1.0, 2.0) came. Number your "
            "classes so."
        ),
    ),
    (
        lambda: from_callable(lambda h, y: (h - y) ** 2, (0, 1, 2), affine=True).components(
            np.array([0.5]), kind="total"
        ),
        "A loss declared affine must lie on a line through its values at 0 and 1: your loss at "
        "label 2 is 2.25, the line says 0.25. Use full histograms instead.",
    ),
    (
        lambda: from_callable(lambda h, y: abs(y - h), affine=True).components(
            np.array([0.25]), kind="total"
        ),
        "A loss declared affine must lie on a line through its values at 0 and 1: your loss at "
        "label 2 is 1.75, the line says 1.25. Use full histograms instead.",
    ),
]


@pytest.mark.parametrize("make, message", MESSAGES, ids=range(len(MESSAGES)))
def test_wrong_requests_get_a_clear_answer(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message
