from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unbag import losses, models, random_bags
from unbag.training import train

shape_of = eqx.filter_eval_shape  # of arrays the shapes only: nothing is compiled


def parameters(model):
    return sum(leaf.size for leaf in jax.tree.leaves(model) if hasattr(leaf, "size"))


@pytest.mark.parametrize(
    "make, X, expected",
    [
        (partial(models.linear, 7), np.ones((2, 7)), 8),
        (partial(models.mlp, 7, (5, 4)), np.ones((2, 7)), 40 + 24 + 5),
        (models.adult_network, np.ones((2, 108)), 108 * 32 + 32 + 33),
        (partial(models.mlp, 21, (300,) * 4), np.ones((2, 21)), 22 * 300 + 3 * 301 * 300 + 301),
        (
            partial(models.cnn, (28, 28, 1)),
            np.ones((2, 28, 28, 1)),
            9 * 32 + 32 + 9 * 32 * 64 + 64 + 14 * 14 * 64 + 1,
        ),
        (
            partial(models.cnn, (32, 32, 3)),
            np.ones((2, 32, 32, 3)),
            27 * 32 + 32 + 9 * 32 * 64 + 64 + 16 * 16 * 64 + 1,
        ),
        (
            partial(models.embedding_network, [40, 10], [10, 3]),
            np.array([[0, 9], [39, 0]]),
            400 + 30 + 14 * 256 + 257 * 128 + 129 * 64 + 65,
        ),
    ],
    ids=["linear", "mlp", "adult", "higgs", "mnist", "cifar", "criteo"],
)
def test_the_networks_are_the_papers(make, X, expected):
    model = shape_of(make, key=0)
    assert parameters(model) == expected
    assert shape_of(model, X).shape == (2,)


def test_classes_have_a_score_each():
    network = shape_of(models.mlp, 7, (5,), key=0, outputs=3)
    assert shape_of(network, np.ones((2, 7))).shape == (2, 3)
    network = shape_of(models.cnn, (8, 8, 1), key=0, outputs=10)
    assert shape_of(network, np.ones((2, 8, 8, 1))).shape == (2, 10)


def test_a_start_is_the_trivial_predictor():
    X = np.random.default_rng(0).normal(size=(5, 7))
    start = losses.log.trivial_score(0.2)
    np.testing.assert_allclose(models.mlp(7, (5,), key=0, start=start)(X), np.log(0.25), rtol=1e-6)
    shares = losses.cross_entropy.trivial_score([0.2, 0.3, 0.5])
    score = models.mlp(7, (5,), key=0, outputs=3, start=shares)(X)
    np.testing.assert_allclose(jax.nn.softmax(score), np.tile([0.2, 0.3, 0.5], (5, 1)), rtol=1e-5)


def test_dropout_needs_a_key():
    model, X = models.mlp(7, (50,), key=0, dropout=0.5), np.ones((3, 7))
    np.testing.assert_array_equal(model(X), model(X))
    assert not np.allclose(model(X, key=jax.random.key(1)), model(X))
    keys = jax.random.split(jax.random.key(0), 300)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: model(X, key=key)))(keys))
    error = drawn.std(axis=0) / np.sqrt(len(keys))
    assert (np.abs(drawn.mean(axis=0) - model(X)) < 4 * error).all()


def test_the_convolution_is_a_convolution():
    """Against the sum written out, at an inner pixel."""
    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(1, 6, 6, 2)), rng.normal(size=(3, 3, 2, 4))
    out = models._convolve(jnp.asarray(X), jnp.asarray(kernel))
    expected = np.einsum("ijc,ijco->o", X[0, 1:4, 2:5], kernel)
    np.testing.assert_allclose(out[0, 2, 3], expected, rtol=1e-4)


def library_network(model, X):
    """The same network with the library's convolution and window."""
    convolve = lambda X, kernel: jax.lax.conv_general_dilated(
        X, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    X = jax.nn.relu(convolve(X, model.first) + model.first_bias)
    X = jax.lax.reduce_window(X, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return model.head(jax.nn.relu(convolve(X, model.second) + model.second_bias))


@pytest.mark.parametrize("shape", [(8, 8, 1), (7, 9, 3)])
def test_patches_times_a_matrix_are_the_librarys_convolution(shape):
    """Values and gradients, with background of one colour, where all of a window is level; odd
    sides too."""
    rng = np.random.default_rng(2)
    X = jnp.asarray(np.maximum(rng.normal(size=(3, *shape)), 0), jnp.float32).at[:, :4].set(0)
    model = models.cnn(shape, key=0)
    bias = jnp.asarray(rng.normal(size=32), jnp.float32)
    model = eqx.tree_at(lambda m: m.first_bias, model, bias)
    square = lambda network: jax.jit(jax.value_and_grad(lambda m: jnp.sum(network(m, X) ** 2)))(
        model
    )
    ours, theirs = square(lambda m, X: m(X)), square(library_network)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())


def test_images_and_buckets_are_learned_from_bags():
    rng = np.random.default_rng(1)
    images = rng.normal(size=(256, 8, 8, 1)).astype(np.float32)
    y = images.mean(axis=(1, 2, 3)) > 0
    run = train(
        models.cnn((8, 8, 1), key=0),
        random_bags(images, y, size=4, seed=0),
        learning_rate=0.01,
        epochs=5,
    )
    assert np.isfinite(run.history["train"]).all()
    buckets = rng.integers(0, 5, size=(2000, 2))
    bags = random_bags(buckets, buckets[:, 0] > 2, size=4, seed=0)
    model = models.embedding_network([5, 5], [3, 3], key=0, widths=(8,))
    run = train(model, bags, learning_rate=0.03, epochs=15, test=(buckets, buckets[:, 0] > 2))
    assert run.history["test_auc"][-1] > 0.95


@pytest.mark.parametrize(
    "make, columns",
    [
        (partial(models.mlp, 6, (5, 4), dropout=0.5), 6),
        (partial(models.mlp, 6, (5,), outputs=3), 6),
        (partial(models.linear, 6), 6),
        (lambda key: models.with_offset(models.mlp(6, (5,), key=key)), 7),
        (partial(models.mixed_network, 5, [9], [4]), 6),
    ],
)
def test_networks_side_by_side_have_the_scores_of_each(make, columns):
    X = np.random.default_rng(0).integers(0, 9, (20, columns)).astype(np.float32)
    key = jax.random.key(1)
    for model in (make(key=2), make(key=3)):
        np.testing.assert_allclose(
            models.side_by_side(model)(X, key=key), model(X, key=key), rtol=1e-5, atol=1e-5
        )
