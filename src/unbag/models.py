"""The paper's networks, as pytrees that map rows of features to scores.

A model is any JAX pytree that can be called as `model(X)` or `model(X, key=...)` (a key means
training: dropout is on) and returns one score per row, or one per class. With
`start=loss.trivial_score(prior)` a model starts at the trivial predictor: last layer zero, output
bias that score. With few bags that decides everything; without it, the usual initialisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

STATIC = {"static": True}
"""Of a field that is no parameter."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Dense:
    """X @ W + b.

    Parameters
    ----------
    weight : array of (inputs, outputs)
        W.
    bias : array of outputs
        b.
    """

    weight: jax.Array
    bias: jax.Array

    def __call__(self, X: jax.Array) -> jax.Array:
        """One row of outputs per row."""
        return X @ self.weight + self.bias


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Network:
    """Dense layers with ReLU between them, and dropout before the last one.

    Parameters
    ----------
    layers : tuple of Dense
        One or more.
    dropout : float
        The share of what is dropped before the last layer.
    squeeze : bool
        Whether there is one score per row, not a row of one.
    turned : bool
        Whether activations have a unit in each row, see `side_by_side`.
    """

    layers: tuple[Dense, ...]
    dropout: float = field(metadata=STATIC, default=0.0)
    squeeze: bool = field(metadata=STATIC, default=True)
    turned: bool = field(metadata=STATIC, default=False)

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score (or one per class) for each row."""
        X = X.reshape(X.shape[0], -1)
        if self.turned:
            return self._by_units(X.T, key)
        for layer in self.layers[:-1]:
            X = jax.nn.relu(layer(X))
        score = self.layers[-1](drop(X, self.dropout, key))
        if self.squeeze:
            return score[:, 0]
        return score

    def _by_units(self, X: jax.Array, key: Any) -> jax.Array:
        *hidden, last = self.layers
        for layer in hidden:
            X = jax.nn.relu(layer.weight.T @ X + layer.bias[:, None])
        score = last.weight.T @ drop(X.T, self.dropout, key).T + last.bias[:, None]
        if self.squeeze:
            return score[0]
        return score.T


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Convolutions:
    """The paper's image network: convolution, 2x2 max pool, convolution, dropout, dense; ReLU after
    both convolutions.

    The paper leaves kernel and padding open; ours are 3x3 and "same".

    Parameters
    ----------
    first, second : array of (height, width, inputs, outputs)
        Kernels.
    first_bias, second_bias : array
        Of the convolutions.
    head : Network
        From all outputs to scores.
    dropout : float
        Before the head.
    """

    first: jax.Array
    first_bias: jax.Array
    second: jax.Array
    second_bias: jax.Array
    head: Network
    dropout: float = field(metadata=STATIC, default=0.5)

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score (or one per class) for each row."""
        # ReLU and the bias are monotone, so pooling first gives the same with less work
        X = jax.nn.relu(_pool(_convolve(X, self.first)) + self.first_bias)
        X = jax.nn.relu(_convolve(X, self.second) + self.second_bias)
        return self.head(drop(X.reshape(X.shape[0], -1), self.dropout, key))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Mixed:
    """Numbers first, then bucket numbers: the buckets' embeddings beside the numbers go through a
    network.

    Parameters
    ----------
    tables : tuple of array
        Of (buckets, dimensions).
    head : Network
        From numbers and embeddings to scores.
    numbers : int
        How many of the columns are numbers.
    """

    tables: tuple[jax.Array, ...]
    head: Network
    numbers: int = field(metadata=STATIC, default=0)

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score (or one per class) for each row."""
        X = jnp.asarray(X)
        bucket = X[:, self.numbers :].astype(jnp.int32)
        rows = [table[bucket[:, i]] for i, table in enumerate(self.tables)]
        columns = [X[:, : self.numbers], *rows]
        return self.head(jnp.concatenate(columns, axis=1), key=key)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Offset:
    """A model of all columns but the last, which is added to its score."""

    inner: Any

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score for each row."""
        X, options = jnp.asarray(X), {}
        if key is not None:  # a model without dropout need not take one
            options["key"] = key
        return self.inner(X[:, :-1], **options) + X[:, -1]


def drop(X: jax.Array, rate: float, key: Any) -> jax.Array:
    """Dropout when there is a key.

    Parameters
    ----------
    X : array
        Activations.
    rate : float
        The share that is dropped; the others grow by as much.
    key : array, optional
        Of JAX's random numbers.
    """
    if key is None or rate == 0:
        return X
    return jnp.where(jax.random.bernoulli(key, 1 - rate, X.shape), X / (1 - rate), 0.0)


def _convolve(X: jax.Array, kernel: jax.Array) -> jax.Array:
    """A "same" convolution of odd width as patches times a matrix.

    On a CPU the library's convolution is no faster by itself, and many times slower once a sweep
    maps it over runs: see benchmarks/cnn.py.
    """
    height, width = X.shape[1:3]
    reach = [(size // 2, size // 2) for size in kernel.shape[:2]]
    padded = jnp.pad(X, ((0, 0), *reach, (0, 0)))
    shifted = [padded[:, i : i + height, j : j + width] for i, j in np.ndindex(kernel.shape[:2])]
    return jnp.concatenate(shifted, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])


def _pool(X: jax.Array) -> jax.Array:
    """The largest of each 2x2 window; an odd last row or column is left out."""
    rows, height, width, channels = X.shape
    even = X[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(rows, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def linear(features: int, *, key: Any, outputs: int = 1, start: Any = None) -> Network:
    """A linear model.

    Parameters
    ----------
    features : int
        Columns of X.
    key : int or array
        Of JAX's random numbers; a seed will do.
    outputs : int
        Scores per row.
    start : float or array, optional
        The score to start with, `loss.trivial_score(prior)`; by default the usual initialisation.

    >>> linear(3, key=0, start=-1.5)(np.ones((2, 3))).tolist()
    [-1.5, -1.5]
    """
    return mlp(features, (), key=key, outputs=outputs, start=start)


def mlp(
    features: int,
    widths: Sequence[int],
    *,
    key: Any,
    outputs: int = 1,
    start: Any = None,
    dropout: float = 0.0,
) -> Network:
    """A multilayer perceptron with ReLU.

    Parameters
    ----------
    features : int
        Columns of X.
    widths : sequence of int
        Of the hidden layers.
    key : int or array
        Of JAX's random numbers; a seed will do.
    outputs : int
        Scores per row.
    start : float or array, optional
        The score to start with, `loss.trivial_score(prior)`; by default the usual initialisation.
    dropout : float
        Before the last layer.

    >>> mlp(3, (32,), key=0)(np.ones((2, 3))).shape
    (2,)
    """
    sizes = (features, *widths, outputs)
    keys = jax.random.split(_key(key), len(sizes) - 1)
    layers = [_dense(k, a, b) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)]
    if start is not None:
        layers[-1] = _trivial(layers[-1], start)
    return Network(tuple(layers), dropout, outputs == 1)


def adult_network(features: int = 108, *, key: Any, start: Any = None) -> Network:
    """The paper's network for Adult: one hidden layer of 32.

    Parameters
    ----------
    features : int
        Columns of X.
    key : int or array
        Of JAX's random numbers; a seed will do.
    start : float or array, optional
        The score to start with, `loss.trivial_score(prior)`; by default the usual initialisation.
    """
    return mlp(features, (32,), key=key, start=start)


def cnn(
    shape: tuple[int, int, int], *, key: Any, outputs: int = 1, start: Any = None
) -> Convolutions:
    """The paper's network for MNIST and CIFAR-10.

    Parameters
    ----------
    shape : tuple of int
        (height, width, channels) of the images.
    key : int or array
        Of JAX's random numbers; a seed will do.
    outputs : int
        Scores per row.
    start : float or array, optional
        The score to start with, `loss.trivial_score(prior)`; by default the usual initialisation.

    >>> cnn((28, 28, 1), key=0)(np.zeros((2, 28, 28, 1))).shape
    (2,)
    """
    height, width, channels = shape
    keys = jax.random.split(_key(key), 3)
    first = _usual(keys[0], (3, 3, channels, 32), 9 * channels)
    second = _usual(keys[1], (3, 3, 32, 64), 9 * 32)
    flat = (height // 2) * (width // 2) * 64
    head = mlp(flat, (), key=keys[2], outputs=outputs, start=start)
    return Convolutions(first, jnp.zeros(32), second, jnp.zeros(64), head)


def embedding_network(
    buckets: Sequence[int],
    dimensions: Sequence[int],
    *,
    key: Any,
    widths: Sequence[int] = (256, 128, 64),
    start: Any = None,
) -> Mixed:
    """The paper's network for Criteo: an embedding per column of bucket numbers, then 256-128-64
    with ReLU.

    Parameters
    ----------
    buckets : sequence of int
        Rows of each column's table.
    dimensions : sequence of int
        Of each column's embedding.
    key : int or array
        Of JAX's random numbers; a seed will do.
    widths : sequence of int
        Of the hidden layers.
    start : float or array, optional
        The score to start with, `loss.trivial_score(prior)`; by default the usual initialisation.

    >>> embedding_network([10, 20], [4, 3], key=0)(np.array([[1, 2], [3, 4]])).shape
    (2,)
    """
    return mixed_network(0, buckets, dimensions, key=key, widths=widths, start=start)


def mixed_network(
    numbers: int,
    buckets: Sequence[int],
    dimensions: Sequence[int],
    *,
    key: Any,
    widths: Sequence[int] = (32,),
    outputs: int = 1,
    start: Any = None,
) -> Mixed:
    """A perceptron on numbers and on embeddings of bucket numbers, which are the last columns of X.

    For a `FeaturePlan`: mixed_network(plan.numbers, plan.buckets, plan.dimensions, key=0).

    Parameters
    ----------
    numbers : int
        Columns that are numbers, which come first.
    buckets : sequence of int
        Rows of each column's table.
    dimensions : sequence of int
        Of each column's embedding.
    key : int or array
        Of JAX's random numbers; a seed will do.
    widths : sequence of int
        Of the hidden layers.
    outputs : int
        Scores per row.
    start : float or array, optional
        The score to start with, `loss.trivial_score(prior)`; by default the usual initialisation.

    >>> mixed_network(1, [10], [4], key=0)(np.array([[0.5, 3], [1.5, 9]], np.float32)).shape
    (2,)
    """
    *keys, rest = jax.random.split(_key(key), len(buckets) + 1)
    shapes = zip(keys, buckets, dimensions, strict=True)
    tables = tuple(_usual(k, (n, d), d) for k, n, d in shapes)
    head = mlp(numbers + sum(dimensions), widths, key=rest, outputs=outputs, start=start)
    return Mixed(tables, head, numbers)


def side_by_side(model: Any) -> Any:
    """The model as it is mapped over parameters: networks of given rows have a unit in each row.

    Rows that networks share are then one wide product, and nothing is transposed between it and the
    next, which takes up to 40% less time. One network alone takes longer so, and so do heads, whose
    rows are each network's own.
    """

    def turned(node: Any) -> Any:
        if isinstance(node, Network) and len(node.layers) > 1:
            return replace(node, turned=True)
        return node

    whole = (Network, Mixed, Convolutions)
    return jax.tree.map(turned, model, is_leaf=lambda node: isinstance(node, whole))


def with_offset(model: Any) -> Offset:
    """A model whose rows end with an offset, such as the log of an exposure: a column that is added
    to the score as it is, with nothing to learn.

    One feature and exposures of 2 and 1; the model predicts 3 per unit, so 6 and 3:

    >>> X = np.array([[1.0, np.log(2)], [1.0, 0.0]], np.float32)
    >>> np.exp(with_offset(linear(1, key=0, start=np.log(3)))(X)).round(2).tolist()
    [6.0, 3.0]
    """
    return Offset(model)


def _key(key: Any) -> Any:
    if isinstance(key, int | np.integer):
        return jax.random.key(key)
    return key


def _dense(key: Any, inputs: int, outputs: int) -> Dense:
    return Dense(_usual(key, (inputs, outputs), inputs), jax.device_put(np.zeros(outputs, "f4")))


@partial(jax.jit, static_argnums=(1, 2))
def _usual(key: Any, shape: tuple[int, ...], fan_in: int) -> jax.Array:
    """Flax's default: a truncated normal of variance 1 / fan-in."""
    return jax.random.truncated_normal(key, -2, 2, shape) * (fan_in**-0.5 / 0.87962566103423978)


def _trivial(layer: Dense, start: Any) -> Dense:
    """Zero weights, and the bias that is the start."""
    bias = np.broadcast_to(np.asarray(start, layer.bias.dtype), layer.bias.shape)
    weight = np.zeros(layer.weight.shape, layer.weight.dtype)
    return Dense(*jax.device_put((weight, bias)))  # `jnp` would compile a program for each shape
