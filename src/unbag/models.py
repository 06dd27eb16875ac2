"""A key in, a model out: the paper's networks, as pytrees that map rows of features to scores.

A model is any JAX pytree that can be called as `model(X)` or `model(X, key=...)` (a key means
training: dropout is on) and returns one score per row, or one per class. With
`start=loss.trivial_score(prior)` a model starts at the trivial predictor: last layer zero, output
bias that score. With few bags that decides everything; without it, the usual initialisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class Dense(eqx.Module):
    """X @ W + b."""

    weight: jax.Array
    bias: jax.Array

    def __call__(self, X: jax.Array) -> jax.Array:
        """One row of outputs per row."""
        return X @ self.weight + self.bias


class Network(eqx.Module):
    """Dense layers with ReLU between them, and dropout before the last one."""

    layers: tuple[Dense, ...]
    dropout: float = eqx.field(static=True, default=0.0)
    squeeze: bool = eqx.field(static=True, default=True)

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score (or one per class) for each row."""
        X = X.reshape(X.shape[0], -1)
        for layer in self.layers[:-1]:
            X = jax.nn.relu(layer(X))
        score = self.layers[-1](drop(X, self.dropout, key))
        return score[:, 0] if self.squeeze else score


class Convolutions(eqx.Module):
    """The paper's image network: convolution, 2x2 max pool, convolution, dropout, dense; ReLU after
    both convolutions.

    The paper leaves kernel and padding open; ours are 3x3 and "same".
    """

    first: jax.Array
    first_bias: jax.Array
    second: jax.Array
    second_bias: jax.Array
    head: Network
    dropout: float = eqx.field(static=True, default=0.5)

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score (or one per class) for each row."""
        X = jax.nn.relu(
            _pool(_convolve(X, self.first)) + self.first_bias
        )  # ReLU rises: pooling first is the same
        X = jax.nn.relu(_convolve(X, self.second) + self.second_bias)
        return self.head(drop(X.reshape(X.shape[0], -1), self.dropout, key))


class Embeddings(eqx.Module):
    """One table per column of bucket numbers; their rows side by side go through a network."""

    tables: tuple[jax.Array, ...]
    head: Network

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score (or one per class) for each row."""
        columns = [table[X[:, i]] for i, table in enumerate(self.tables)]
        return self.head(jnp.concatenate(columns, axis=1), key=key)


class Mixed(eqx.Module):
    """Numbers first, then bucket numbers: the buckets' embeddings beside the numbers go through a
    network."""

    tables: tuple[jax.Array, ...]
    head: Network
    numbers: int = eqx.field(static=True, default=0)

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score (or one per class) for each row."""
        X = jnp.asarray(X)
        bucket = X[:, self.numbers :].astype(jnp.int32)
        columns = [table[bucket[:, i]] for i, table in enumerate(self.tables)]
        return self.head(jnp.concatenate([X[:, : self.numbers], *columns], axis=1), key=key)


class Offset(eqx.Module):
    """A model of all columns but the last, which is added to its score."""

    inner: Any

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score for each row."""
        X = jnp.asarray(X)
        return (self.inner(X[:, :-1]) if key is None else self.inner(X[:, :-1], key=key)) + X[:, -1]


def drop(X: jax.Array, rate: float, key: Any) -> jax.Array:
    """Dropout when there is a key."""
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
    """A multilayer perceptron with these hidden widths and ReLU; the key may be a seed.

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
    """The paper's network for Adult: one hidden layer of 32."""
    return mlp(features, (32,), key=key, start=start)


def cnn(
    shape: tuple[int, int, int], *, key: Any, outputs: int = 1, start: Any = None
) -> Convolutions:
    """The paper's network for MNIST and CIFAR-10, for images of (height, width, channels).

    >>> cnn((28, 28, 1), key=0)(np.zeros((2, 28, 28, 1))).shape
    (2,)
    """
    height, width, channels = shape
    keys = jax.random.split(_key(key), 3)
    kernel = lambda k, a, b: _usual(k, (3, 3, a, b), 9 * a)
    flat = (height // 2) * (width // 2) * 64
    head = mlp(flat, (), key=keys[2], outputs=outputs, start=start)
    return Convolutions(
        kernel(keys[0], channels, 32), jnp.zeros(32), kernel(keys[1], 32, 64), jnp.zeros(64), head
    )


def embedding_network(
    buckets: Sequence[int],
    dimensions: Sequence[int],
    *,
    key: Any,
    widths: Sequence[int] = (256, 128, 64),
    start: Any = None,
) -> Embeddings:
    """The paper's network for Criteo: an embedding per column of bucket numbers, then 256-128-64
    with ReLU.

    >>> embedding_network([10, 20], [4, 3], key=0)(np.array([[1, 2], [3, 4]])).shape
    (2,)
    """
    keys = jax.random.split(_key(key), len(buckets) + 1)
    tables = [_usual(k, (n, d), d) for k, n, d in zip(keys, buckets, dimensions, strict=False)]
    return Embeddings(tuple(tables), mlp(sum(dimensions), widths, key=keys[-1], start=start))


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

    >>> mixed_network(1, [10], [4], key=0)(np.array([[0.5, 3], [1.5, 9]], np.float32)).shape
    (2,)
    """
    keys = jax.random.split(_key(key), len(buckets) + 1)
    tables = [_usual(k, (n, d), d) for k, n, d in zip(keys, buckets, dimensions, strict=False)]
    head = mlp(numbers + sum(dimensions), widths, key=keys[-1], outputs=outputs, start=start)
    return Mixed(tuple(tables), head, numbers)


def with_offset(model: Any) -> Offset:
    """A model whose rows end with an offset, such as the log of an exposure: a column that is added
    to the score as it is, with nothing to learn.

    >>> X = np.array([[1.0, np.log(2)], [1.0, 0.0]], np.float32)  # one feature; exposures of 2 and 1
    >>> with_offset(linear(1, key=0, start=np.log(3)))(X).round(2).tolist()  # log of 6 and of 3 expected counts
    [1.7899999618530273, 1.100000023841858]
    """
    return Offset(model)


def _key(key: Any) -> Any:
    return jax.random.key(key) if isinstance(key, int | np.integer) else key


def _dense(key: Any, inputs: int, outputs: int) -> Dense:
    return Dense(_usual(key, (inputs, outputs), inputs), jnp.zeros(outputs))


def _usual(key: Any, shape: tuple[int, ...], fan_in: int) -> jax.Array:
    """Flax's default: a truncated normal of variance 1 / fan-in."""
    return jax.random.truncated_normal(key, -2, 2, shape) * (fan_in**-0.5 / 0.87962566103423978)


def _trivial(layer: Dense, start: Any) -> Dense:
    """Zero weights, and the bias that is the start."""
    bias = jnp.broadcast_to(jnp.asarray(start, layer.bias.dtype), layer.bias.shape)
    return Dense(jnp.zeros_like(layer.weight), bias)
