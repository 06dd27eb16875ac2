"""PyTorch's convolutions under JAX's training: the same network."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import unbag
from unbag import models
from unbag.lab import _convolution
from unbag.lab._catalogue import MODELS

pytest.importorskip("torch")

SHAPES = [(28, 28, 1), (9, 7, 3)]  # odd sides: the pool leaves a row and a column out


def networks(shape, images=150):
    """Both with one start, images that fill more than one block, and weights of a signed loss."""
    rng = np.random.default_rng(0)
    X = jnp.asarray(rng.uniform(size=(images, *shape)), jnp.float32)
    weight = jnp.asarray(rng.normal(size=images), jnp.float32)
    return models.cnn(shape, key=1), MODELS["cnn"](shape, key=1), X, weight


@eqx.filter_jit
def scores(model, X, key=None):
    return model(X, key=key)


def objective(model, X, weight, key=None):
    return jnp.sum(jax.nn.softplus(model(X, key=key)) * weight)


gradient = eqx.filter_jit(jax.grad(objective))


def near(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_and_gradients_are_those_of_jax(shape):
    ours, fast, X, weight = networks(shape)
    assert isinstance(fast, _convolution.TorchConvolutions)
    near(scores(ours, X), scores(fast, X))
    near(gradient(ours, X, weight), gradient(fast, X, weight))


def test_a_sweep_maps_over_runs():
    ours, fast, X, weight = networks(SHAPES[1])
    each = jax.jit(jax.vmap(jax.grad(objective), in_axes=(None, 0, None)))
    rows = jnp.stack([X, X[::-1]])
    near(each(ours, rows, weight), each(fast, rows, weight))


def test_dropout_is_the_keys_and_its_gradient_that_of_the_scores():
    _, fast, X, weight = networks(SHAPES[1])
    key = jax.random.key(3)
    near(scores(fast, X, key), scores(fast, X, key))
    assert np.abs(scores(fast, X, key) - scores(fast, X, jax.random.key(4))).max() > 1e-3
    slopes = gradient(fast, X, weight, key)
    # Along a direction of the head, in which scores are linear, the slope is a difference.
    head = fast.head.layers[0].weight
    direction = jnp.asarray(np.random.default_rng(1).normal(size=head.shape), jnp.float32)

    def moved(step):
        model = eqx.tree_at(lambda m: m.head.layers[0].weight, fast, head + step * direction)
        return objective(model, X, weight, key)

    slope = float(jnp.sum(slopes.head.layers[0].weight * direction))
    assert (moved(0.01) - moved(-0.01)) / 0.02 == pytest.approx(slope, rel=1e-2)


def test_dropout_leaves_the_mean_of_activations():
    mask = _convolution._mask(np.random.default_rng(0), (1000, 100), 0.5)
    assert set(np.unique(mask)) == {0, 2}
    assert mask.mean() == pytest.approx(1, abs=0.02)
    mask = _convolution._mask(np.random.default_rng(0), (1000, 100), 0.2)
    assert mask.mean() == pytest.approx(1, abs=0.02)
    assert (mask == 0).mean() == pytest.approx(0.2, abs=0.02)


def test_what_is_no_longer_kept_is_made_again():
    _, fast, X, weight = networks(SHAPES[1])
    key = jax.random.key(3)
    value, pull = jax.vjp(lambda model: objective(model, X, weight, key), fast)
    kept = pull(jnp.ones_like(value))
    value, pull = jax.vjp(lambda model: objective(model, X, weight, key), fast)
    _convolution._LAST.clear()
    near(kept, pull(jnp.ones_like(value)))


def test_steps_in_bfloat16_are_those_of_float32_to_its_rounding_and_evaluation_is_exact():
    _, fast, X, weight = networks(SHAPES[1])
    rough = MODELS["cnn-bfloat16"](SHAPES[1], key=1)
    key = jax.random.key(3)
    np.testing.assert_array_equal(scores(rough, X), scores(fast, X))
    gap = np.asarray(scores(rough, X, key) - scores(fast, X, key))
    size = np.abs(np.asarray(scores(fast, X, key))).max()
    assert 0 < np.abs(gap).max() < 2**-6 * size  # 8 bits, a few roundings
    slopes, exact = (jax.tree.leaves(gradient(m, X, weight**2, key)) for m in (rough, fast))
    for own, other in zip(slopes, exact, strict=True):
        assert own.dtype == jnp.float32
        assert np.linalg.norm(own - other) < 0.03 * np.linalg.norm(other)


def test_bfloat16_without_pytorch_or_for_several_classes_is_refused(monkeypatch):
    words = "The model cnn-bfloat16 must have PyTorch's convolutions on a CPU, and one output"
    with pytest.raises(unbag.Refused, match=words):
        MODELS["cnn-bfloat16"](SHAPES[0], key=0, outputs=10)
    monkeypatch.setattr(_convolution, "in_torch", lambda: False)
    with pytest.raises(unbag.Refused, match=words):
        MODELS["cnn-bfloat16"](SHAPES[0], key=0)


def test_one_thread_stays_in_jax(monkeypatch):
    """It would wait for itself: a process on one core, or on a Ray worker with one CPU, hung."""
    assert _convolution.in_torch()
    monkeypatch.setenv("NPROC", "1")
    assert not _convolution.in_torch()
    monkeypatch.delenv("NPROC")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0}, raising=False)
    assert not _convolution.in_torch()


def test_several_classes_stay_in_jax():
    assert type(MODELS["cnn"](SHAPES[0], key=0, outputs=10)) is models.Convolutions
