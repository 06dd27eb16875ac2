"""Scores after an epoch in, what held-out bags and test labels say of them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unbag._rules import refuse
from unbag.bags import Bags, Kind
from unbag.losses import Loss
from unbag.metrics._paired import judge_all
from unbag.metrics._sums import predict
from unbag.training._sharding import fitting

Scores = Callable[[Any, Any], Any]
"""From the parameters of one seed and features to a row of scores for each rate."""

Hold = Callable[[Any], Any]


class Watcher:
    """What held-out bags and test labels say after each epoch, for the runs of every seed.

    The held-out reports never touch a model. `held_out` is the loss that they estimate; `choice` is
    what epochs are chosen by: the square loss plus the standard error of its difference to the
    consensus, which is the mean of the run's predictions so far. The estimate alone is a bad judge
    (`unbag.metrics._paired`; docs/training.md has numbers).

    loss : what models are judged by. calm_loss : what epochs are chosen by; bounded where the loss
        is not.
    hold : from features to what is given to the scores.
    """

    def __init__(
        self,
        held_out: Sequence[Bags] | None,
        test: Any,
        X: Any,
        *,
        loss: Loss,
        calm_loss: Loss,
        hold: Hold,
    ) -> None:
        self.held_out, self.loss, self.calm_loss = held_out or (), loss, calm_loss
        inside = {
            id(bags): bags.X if bags.X is not None else np.asarray(X)[bags.rows]
            for bags in self.held_out
        }
        for features in inside.values():
            _check_finite(np.asarray(features))
        once = {key: hold(features) for key, features in inside.items()}
        self.features = [once[id(bags)] for bags in self.held_out]
        self.test = (
            None if test is None else (hold(test[0]), jnp.asarray(np.asarray(test[1]), jnp.float32))
        )
        self.consensus: dict[tuple[int, int], np.ndarray] = {}

    def look(
        self, scores: Scores, params: Sequence[Any], epoch: int, kind: Kind
    ) -> dict[str, np.ndarray]:
        """Everything seen after an epoch, by seed and rate. params : those of each seed."""
        looks = [
            self._look(scores, of_seed, seed, epoch, kind) for seed, of_seed in enumerate(params)
        ]
        return {name: np.stack([look[name] for look in looks]) for name in looks[0]}

    def _look(
        self, scores: Scores, params: Any, seed: int, epoch: int, kind: Kind
    ) -> dict[str, np.ndarray]:
        seen: dict[str, np.ndarray] = {}
        if self.held_out:
            seen |= self._from_bags(
                np.asarray(scores(params, self.features[seed]), float), seed, epoch
            )
        if self.test is not None:
            X, y = self.test
            score = scores(params, X)
            seen["test_loss"] = np.asarray(
                jax.vmap(lambda s: jnp.mean(self.loss.value(s, y, kind=kind)))(score)
            )
            if kind == "binary":
                seen["test_auc"] = labelled_auc(score, y)
        return seen

    def _from_bags(self, score: np.ndarray, seed: int, epoch: int) -> dict[str, np.ndarray]:
        told = [self._judge(one, (seed, rate), epoch) for rate, one in enumerate(score)]
        return dict(zip(("held_out", "choice"), np.array(told).T, strict=True))

    def _judge(self, score: np.ndarray, run: tuple[int, int], epoch: int) -> tuple[float, float]:
        """The estimated loss of a run, and what its epochs are compared by."""
        if not np.isfinite(score).all():
            return np.nan, np.nan
        bags = self.held_out[run[0]]
        now = predict(score, self.loss, bags.kind)
        before = self.consensus.get(run, now)
        self.consensus[run] = before + (now - before) / epoch
        value = judge_all([score], bags, self.consensus[run], self.loss).value[0]
        return value, judge_all([score], bags, self.consensus[run], self.calm_loss).cautious()[0]


def _check_finite(X: np.ndarray) -> None:
    """One score that is not finite, and the held-out bags could choose no epoch at all."""
    if X.dtype.kind in "biu":
        return
    X = (X if X.dtype.kind == "f" else X.astype(float)).reshape(len(X), -1)
    finite = np.isfinite(X)
    refuse(
        "Features of held-out bags must be finite",
        ~finite.all(axis=1),
        thing="row",
        given=X[np.arange(len(X)), finite.argmin(axis=1)],
        remedy="Fill the gaps as in the features to train on.",
    )


def labelled_auc(score: Any, y: Any) -> np.ndarray:
    """The area under the ROC curve of each row of scores, ties counted half. On the host: XLA is
    slow at sorting.

    >>> labelled_auc(np.array([[0.1, 0.1, 0.7]]), np.array([0, 1, 1])).round(2)
    array([0.75])
    """
    score, positive = np.asarray(score), np.asarray(y) > 0.5
    high, low = np.sort(score[:, positive], axis=1), np.sort(score[:, ~positive], axis=1)
    below = lambda side: np.array(
        [np.searchsorted(b, a, side=side).sum() for a, b in zip(high, low, strict=True)]
    )
    return (below("left") + below("right")) / 2 / max(high.shape[1] * low.shape[1], 1)


class EpochBar:
    """A progress bar on stderr: epochs, the lowest losses seen so far, and the time left. It
    vanishes at the end."""

    def __init__(self, epochs: int) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("training", total=epochs)
        self.lowest: dict[str, float] = {}
        self.bar.start()

    def __call__(self, epoch: int, seen: dict[str, np.ndarray]) -> None:
        """Note an epoch."""
        for name, value in seen.items():
            if name in ("train", "held_out", "test_loss") and np.isfinite(value).any():
                self.lowest[name] = min(self.lowest.get(name, np.inf), float(np.nanmin(value)))
        text = ", ".join(f"{name} {value:.4f}" for name, value in self.lowest.items())
        self.bar.update(self.task, completed=epoch, description=f"lowest {text}")

    def __enter__(self) -> EpochBar:
        return self

    def __exit__(self, *error: object) -> None:
        """Take the bar away, whatever happened."""
        self.bar.stop()


def as_features(X: Any) -> jax.Array:
    """Features as a device array: floats in single precision; whole numbers (bucket numbers) stay
    so if they fit."""
    X = fitting(X)
    return jnp.asarray(X, jnp.int32 if X.dtype.kind in "iu" else jnp.float32)
