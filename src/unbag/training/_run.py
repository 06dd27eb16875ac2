"""A run: a trained model with its history; and the record of all runs while they train, which
keeps the best model of each and notices those that diverge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unbag.bags import Bags
from unbag.losses import Link
from unbag.training._step import TrainState
from unbag.training._validation import StopRule

DIVERGED = 1e6
"""No sound objective is so far from 0, unless the loss is large by its nature (see `trivial_value`
in `unbag.training._objective`)."""


@dataclass(frozen=True)
class Run:
    """A trained model and how it was made.

    Parameters
    ----------
    model : pytree
        After the epoch that held-out bags chose, or the last one.
    method, loss : str
        What it was trained by.
    learning_rate : float
        Of Adam.
    seed : int
        Of the order of the bags, and of dropout.
    epoch : int
        The one whose model this is, counted from 1.
    history : dict of str to array
        Per epoch: `train` (the objective), `held_out` (loss estimated from held-out bags),
        `choice` (what the epoch is chosen by, see `unbag.training._validation`), and `test_loss`,
        `test_auc` where labelled test data were given.
    diverged : int, optional
        The epoch in which the training broke off.
    bags_ : Bags, optional
        Those it learned from, without features, where they have names, so that nobody evaluates
        on them.
    link : Link, optional
        How its scores predict, which the name of a loss of your own does not say.
    """

    model: Any = field(repr=False)
    method: str
    loss: str
    learning_rate: float
    seed: int
    epoch: int
    history: dict[str, np.ndarray] = field(repr=False)
    diverged: int | None = None
    bags_: Bags | None = field(default=None, repr=False)
    link: Link | None = field(default=None, repr=False)

    def scores(self, X: Any) -> np.ndarray:
        """Scores of rows, which predict as its link, or its loss, says.

        Features go in as training takes them: whole numbers (bucket numbers) as they are, others in
        single precision.
        """
        X = np.asarray(X)
        if X.dtype.kind not in "iu":
            X = X.astype(np.float32)
        return np.asarray(self.model(X), float)


class Record:
    """History, best models and divergence of all runs, arrays of (seeds, rates).

    Parameters
    ----------
    params : pytree
        Parameters before the first step, with leading axes (seeds, rates).
    rule : StopRule
        What chooses the best moment of each run.
    limit : float
        Of the size of a sound objective.
    """

    def __init__(self, params: Any, rule: StopRule, *, limit: float = DIVERGED) -> None:
        self.rule, self.limit = rule, limit
        self.history: dict[str, list[np.ndarray]] = {}
        self.best, self.last = params, params
        self.diverged = np.zeros(rule.best_epoch.shape, int)

    def add(self, epoch: int, observed: dict[str, np.ndarray], state: TrainState) -> TrainState:
        """Note an epoch; a run that diverged in it goes back to its last good parameters, and
        stays there."""
        sound = is_sound(state.params, observed["train"], self.limit)
        alive = (self.diverged == 0) & sound
        self.diverged = np.where((self.diverged == 0) & ~sound, epoch, self.diverged)
        params = self.last = _choose(alive, state.params, self.last)
        for name, value in observed.items():
            self.history.setdefault(name, []).append(np.where(alive, value, np.nan))
        self.best = _choose(self.rule.better(epoch, observed, alive), params, self.best)
        # moments that are not finite would spoil the parameters that the run went back to
        return state._replace(params=params, moments=_finite(state.moments))

    def finished(self) -> bool:
        """Whether nothing more is to be expected."""
        return bool((self.diverged > 0).all()) or self.rule.finished()

    def runs(
        self,
        model_of: Callable[[Any], Any],
        seeds: Sequence[int],
        rates: Sequence[float],
        bags: Sequence[Bags],
        **common: Any,
    ) -> list[list[Run]]:
        """One `Run` for each seed and rate.

        Parameters
        ----------
        model_of : callable
            From the parameters of one run to its model.
        seeds, rates : sequence
            Of the runs.
        bags : sequence of Bags
            Those of each seed.
        common : Any
            Fields of `Run` that all of them share.
        """
        # one copy to the host: slices of device arrays cost 1 ms a run
        best = jax.tree.map(np.asarray, self.best)
        history = {name: np.stack(values) for name, values in self.history.items()}
        known = [b.bare() if b.names is not None and b.size.max() > 1 else None for b in bags]

        def run(s: int, r: int) -> Run:
            return Run(
                model=model_of(jax.tree.map(lambda leaf: jax.device_put(leaf[s, r]), best)),
                learning_rate=float(rates[r]),
                seed=int(seeds[s]),
                epoch=int(self.rule.best_epoch[s, r]),
                history={name: values[:, s, r] for name, values in history.items()},
                diverged=int(self.diverged[s, r]) or None,
                bags_=known[s],
                **common,
            )

        return [[run(s, r) for r in range(len(rates))] for s in range(len(seeds))]


def is_sound(params: Any, objective: np.ndarray, limit: float = DIVERGED) -> np.ndarray:
    """Which runs have finite parameters and an objective below the limit: the divergence guard.

    Parameters
    ----------
    params : pytree
        Whose leaves begin with the axes of the objective.
    objective : array
        One for each run.
    limit : float
        Of its size.
    """
    objective = np.asarray(objective)
    params_finite = np.asarray(_all_finite(params, objective.ndim))
    return params_finite & np.isfinite(objective) & (np.abs(objective) < limit)


# Each of these is one program. Outside of `jit`, JAX compiles one for each operation and each
# shape of a parameter, which takes longer than the first epochs of a small training.
@partial(jax.jit, static_argnums=1)
def _all_finite(params: Any, axes: int) -> Any:
    finite = [
        jnp.all(jnp.isfinite(leaf), axis=tuple(range(axes, leaf.ndim)))
        for leaf in jax.tree.leaves(params)
    ]
    return jnp.all(jnp.stack(finite), axis=0)


@jax.jit
def _finite(moments: Any) -> Any:
    return jax.tree.map(jnp.nan_to_num, moments)


@jax.jit
def _choose(where: Any, new: Any, old: Any) -> Any:
    def pick(a: Any, b: Any) -> Any:
        return jnp.where(where.reshape(where.shape + (1,) * (a.ndim - 2)), a, b)

    return jax.tree.map(pick, new, old)
