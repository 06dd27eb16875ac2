"""Runs that share their batches, each blind to the reports of some bags: all folds at once.

A bag that a lane must not learn from has weight 0 in it: its report has no part in the lane's loss,
its instances still help to estimate means. As all lanes see the same rows, their first layers are
one product of matrices, which is several times faster than lanes with batches of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from unbag.bags import Bags, as_components
from unbag.losses import Loss
from unbag.methods import Method
from unbag.training._config import TrainingConfig, make_setting
from unbag.training._loader import Batches, Loader, epoch_batches
from unbag.training._objective import Objective
from unbag.training._sharding import place_on
from unbag.training._step import Adam, Trainer, TrainState, call_model, split_model, step_key

WINDOW = 8
"""The average of parameters forgets: after t steps the last t / 8 or so count."""
BLOCK = 8192
"""Rows that are scored at once."""


class Lanes:
    """Runs that go through the same batches side by side.

    Parameters
    ----------
    models : sequence of pytree
        Of each lane, all of one form.
    bags : Bags
        With observed reports and numeric features.
    learns : numpy.ndarray of bool
        Of each lane, which bags it learns from.
    rates : sequence of float
        Of Adam, one for each lane.
    method, loss : str
        As in `train`.
    config : TrainingConfig
        Of which batch, weight decay and microbatch count here.
    decayed : callable, optional
        From parameters to which of them decay; by default all.
    seed : int
        Of the order of the bags, and of dropout.

    Attributes
    ----------
    steps : int
        How many there were.
    epoch : int
        The number of the current pass, from 1.
    average : pytree
        The mean of each lane's parameters over its last steps, which predicts better than the last.
    """

    def __init__(
        self,
        models: Sequence[Any],
        bags: Bags,
        learns: np.ndarray,
        rates: Sequence[float],
        *,
        method: Method | Objective = "anchored",
        loss: Loss | str | None = None,
        config: TrainingConfig,
        decayed: Callable[[Any], Any] | None = None,
        seed: int = 0,
    ) -> None:
        setting = make_setting([bags], method, loss, config)
        place = place_on(None, config.microbatch)
        parts = [split_model(model) for model in models]
        # on the host, and then as one program: outside of `jit` each shape has programs of its own
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *(part for part, _ in parts))
        params = jax.device_put(stacked)
        optimizer = Adam(config.weight_decay, config.clip, decayed)
        apply = config.apply or call_model
        self.trainer = Trainer(setting, parts[0][1], optimizer, place, apply, side_by_side=True)
        self.state = TrainState(params, optimizer.init(params, (len(models),)))
        self.average: Any = params
        self.rates, self.seed = np.asarray(rates, np.float32), seed
        self.learns = np.asarray(learns, bool)
        self.prior = np.stack([_prior(bags, numbers) for numbers in self.learns])
        self.loader = Loader(bags, batch=config.batch, seed=seed, by_noise=setting.by_noise)
        self.features = place.features(bags.X)
        self.steps, self.epoch, self._batches = 0, 0, self._all_batches()

    def advance(self, steps: int) -> None:
        """Take so many steps."""
        for _ in range(steps):
            batch, numbers = next(self._batches)
            weight = _own_weights(batch, self.learns[:, numbers])
            key = step_key(self.seed, 0, self.steps)
            given = (self.rates, self.features, batch, weight, self.prior, key)
            self.steps += 1
            share = np.float32(WINDOW / (self.steps + WINDOW))
            before = self.state, self.average, share
            self.state, self.average = self.trainer.step_lanes(*before, *given)

    def take(self, lanes: Sequence[int]) -> Any:
        """The average parameters of some lanes, stacked."""
        return jax.tree.map(lambda leaf: np.asarray(leaf)[np.asarray(lanes)], self.average)

    def scores(self, params: Any, rows: np.ndarray) -> np.ndarray:
        """Scores of rows of the bags by stacked parameters: (lanes, rows) or with classes.

        Parameters
        ----------
        params : pytree
            As `take` gives them.
        rows : numpy.ndarray of int
            Instances of the bags.
        """
        padded = np.resize(rows, -(-len(rows) // BLOCK) * BLOCK)
        if len(rows) < BLOCK:
            padded = rows
        parts = [
            _scores(self.trainer, params, self.features, padded[start : start + BLOCK])
            for start in range(0, len(padded), BLOCK)
        ]
        return np.concatenate(parts, axis=1)[:, : len(rows)].astype(float)

    def _all_batches(self) -> Iterator[tuple[Batches, np.ndarray]]:
        """Epoch after epoch, each batch with its bag numbers."""
        shape = None
        while True:
            self.epoch += 1
            plan = self.loader.plan(self.epoch)
            batches, shape = epoch_batches([self.loader], self.epoch, shape)
            for (arrays, _), numbers in zip(batches, plan, strict=True):
                yield Batches(*(column[0] for column in arrays)), numbers


def _prior(bags: Bags, learns: np.ndarray) -> np.ndarray:
    """In component form, of the bags to learn from; a stratum without any takes that of all."""
    whole = bags.components().prior
    own = as_components(bags.reports.take(np.flatnonzero(learns)).prior_or_nan, bags.kind)
    if own.ndim > 1 and len(own) < len(whole):  # the last strata have no bag here
        own = np.concatenate([own, whole[len(own) :]])
    return np.where(np.isfinite(own), own, whole).astype(np.float32)


def _own_weights(batch: Batches, learns: np.ndarray) -> np.ndarray:
    """The bags' weights in each lane, which add up to 1 in each stratum that it learns from."""
    weight = np.zeros((len(learns), len(batch.weight)))
    weight[:, : learns.shape[1]] = batch.weight[: learns.shape[1]] * learns
    strata = np.eye(int(batch.stratum.max()) + 1)[batch.stratum]
    total = (weight @ strata)[:, batch.stratum]
    return (weight / np.where(total > 0, total, 1.0)).astype(np.float32)


@partial(jax.jit, static_argnums=0)
def _scores(trainer: Trainer, params: Any, X: Any, rows: Any) -> Any:
    return trainer.scores_all(params, X[rows])
