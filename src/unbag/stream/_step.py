"""Parameters and a chunk of bags in, parameters after one pass over it out: the steps of
`unbag.training`, one run.

Adam is dense, as in the paper: a row of an embedding that a batch does not use still moves by its
momentum. Adam that touches only the rows used ("lazy") is another algorithm; `benchmarks/stream.py`
compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from unbag.bags import Bags
from unbag.training._loader import Batches, Loader, Shape, epoch_batches
from unbag.training._objective import Setting, batch_loss, predict_components
from unbag.training._run import DIVERGED
from unbag.training._sharding import Place, fitting
from unbag.training._validation import as_features

ADAM = optax.scale_by_adam()


class State(NamedTuple):
    """What learning changes: parameters and Adam's moments."""

    params: Any
    moments: Any


@dataclass(frozen=True)
class Machine:
    """The compiled parts of a stream. static : what of the model is no parameter, as (tree,
    leaves)."""

    setting: Setting
    static: Any
    place: Place

    def fitting(self, largest: int) -> Machine:
        """The machine for bags of this size; only the likelihood must know the largest, rounded up
        so as to stay."""
        if self.setting.method != "likelihood" or largest <= self.setting.largest:
            return self
        larger = largest if self.setting.largest == 0 else 1 << (largest - 1).bit_length()
        return replace(self, setting=self.setting._replace(largest=larger))

    def model(self, params: Any) -> Any:
        """Parameters as a model again."""
        return eqx.combine(params, jax.tree.unflatten(*self.static))

    @partial(jax.jit, static_argnums=0)
    def scores(self, params: Any, X: Any) -> Any:
        """Scores of some rows."""
        return self.place.scores(lambda rows, _: self.model(params)(rows), X, None)

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def step(
        self, state: State, rate: Any, X: Any, batch: Batches, reference: Any, mean: Any, key: Any
    ) -> tuple[State, Any]:
        """One step of Adam on one batch. reference, mean : predictions before the chunk was
        learned, and their mean.

        X : features of the chunk; with a mesh those of the batch, already gathered.
        """
        rows = X[batch.row] if self.place.mesh is None else X

        def objective(params: Any) -> Any:
            dropping = jax.random.fold_in(jax.random.key(key[0]), key[1])
            score = self.place.scores(
                lambda rows, key: self.model(params)(rows, key=key), rows, dropping
            )
            return batch_loss(self.setting, score, batch, reference[batch.row], mean, None)

        value, slope = jax.value_and_grad(objective)(state.params)
        updates, moments = ADAM.update(slope, state.moments, state.params)
        new = State(jax.tree.map(lambda p, u: p - rate * u, state.params, updates), moments)
        return self.place.together((new, value))


def begin(model: Any, setting: Setting, place: Place) -> tuple[Machine, State]:
    """The machine of a model, and the state it starts from; the model itself stays as it is."""
    params, static = eqx.partition(model, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(static)
    params = jax.tree.map(jnp.array, params)
    return Machine(setting, (tree, tuple(leaves)), place), place.copied(
        State(params, ADAM.init(params))
    )


def predict(machine: Machine, params: Any, X: Any, *, batch: int) -> np.ndarray:
    """Scores of any number of rows, `batch` at a time, so that memory stays flat."""
    X = np.asarray(X)
    short = -len(X) % batch
    padded = np.concatenate([X, np.repeat(X[:1], short, axis=0)]) if short else X
    hold = as_features if machine.place.mesh is None else lambda rows: machine.place.held(rows)[0]
    parts = [
        machine.scores(params, hold(padded[i : i + batch])) for i in range(0, len(padded), batch)
    ]
    return (
        np.concatenate([np.asarray(part)[:batch] for part in parts])[: len(X)]
        if parts
        else np.zeros(0, np.float32)
    )


class Learned(NamedTuple):
    """After a chunk: the state, the shape of its batches, the mean objective (NaN when it
    diverged), the steps made."""

    state: State
    shape: Shape
    value: float
    steps: int


def learn_chunk(
    machine: Machine, state: State, bags: Bags, score: np.ndarray, *, rate: float, batch: int, seed: int, number: int,
    shape: Shape | None,
) -> Learned:  # fmt: skip
    """One pass over the bags of a chunk; a chunk on which learning diverges leaves no trace.

    Parameters
    ----------
    bags : with features, and the prior to use. score : of each instance, made before.
    number : of the chunk; with the seed it decides the order of the bags.
    shape : of the batches so far; it decides how they are padded, so a resumed stream must know it.
    """
    place, before = machine.place, jax.tree.map(jnp.copy, state)
    X = as_features(bags.X) if place.mesh is None else fitting(bags.X)
    reference = predict_components(machine.setting, jnp.asarray(score, jnp.float32))
    reference, mean = place.copied((reference, jnp.mean(reference, axis=0)))
    loader = Loader(bags, batch=batch, seed=seed, by_noise=machine.setting.method != "likelihood")
    batches, shape = epoch_batches([loader], number, shape, multiple=place.count)
    values, rate32 = [], np.float32(rate)
    for count, (arrays, _) in enumerate(batches):
        key = np.array([seed % 2**31, (number * 100_003 + count) % 2**31], np.int32)
        one = Batches(*(column[0] for column in arrays))
        given = X if isinstance(X, jax.Array) else place.divided(X, one.row)
        state, value = machine.step(state, rate32, given, one, reference, mean, key)
        values.append(value)
    told = np.array([float(value) for value in values])
    sound = (
        np.isfinite(told).all() and np.abs(told).max() < DIVERGED and bool(_finite(state.params))
    )
    return (
        Learned(state, shape, float(told.mean()), len(told))
        if sound
        else Learned(before, shape, np.nan, 0)
    )


@jax.jit
def _finite(params: Any) -> Any:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(params)]))
