"""What was seen in each epoch in, runs out: history, the best model so far, and who diverged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unbag.bags import Bags
from unbag.losses import Link

DIVERGED = 1e6
"""So far from 0 no objective comes, unless the loss is large by its nature (`objectives.trivial_value`)."""


@dataclass(frozen=True)
class Run:
    """A trained model and how it came about.

    model : after the epoch that held-out bags chose, or the last one. history : per epoch, `train`
        (the objective),
    `held_out` (loss estimated from held-out bags), `choice` (what the epoch is chosen by, see
    `unbag.training._validation`), and `test_loss`, `test_auc` where labelled test data were given.
    epoch : the one whose model this is, counted from 1. diverged : the epoch in which the training
        broke off, or None.
    bags_ : those it learned from, without features, where they have names, so that nobody evaluates
        on them.
    link : how its scores predict, which the name of a loss of your own does not tell.
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


class Record:
    """History, best models and divergence of all runs. limit : of the size of a sound objective."""

    def __init__(self, seeds: int, rates: int, params: Any, *, limit: float = DIVERGED) -> None:
        self.history: dict[str, list[np.ndarray]] = {}
        self.best, self.last = params, params
        self.best_value = np.full((seeds, rates), np.inf)
        self.best_epoch = np.zeros((seeds, rates), int)
        self.diverged = np.zeros((seeds, rates), int)
        self.epoch, self.limit = 0, limit

    def add(self, epoch: int, seen: dict[str, np.ndarray], state: Any) -> Any:
        """Note an epoch; a run that diverged in it goes back to its last good parameters, and stays
        there."""
        self.epoch = epoch
        finite = (
            _all_finite(state.params)
            & np.isfinite(seen["train"])
            & (np.abs(seen["train"]) < self.limit)
        )
        alive = (self.diverged == 0) & finite
        self.diverged = np.where((self.diverged == 0) & ~finite, epoch, self.diverged)
        params = _choose(alive, state.params, self.last)
        self.last = params
        for name, value in seen.items():
            self.history.setdefault(name, []).append(np.where(alive, value, np.nan))
        value = seen.get("choice", np.full(alive.shape, -float(epoch)))
        better = alive & np.isfinite(value) & (value < self.best_value)
        self.best_value = np.where(better, value, self.best_value)
        self.best_epoch = np.where(better, epoch, self.best_epoch)
        self.best = _choose(better, params, self.best)
        return state._replace(params=params, moments=jax.tree.map(jnp.nan_to_num, state.moments))

    def finished(self, patience: int | None) -> bool:
        """Whether nothing more is to be expected."""
        if (self.diverged > 0).all():
            return True
        return (
            patience is not None
            and "held_out" in self.history
            and self.epoch - self.best_epoch.max() >= patience
        )

    def runs(
        self,
        model_of: Callable[[Any], Any],
        method: Any,
        loss: str,
        seeds: Sequence[int],
        rates: Sequence[float],
        bags: Sequence[Bags],
        link: Link | None = None,
    ) -> list[list[Run]]:
        """One `Run` for each seed and rate. bags : those of each seed. link : of the scores."""
        remembered = [_named(each) for each in bags]
        best = jax.tree.map(
            np.asarray, self.best
        )  # one copy to the host: slices of device arrays cost 1 ms a run
        take = lambda s, r: model_of(jax.tree.map(lambda leaf: jnp.asarray(leaf[s, r]), best))
        return [
            [
                Run(
                    model=take(s, r),
                    method=getattr(method, "__name__", method),
                    loss=loss,
                    learning_rate=float(rate),
                    seed=int(seed),
                    epoch=int(self.best_epoch[s, r]),
                    history={
                        name: np.stack(values)[:, s, r] for name, values in self.history.items()
                    },
                    diverged=int(self.diverged[s, r]) or None,
                    bags_=remembered[s],
                    link=link,
                )
                for r, rate in enumerate(rates)
            ]
            for s, seed in enumerate(seeds)
        ]


def _named(bags: Bags) -> Bags | None:
    return None if bags.names is None or bags.size.max() == 1 else replace(bags, X=None)


def _all_finite(params: Any) -> np.ndarray:
    leaves = [
        jnp.all(jnp.isfinite(leaf), axis=tuple(range(2, leaf.ndim)))
        for leaf in jax.tree.leaves(params)
    ]
    return np.asarray(jnp.all(jnp.stack(leaves), axis=0))


def _choose(where: np.ndarray, new: Any, old: Any) -> Any:
    pick = lambda a, b: jnp.where(
        jnp.asarray(where).reshape(where.shape + (1,) * (a.ndim - 2)), a, b
    )
    return jax.tree.map(pick, new, old)
