"""One run that learns from bags chunk by chunk, each once: what a stream trains with.

Adam is dense, as in the paper: a row of an embedding that a batch does not use still moves by its
momentum. Adam that touches only the rows used ("lazy") is another algorithm; `benchmarks/stream.py`
compares the two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unbag.bags import Bags
from unbag.methods import Method
from unbag.training._config import resolve_loss
from unbag.training._loader import Batches, Loader, Shape, epoch_batches
from unbag.training._objective import Setting, predict_components
from unbag.training._run import is_sound
from unbag.training._sharding import Devices, place_on
from unbag.training._step import Adam, Trainer, TrainState, call_model, split_model, step_key


class ChunkTrainer:
    """A model that learns from binary reports, one pass over each chunk of bags.

    Parameters
    ----------
    model : pytree
        To begin with; it stays as it is.
    method : str
        As in `train`.
    loss : str
        The name of a loss; "" for the method's usual one.
    rate : float
        Of Adam.
    batch : int
        About how many instances a step sees.
    seed : int
        Of the order of the bags.
    devices : int, "all" or sequence, optional
        As in `TrainingConfig`.
    microbatch : int, optional
        As in `TrainingConfig`.
    """

    def __init__(
        self,
        model: Any,
        *,
        method: Method,
        loss: str = "",
        rate: float,
        batch: int,
        seed: int,
        devices: Devices | None = None,
        microbatch: int | None = None,
    ) -> None:
        self.rate, self.batch, self.seed = np.float32(rate), batch, seed
        self.shape: Shape | None = None
        chosen = resolve_loss(loss, method, "binary")
        if method == "labels":
            method = "easy"  # of bags of one
        params, static = split_model(model)
        setting, place = Setting(method, chosen, "binary"), place_on(devices, microbatch)
        self.trainer = Trainer(setting, static, Adam(), place, call_model)
        params = jax.tree.map(jnp.array, params)  # a copy, because steps use up what they are given
        state = TrainState(params, self.trainer.optimizer.init(params))
        self.state = self.trainer.place.copied(state)

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return self.trainer.model(self.state.params)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Scores of any number of rows, a batch at a time, so that memory stays flat."""
        if len(X) == 0:
            return np.zeros(0, np.float32)
        place, short = self.trainer.place, -len(X) % self.batch
        padded = np.concatenate([X, np.repeat(X[:1], short, axis=0)])
        parts = []
        for start in range(0, len(padded), self.batch):
            rows = place.whole(padded[start : start + self.batch])
            if place.mesh is not None:
                rows = rows[0]
            score = self.trainer.scores_alone(self.state.params, rows)
            parts.append(np.asarray(score)[: self.batch])
        return np.concatenate(parts)[: len(X)]

    def learn(self, bags: Bags, score: np.ndarray, number: int) -> float:
        """One pass over the bags of a chunk; a chunk on which learning diverges leaves no trace.

        Parameters
        ----------
        bags : Bags
            With features, and the prior to use.
        score : array
            Of each instance, made before.
        number : int
            Of the chunk; with the seed it decides the order of the bags.

        Returns
        -------
        float
            The mean objective, NaN when learning diverged.
        """
        largest, setting = int(bags.size.max()), self.trainer.setting
        if setting.method == "likelihood" and largest > setting.largest:
            # only the likelihood must know the largest bag; rounded up, so that it seldom changes
            self._set_largest(1 << (largest - 1).bit_length() if setting.largest else largest)
        trainer, place, setting = self.trainer, self.trainer.place, self.trainer.setting
        features, state = place.features(bags.X), self.state
        if setting.method == "anchored":  # the reference are the predictions made before
            value = predict_components(setting, jnp.asarray(score, jnp.float32))
            state = state._replace(served=place.copied(value))
        self.state = jax.tree.map(jnp.copy, self.state)  # the steps use up the other one
        loader = Loader(bags, batch=self.batch, seed=self.seed, by_noise=setting.by_noise)
        batches, self.shape = epoch_batches([loader], number, self.shape, multiple=place.count)
        values = []
        for count, (arrays, _) in enumerate(batches):
            one = Batches(*(column[0] for column in arrays))
            X, key = place.batch(features, one), step_key(self.seed, number, count)
            state, value = trainer.step_alone(state, self.rate, X, one, key)
            values.append(value)
        objective = np.array([float(value) for value in values])
        largest = objective[np.argmax(np.abs(objective))]  # one that is NaN counts as the largest
        if not is_sound(state.params, largest):
            return np.nan
        self.state = state._replace(served=None)
        return float(objective.mean())

    def _set_largest(self, largest: int) -> None:
        setting = self.trainer.setting._replace(largest=largest)
        self.trainer = replace(self.trainer, setting=setting)

    def save(self) -> tuple[list[np.ndarray], dict[str, Any]]:
        """Everything that learning changed, as arrays and as what JSON can hold."""
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(self.state)]
        return leaves, {"shape": self.shape, "largest": self.trainer.setting.largest}

    def load(self, leaves: list[np.ndarray], settled: dict[str, Any]) -> None:
        """Go back to what `save` gave.

        Parameters
        ----------
        leaves : list of array
            Parameters and moments.
        settled : dict
            The rest.
        """
        now, tree = jax.tree.flatten(self.state)
        pairs = zip(leaves, now, strict=True)
        arrays = [jnp.asarray(leaf.reshape(like.shape)) for leaf, like in pairs]
        self.state = self.trainer.place.copied(jax.tree.unflatten(tree, arrays))
        self.shape = settled["shape"] and Shape(*settled["shape"])
        self._set_largest(settled["largest"])
