"""A model and a batch in, the next parameters out: one compiled step of all runs of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from unbag._arrays import sum_by
from unbag.training._loader import Batches
from unbag.training._objective import Setting, batch_loss, predict_components
from unbag.training._sharding import Place

Reference = Literal["current", "last"]


class Memory(NamedTuple):
    """Each instance's prediction at its last visit, which rows are instances of this run's bags,
    and their stratum."""

    value: Any
    own: Any
    stratum: Any = None

    def mean(self, strata: int) -> Any:
        """Over the instances of this run's bags, a row for each stratum where there are strata."""
        own = self.value * self.own[:, None]
        if self.stratum is None:
            return jnp.sum(own, axis=0) / jnp.sum(self.own)
        count = sum_by(self.stratum, self.own, strata)
        return sum_by(self.stratum, own, strata) / jnp.maximum(count, 1)[:, None]


class State(NamedTuple):
    """Everything that changes, with leading axes (seeds, rates)."""

    params: Any
    moments: Any
    memory: Memory | None


@dataclass(frozen=True)
class Machine:
    """The compiled parts of a sweep."""

    setting: Setting
    apply: Callable[..., Any]
    static: Any
    optimizer: Any
    reference: Reference
    place: Place

    def model(self, params: Any) -> Any:
        """Parameters as the model that they belong to."""
        return eqx.combine(params, jax.tree.unflatten(*self.static))

    def scores(self, params: Any, X: Any, key: Any = None) -> Any:
        """Scores of one run."""
        return self.place.scores(
            lambda rows, key: self.apply(self.model(params), rows, key), X, key
        )

    def objective(
        self, params: Any, X: Any, batch: Batches, memory: Any, further: Any, key: Any
    ) -> Any:
        """The loss of a batch, and the predictions of its rows as components."""
        score = self.scores(params, X, key)
        fixed = jax.lax.stop_gradient(predict_components(self.setting, score))
        reference, mean = fixed, None
        if memory is not None:
            reference, mean = memory.value[batch.row], memory.mean(len(batch.prior))
        others = self.scores(params, further, key) if self.setting.pool else None
        return batch_loss(self.setting, score, batch, reference, mean, others), fixed

    def run_step(
        self, state: State, rate: Any, X: Any, further: Any, batch: Batches, key: Any
    ) -> tuple[State, Any]:
        """One step of one run."""
        gradient = jax.value_and_grad(self.objective, has_aux=True)
        (value, predicted), slope = gradient(state.params, X, batch, state.memory, further, key)
        updates, moments = self.optimizer.update(slope, state.moments, state.params)
        params = jax.tree.map(lambda p, u: p - rate * u, state.params, updates)
        memory = state.memory
        if memory is not None:
            row = jnp.where(batch.real, batch.row, len(memory.value))
            memory = memory._replace(value=memory.value.at[row].set(predicted, mode="drop"))
        return State(params, moments, memory), value

    @partial(jax.jit, static_argnums=0)
    def step(
        self, state: State, rates: Any, X: Any, batches: Batches, active: Any, keys: Any
    ) -> tuple[State, Any]:
        """One step of all runs: rates share their seed's batch, which is gathered once. keys : a
        seed and a count.

        X : all features; with a mesh those of the batch and its pool, by seed, already gathered.
        """

        def of_seed(given: tuple[State, Batches, Any, tuple[Any, Any], Any]) -> tuple[State, Any]:
            state, batch, active, (seed, count), gathered = given
            key = jax.random.fold_in(jax.random.key(seed), count)
            rows, further = gathered or (X[batch.row], X[batch.further])
            over_rates = jax.vmap(self.run_step, in_axes=(0, 0, None, None, None, None))
            new, value = over_rates(state, rates, rows, further, batch, key)
            return jax.tree.map(lambda a, b: jnp.where(active, a, b), new, state), value

        of_batch = X if self.place.mesh is not None else None
        return self.place.together(jax.lax.map(of_seed, (state, batches, active, keys, of_batch)))

    @partial(jax.jit, static_argnums=0)
    def scores_of_seed(self, params: Any, X: Any) -> Any:
        """Scores of the runs of one seed: a row of scores for each rate."""
        return jax.vmap(lambda p: self.scores(p, X))(params)

    def look(self, params: Any, X: Any) -> Any:
        """The same for features that are divided among devices."""
        if self.place.mesh is None:
            return self.scores_of_seed(params, X)
        held, rows = X
        return np.asarray(self.scores_of_seed(params, held))[:, :rows]


def call_model(model: Any, X: Any, key: Any) -> Any:
    """Scores of a model that may or may not take a key."""
    return model(X) if key is None else model(X, key=key)


def stack_models(models: Sequence[Any], rates: int) -> Any:
    """Models stacked along (seeds, rates)."""

    def stack(*leaves: Any) -> Any:
        if not eqx.is_inexact_array(leaves[0]):
            return leaves[0]
        return jnp.repeat(jnp.stack(leaves)[:, None], rates, axis=1)

    return jax.tree.map(stack, *models)


@lru_cache
def make_optimizer(weight_decay: float, clip: float | None) -> Any:
    """Adam without its rate, which is each run's own."""
    parts = [optax.clip_by_global_norm(clip)] if clip is not None else []
    parts += [optax.scale_by_adam()]
    parts += [optax.add_decayed_weights(weight_decay)] if weight_decay else []
    return optax.chain(*parts)


def start_state(
    machine: Machine, params: Any, X: Any, many: Sequence[Any], seeds: int, rates: int
) -> State:
    """The state before the first step; the memory starts with the predictions of the first
    model."""
    over = lambda f: jax.vmap(jax.vmap(f))
    moments = over(machine.optimizer.init)(params)
    if machine.reference == "current" or machine.setting.method != "anchored":
        return State(params, moments, None)
    first = over(lambda p: predict_components(machine.setting, machine.scores(p, X)))
    own = np.zeros((seeds, rates, X.shape[0]), np.float32)
    stratum = np.zeros(own.shape, np.int32) if machine.setting.strata else None
    for seed, bags in enumerate(many):
        rows = bags.rows_of(np.arange(len(bags.report)))
        own[seed][:, rows] = 1
        if stratum is not None:
            stratum[seed][:, rows] = np.repeat(bags.stratum, bags.size)
    return State(params, moments, Memory(first(params), jnp.asarray(own), stratum))
