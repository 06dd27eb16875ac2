"""One array code for NumPy, JAX and PyTorch: shapes as types, and sums by bag.

Whatever is linear in the labels is written once, for all three frameworks, with the few functions
below. The array that carries a gradient (the scores) decides the framework; the rest is converted
to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import array_api_compat as compat
import numpy as np
from jaxtyping import Float, Integer, Shaped

PerBag = Shaped[Any, "bags"]
PerBagComponent = Float[Any, "bags components"]
BagOfInstance = Integer[Any, "instances"]
PerInstanceComponent = Float[Any, "instances components"]
Weights = Float[Any, "rows components"]
NUMPY: Any = np
if not hasattr(np, "astype"):  # NumPy before 2.1; to ask for the namespace imports f2py
    NUMPY = compat.array_namespace(np.empty(0))
BLOCK = 2**16
"""Rows that are worked on together where a pass over all of them would make large arrays."""


def blocks(rows: int) -> Iterator[slice]:
    """Rows in blocks that stay in the CPU's cache; fresh memory for all rows costs more than the
    work on them.

    >>> list(blocks(2**16 + 1))
    [slice(0, 65536, None), slice(65536, 65537, None)]
    """
    return (slice(start, min(start + BLOCK, rows)) for start in range(0, rows, BLOCK))


def namespace(array: Any) -> Any:
    """The array-API namespace of an array: `numpy`, `jax.numpy` or PyTorch's."""
    if is_numpy(array):  # asking all frameworks in turn takes longer than a sum over a small bag
        return NUMPY
    return compat.array_namespace(array)


def like(array: Any, value: Any) -> Any:
    """`value` as an array of the same framework, device and floating type as `array`.

    >>> like(np.ones(2, np.float32), [1, 2]).dtype
    dtype('float32')
    """
    xp = namespace(array)
    if compat.is_torch_array(array):
        return xp.asarray(value, dtype=array.dtype, device=array.device)
    if compat.is_array_api_obj(value) and namespace(value) is xp:
        return xp.astype(value, array.dtype)
    return xp.asarray(value, dtype=array.dtype)


def index_like(array: Any, index: Any) -> Any:
    """Whole numbers as an index into arrays of the same framework and device as `array`."""
    xp = namespace(array)
    if compat.is_torch_array(array):
        return xp.asarray(index, dtype=xp.int64, device=array.device)
    return xp.asarray(index)


def is_numpy(array: Any) -> bool:
    """Whether the values can be looked at: never true of an array under `jit`."""
    return isinstance(array, np.ndarray)


def constant(array: Any) -> Any:
    """The array without its gradient."""
    if compat.is_jax_array(array):
        import jax

        return jax.lax.stop_gradient(array)
    if compat.is_torch_array(array):
        return array.detach()
    return array


def sum_by(index: BagOfInstance, values: Any, count: int) -> Any:
    """Sums of the rows of `values` that share an index, for the indices 0 to `count` - 1.

    >>> sum_by(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]]), 2)
    array([[4.],
           [2.]])
    """
    numpy = is_numpy(values) and is_numpy(index)
    if not numpy and (compat.is_jax_array(values) or compat.is_jax_array(index)):
        import jax.numpy as jnp

        return jnp.zeros((count, *values.shape[1:]), values.dtype).at[index].add(values)
    if compat.is_torch_array(values):
        return values.new_zeros((count, *values.shape[1:])).index_add(0, index, values)
    if values.ndim == 1:
        sums = np.bincount(index, weights=values, minlength=count)
        return sums.reshape(count).astype(values.dtype, copy=False)
    columns = values.reshape(len(values), -1).T
    sums = [np.bincount(index, weights=column, minlength=count) for column in columns]
    return np.stack(sums, axis=1).reshape(count, *values.shape[1:]).astype(values.dtype, copy=False)


def max_by(index: BagOfInstance, values: Any, count: int) -> Any:
    """Largest of the rows of `values` that share an index, column by column, without a gradient.

    >>> max_by(np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), 2)
    array([3., 2.])
    """
    values = constant(values)
    if compat.is_jax_array(values) or compat.is_jax_array(index):
        import jax.numpy as jnp

        return jnp.full((count, *values.shape[1:]), -jnp.inf, values.dtype).at[index].max(values)
    if compat.is_torch_array(values):
        start = values.new_full((count, *values.shape[1:]), -float("inf"))
        where = index.reshape((-1,) + (1,) * (values.ndim - 1)).expand_as(values)
        return start.scatter_reduce(0, where, values, "amax")
    largest = np.full((count, *values.shape[1:]), -np.inf, values.dtype)
    np.maximum.at(largest, index, values)
    return largest


def mean_by(bag: BagOfInstance, values: Any, size: PerBag) -> Any:
    """Mean of the rows of each bag.

    >>> mean_by(np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), np.array([2, 1]))
    array([2., 2.])
    """
    sums = sum_by(bag, values, len(size))
    return sums / like(values, size).reshape((-1,) + (1,) * (values.ndim - 1))


def log_mean_by(bag: BagOfInstance, log_values: Any, size: PerBag) -> Any:
    """Logarithm of the mean of exp(log_values) in each bag, without overflow or underflow.

    >>> log_mean_by(np.array([0, 0]), np.array([-1e4, -1e4]), np.array([2]))
    array([-10000.])
    """
    xp = namespace(log_values)
    largest = max_by(bag, log_values, len(size))
    return largest + xp.log(mean_by(bag, xp.exp(log_values - largest[bag]), size))


def softplus(score: Any) -> Any:
    """log(1 + exp(score)), without overflow."""
    xp = namespace(score)
    return xp.logaddexp(xp.zeros_like(score), score)


def log_softmax(score: Any) -> Any:
    """Logarithms of the class probabilities, along the last axis."""
    xp = namespace(score)
    centred = score - constant(xp.max(score, axis=-1, keepdims=True))
    return centred - xp.log(xp.sum(xp.exp(centred), axis=-1, keepdims=True))


def mix(x: np.ndarray) -> np.ndarray:
    """A hash of whole numbers of 64 bits (NumPy), the same everywhere: SplitMix64's finisher."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
