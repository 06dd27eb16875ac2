"""The one training step: from a model and a batch to the next parameters.

A sweep maps it over seeds and rates (`Trainer.step_all`), folds that share their batches over
lanes (`Trainer.step_lanes`), a stream calls it for its one run (`Trainer.step_alone`). All go
through `Trainer.step`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from unbag.models import side_by_side
from unbag.objectives import Ask
from unbag.training._loader import Batches
from unbag.training._objective import Setting, batch_loss, predict_components
from unbag.training._sharding import Place


class TrainState(NamedTuple):
    """Everything that a step changes; in a sweep with leading axes (seeds, rates).

    Parameters
    ----------
    params : pytree
        Of the model.
    moments : Moments
        Of the optimiser.
    served : array, optional
        What the anchored method takes as reference, a prediction of every row: in a stream those
        that were served before the chunk was learned. By default it is the prediction of the
        moment.
    """

    params: Any
    moments: Any
    served: Any = None


@dataclass(frozen=True)
class Trainer:
    """The compiled parts of a training.

    Parameters
    ----------
    setting : Setting
        Method, loss and kind of report.
    static : tuple
        What of the model is no parameter, as (tree, leaves), so that it can be hashed.
    optimizer : Adam
        Without its rate.
    place : Place
        Of the rows of a batch.
    apply : callable
        From (model, X, key) to scores.
    side_by_side : bool
        Whether runs share their rows.
    """

    setting: Setting
    static: Any
    optimizer: Adam
    place: Place
    apply: Callable[..., Any]
    side_by_side: bool = False

    def model(self, params: Any) -> Any:
        """Parameters as the model that they belong to."""
        static = jax.tree.unflatten(*self.static)
        both = lambda own, other: other if own is None else own
        return jax.tree.map(both, params, static, is_leaf=lambda leaf: leaf is None)

    def scores(self, params: Any, X: Any, key: Any = None) -> Any:
        """Scores of one run."""
        model = self.model(params)
        if self.side_by_side:
            model = side_by_side(model)
        return self.place.scores(lambda rows, key: self.apply(model, rows, key), X, key)

    def objective(self, params: Any, X: Any, batch: Batches, served: Any, key: Any) -> Any:
        """The loss of a batch."""
        score, mean = self.scores(params, X, key), None
        if served is None:
            reference = jax.lax.stop_gradient(predict_components(self.setting, score))
        else:
            reference, mean = served[batch.row], jnp.sum(served, axis=0) / len(served)
        ask = Ask(lambda rows: self.scores(params, rows, key), X, key)
        return batch_loss(self.setting, score, batch, reference, mean, ask)

    def step(
        self, state: TrainState, rate: Any, X: Any, batch: Batches, key: Any
    ) -> tuple[TrainState, Any]:
        """One step of Adam of one run on one batch.

        Parameters
        ----------
        state : TrainState
            Before the step.
        rate : float
            Of this run.
        X : array
            Features of the batch.
        batch : Batches
            Of this run.
        key : array
            For dropout.

        Returns
        -------
        state : TrainState
            After the step.
        value : array
            The objective before it.
        """
        gradient = jax.value_and_grad(self.objective)
        value, slope = gradient(state.params, X, batch, state.served, key)
        updates, moments = self.optimizer.update(slope, state.moments, state.params)
        params = jax.tree.map(lambda p, u: (p - rate * u).astype(p.dtype), state.params, updates)
        return TrainState(params, moments, state.served), value

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def step_alone(
        self, state: TrainState, rate: Any, X: Any, batch: Batches, key: tuple[Any, Any]
    ) -> tuple[TrainState, Any]:
        """One step of a single run, whose state before is used up.

        Parameters as in `step_all`, without the axis of seeds.
        """
        rows = self._gathered(X, batch)
        return self.place.together(self.step(state, rate, rows, batch, _key(key)))

    @partial(jax.jit, static_argnums=0)
    def step_all(
        self, state: TrainState, rates: Any, X: Any, batches: Batches, active: Any, keys: Any
    ) -> tuple[TrainState, Any]:
        """One step of all runs: rates share their seed's batch, which is gathered once.

        Parameters
        ----------
        state : TrainState
            With leading axes (seeds, rates).
        rates : array
            Of each rate.
        X : array
            All features; with a mesh those of the batch, by seed, already gathered.
        batches : Batches
            One of each seed.
        active : array of bool
            Which seeds still have a batch.
        keys : tuple of array
            Of each seed, the seed and a count.
        """

        def of_seed(given: tuple[TrainState, Batches, Any, Any, Any]) -> tuple[TrainState, Any]:
            state, batch, active, key, gathered = given
            rows = self._gathered(X if gathered is None else gathered, batch)

            def of_rate(given: tuple[TrainState, Any]) -> tuple[TrainState, Any]:
                return self.step(*given, rows, batch, _key(key))

            new, value = _mapped(_together, of_rate, (state, rates))
            return jax.tree.map(lambda a, b: jnp.where(active, a, b), new, state), value

        of_batch = X
        if self.place.mesh is None:
            of_batch = None  # seeds share the features and are mapped one after the other
        given = (state, batches, active, keys, of_batch)
        return self.place.together(_mapped(jax.lax.map, of_seed, given))

    @partial(jax.jit, static_argnums=0)
    def step_lanes(
        self,
        state: TrainState,
        average: Any,
        share: Any,
        rates: Any,
        X: Any,
        batch: Batches,
        weight: Any,
        prior: Any,
        key: tuple[Any, Any],
    ) -> tuple[TrainState, Any]:
        """One step of runs that share a batch, each with its own weights of the bags, and the
        average of its parameters after it.

        As the rows are shared, the first layer of all lanes is one product of matrices.

        Parameters
        ----------
        state : TrainState
            With a leading axis of lanes.
        average : pytree
            Of the parameters, before the step.
        share : float
            Of the new parameters in the average.
        rates : array
            Of each lane.
        X : array
            All features.
        batch : Batches
            Of all lanes.
        weight, prior : array
            Of each lane, in place of the batch's.
        key : tuple of array
            The seed and a count.
        """
        rows = self._gathered(X, batch)

        def lane(state: TrainState, rate: Any, weight: Any, prior: Any) -> tuple[TrainState, Any]:
            own = batch._replace(weight=weight, prior=prior)
            return self.step(state, rate, rows, own, _key(key))

        state, _ = jax.vmap(lane)(state, rates, weight, prior)
        return state, jax.tree.map(lambda a, p: a + share * (p - a), average, state.params)

    def _gathered(self, X: Any, batch: Batches) -> Any:
        if self.place.mesh is not None:
            return X
        return X[batch.row]

    @partial(jax.jit, static_argnums=0)
    def scores_alone(self, params: Any, X: Any) -> Any:
        """Scores of a single run."""
        return self.scores(params, X)

    @partial(jax.jit, static_argnums=0)
    def scores_all(self, params: Any, X: Any) -> Any:
        """Scores of the runs of one seed: a row of scores for each rate."""
        return jax.vmap(lambda p: self.scores(p, X))(params)

    def look(self, params: Any, X: Any) -> Any:
        """The same for what `Place.whole` gives, which a mesh has padded."""
        if self.place.mesh is None:
            return self.scores_all(params, X)
        held, rows = X
        return np.asarray(self.scores_all(params, held))[:, :rows]


def _together(call: Callable[[Any], Any], given: Any) -> Any:
    return jax.vmap(call)(given)


def _mapped(by: Callable[..., Any], call: Callable[[Any], Any], given: Any) -> Any:
    """A call mapped over the leading axis; where that has one entry it is called as it is, which
    takes a third less time to trace and compile, and most trainings have one seed and rate."""
    if len(jax.tree.leaves(given)[0]) > 1:
        return by(call, given)
    one = call(jax.tree.map(lambda leaf: leaf[0], given))
    return jax.tree.map(lambda leaf: leaf[None], one)


def _key(key: tuple[Any, Any]) -> Any:
    seed, count = key
    return jax.random.fold_in(jax.random.key(seed), count)


def step_key(seed: Any, epoch: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """What the randomness of a step depends on: the seed (or each), and a count of the steps."""
    seeds = (np.asarray(seed, np.int64) % 2**31).astype(np.int32)
    return seeds, np.full(seeds.shape, (epoch * 100_003 + number) % 2**31, np.int32)


def call_model(model: Any, X: Any, key: Any) -> Any:
    """Scores of a model that may or may not take a key."""
    if key is None:
        return model(X)
    return model(X, key=key)


def stack_models(models: Sequence[Any], rates: int) -> Any:
    """Models stacked along (seeds, rates), on the host: JAX would compile programs for each
    shape."""

    def stack(*leaves: Any) -> Any:
        if not _is_parameter(leaves[0]):
            return leaves[0]
        return np.repeat(np.stack(leaves)[:, None], rates, axis=1)

    return jax.tree.map(stack, *models)


def split_model(model: Any) -> tuple[Any, Any]:
    """The parameters of a model, and what is left of it in a form that can be hashed."""
    params = jax.tree.map(lambda leaf: leaf if _is_parameter(leaf) else None, model)
    static = jax.tree.map(lambda leaf: None if _is_parameter(leaf) else leaf, model)
    leaves, tree = jax.tree.flatten(static)
    return params, (tree, tuple(leaves))


def _is_parameter(leaf: Any) -> bool:
    is_array = isinstance(leaf, np.ndarray | np.generic | jax.Array)
    return is_array and jnp.issubdtype(leaf.dtype, jnp.inexact)


class Moments(NamedTuple):
    """Of Adam: how many steps there were, and means of the slopes and of their squares."""

    count: Any
    slope: Any
    square: Any


@dataclass(frozen=True)
class Adam:
    """Adam without its rate, which is each run's own.

    Parameters
    ----------
    weight_decay : float
        Of AdamW.
    clip : float, optional
        Largest norm of a gradient.
    decayed : callable, optional
        From parameters to which of them decay; by default all.
    """

    weight_decay: float = 0.0
    clip: float | None = None
    decayed: Callable[[Any], Any] | None = None

    def init(self, params: Any, runs: tuple[int, ...] = ()) -> Moments:
        """The moments before the first step, made on the host; runs are leading axes."""
        zeros = lambda: jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), params)
        return jax.device_put(Moments(np.zeros(runs, np.int32), zeros(), zeros()))

    def update(self, slope: Any, moments: Moments, params: Any) -> tuple[Any, Moments]:
        """The direction of a step, to be taken times minus the rate, and the next moments."""
        most = self.clip
        if most is not None:
            norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(slope)))
            slope = jax.tree.map(lambda g: jnp.where(norm < most, g, g / norm * most), slope)
        count = moments.count + 1
        first = jax.tree.map(lambda g, m: 0.1 * g + 0.9 * m, slope, moments.slope)
        second = jax.tree.map(lambda g, v: 0.001 * g**2 + 0.999 * v, slope, moments.square)
        share, share_of_square = 1 - 0.9**count, 1 - 0.999**count
        step = jax.tree.map(
            lambda m, v: m / share / (jnp.sqrt(v / share_of_square) + 1e-8), first, second
        )
        if self.weight_decay:
            which = jax.tree.map(lambda _: True, params)
            if self.decayed is not None:
                which = self.decayed(params)
            decay = lambda s, p, own: s + self.weight_decay * p if own else s
            step = jax.tree.map(decay, step, params, which)
        return step, Moments(count, first, second)
