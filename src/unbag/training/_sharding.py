"""How a batch lies on devices: rows are divided, everything else has a copy on each device.

The scores of a batch, a few bytes a row, are brought together before the method sees them. So a bag
may lie across devices, and matching and the likelihood, which need whole bags, are as exact as the
methods that are linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from unbag._rules import broken

Devices = int | Literal["all"] | Sequence[Any]
"""So many of `jax.devices()`, all (those of all processes of `jax.distributed`), or these."""


@dataclass(frozen=True)
class Place:
    """Where a training takes place.

    Parameters
    ----------
    mesh : Mesh, optional
        Of devices; without one, JAX's usual device.
    microbatch : int
        Rows of a batch (over all devices) whose activations are kept at once; 0 for all.
    """

    mesh: Mesh | None = None
    microbatch: int = 0

    @property
    def count(self) -> int:
        """The number of devices, of which the rows of a batch must be a multiple."""
        if self.mesh is None:
            return 1
        return self.mesh.size

    def features(self, X: Any) -> Any:
        """Features to take batches from: on the device, or with a mesh on the host, where they may
        be a file (`np.memmap`) of any length."""
        X = fitting(X)
        if self.mesh is not None:
            return X
        return jax.device_put(_single(X))

    def batch(self, features: Any, batch: Any) -> Any:
        """What a step is given of the features: all of them, or with a mesh the rows of the
        batch."""
        if self.mesh is None:
            return features
        return self.divided(features, batch.row)

    def whole(self, X: Any) -> Any:
        """Features to score all at once: on the device, or divided among the devices of a mesh,
        padded, with the number of their rows."""
        if self.mesh is None:
            return self.features(X)
        X = fitting(X)
        return self.divided(X, np.arange(-(-len(X) // self.count) * self.count) % len(X)), len(X)

    def copied(self, tree: Any) -> Any:
        """Arrays with a copy on every device."""
        if self.mesh is None:
            return tree
        sharding = NamedSharding(self.mesh, PartitionSpec())

        def copy(leaf: Any) -> Any:
            array = np.asarray(leaf)
            return jax.make_array_from_callback(array.shape, sharding, array.__getitem__)

        return jax.tree.map(copy, tree)

    def divided(self, X: np.ndarray, row: np.ndarray) -> Any:
        """The features X[row], whose rows (the last axis of `row`) are divided among the devices.

        Every process reads only the rows of its own devices.
        """
        assert self.mesh is not None
        axes = PartitionSpec()
        if row.shape[-1] % self.count == 0:
            axes = PartitionSpec(*[None] * (row.ndim - 1), "rows")

        def read(index: Any) -> np.ndarray:
            return _single(X[row[index[: row.ndim]]])

        shape = (*row.shape, *X.shape[1:])
        return jax.make_array_from_callback(shape, NamedSharding(self.mesh, axes), read)

    def together(self, tree: Any) -> Any:
        """Inside jit: results that every device has."""
        if self.mesh is None:
            return tree
        return jax.lax.with_sharding_constraint(tree, NamedSharding(self.mesh, PartitionSpec()))

    def scores(self, apply: Callable[[Any, Any], Any], X: Any, key: Any) -> Any:
        """Inside jit: apply(X, key), in blocks of rows whose activations are made again for the
        gradient.

        The scores are those of all rows at once, so the gradient is that of the whole batch, for
        any method. A block has rows of every device, so that all work on it. Dropout is drawn for
        each block.
        """
        rows, block = X.shape[0], -(-self.microbatch // self.count)
        if block == 0 or rows <= block * self.count or rows % self.count:
            return self.together(apply(X, key))
        blocks = -(-rows // (block * self.count))
        by_device = X.reshape(self.count, -1, *X.shape[1:])
        short = blocks * block - by_device.shape[1]
        padded = jnp.pad(by_device, [(0, 0), (0, short)] + [(0, 0)] * (X.ndim - 1))
        parts = padded.reshape(self.count, blocks, block, *X.shape[1:]).swapaxes(0, 1)

        @jax.checkpoint
        def one(given: tuple[Any, Any]) -> Any:
            part, number = given
            own = key
            if key is not None:
                own = jax.random.fold_in(key, number)
            return apply(part.reshape(-1, *X.shape[1:]), own)

        score = jax.lax.map(one, (parts, jnp.arange(blocks)))
        outputs = score.shape[2:]
        score = score.reshape(blocks, self.count, block, *outputs).swapaxes(0, 1)
        kept = score.reshape(self.count, -1, *outputs)[:, : rows // self.count]
        return self.together(kept.reshape(rows, *outputs))


def place_on(devices: Devices | None, microbatch: int | None = None) -> Place:
    """The place that these devices make.

    Parameters
    ----------
    devices : int, "all" or sequence, optional
        So many of JAX's devices, all, or these; by default JAX's usual one.
    microbatch : int, optional
        Rows whose activations are kept at once.
    """
    if microbatch is not None and microbatch < 1:
        rule, remedy = "A microbatch must hold at least one row", "Leave it out for whole batches."
        raise broken(rule, f"{microbatch} given", remedy)
    known, mesh = jax.devices(), None
    if isinstance(devices, str) and devices != "all":
        rule = "Devices must be a number, 'all' or devices of JAX"
        raise broken(rule, f"{devices!r} given", "Use 'all'.")
    if isinstance(devices, int) and not 1 <= devices <= len(known):
        raise broken(
            "There must be as many devices as are asked for",
            f"{devices} given and JAX has {len(known)}",
            "Ask for fewer, or for 'all'.",
        )
    if devices is not None:
        chosen = known
        if isinstance(devices, int):
            chosen = known[:devices]
        elif devices != "all":
            chosen = list(devices)
        mesh = Mesh(np.array(chosen), ("rows",))
    return Place(mesh, microbatch or 0)


def fitting(X: Any) -> np.ndarray:
    """Features on the host; whole numbers that do not all fit into 32 bits, as moments in time do
    not, become floats.

    >>> fitting([[1, 2]]).dtype, fitting([[1_700_000_000_000]]).dtype
    (dtype('int64'), dtype('float32'))
    """
    X, most = np.asarray(X), np.iinfo(np.int32)
    if X.dtype.kind not in "iu" or np.can_cast(X.dtype, np.int32) or X.size == 0:
        return X
    if most.min <= X.min() <= X.max() <= most.max:
        return X
    return X.astype(np.float32)


def _single(X: np.ndarray) -> np.ndarray:
    """Floats in single precision, whole numbers (bucket numbers) as they are."""
    if X.dtype.kind in "iu":
        return np.asarray(X, np.int32)
    return np.asarray(X, np.float32)
