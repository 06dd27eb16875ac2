"""What held-out bags and test labels say of models in training, and the stop rule.

The stop rule, in full: at every look each run is judged on its held-out bags by the square loss (a
count by its own loss) plus the standard error of its difference to the consensus, which is the mean
of the run's predictions so far. That is `choice`. The model of the lowest `choice` is kept
(`StopRule.better`), and training ends when no run had a new lowest one for `patience` epochs
(`StopRule.finished`). Without held-out bags the last epoch is kept. The plain estimate is a bad
judge (`unbag.metrics.judge_all`; docs/training.md has numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unbag._rules import refuse
from unbag.bags import Bags, Kind
from unbag.losses import Loss
from unbag.metrics import judge_all, predict

Scores = Callable[[Any, Any], Any]
"""From the parameters of one seed and features to a row of scores for each rate."""

Hold = Callable[[Any], Any]
"""From features to what is given to the scores."""


class StopRule:
    """Which moment of each run is kept, and when nothing better is to be expected.

    Parameters
    ----------
    seeds, rates : int
        How many runs there are.
    patience : int, optional
        Epochs without any improvement after which training ends.
    """

    def __init__(self, seeds: int, rates: int, patience: int | None = None) -> None:
        self.patience, self.epoch, self.judged = patience, 0, False
        self.best_value = np.full((seeds, rates), np.inf)
        self.best_epoch = np.zeros((seeds, rates), int)

    def better(self, epoch: int, observed: dict[str, np.ndarray], alive: np.ndarray) -> np.ndarray:
        """Which of the runs that are alive are now better than ever before."""
        self.epoch, self.judged = epoch, "choice" in observed
        value = observed.get("choice", np.full(alive.shape, -float(epoch)))
        better = alive & np.isfinite(value) & (value < self.best_value)
        self.best_value = np.where(better, value, self.best_value)
        self.best_epoch = np.where(better, epoch, self.best_epoch)
        return better

    def finished(self) -> bool:
        """Whether held-out bags saw no run improve for too long."""
        if self.patience is None or not self.judged:
            return False
        return bool(self.epoch - self.best_epoch.max() >= self.patience)


class FoldStopRule:
    """Which moment of each fold's runs is kept: the one that the bags of the *other* folds prefer.

    So the predictions for a fold's bags are free of their reports. At each look, which may be
    inside an epoch, every fold says how likely its own counts are under its own runs; the mean with
    the look before counts, which is less noisy. A fold's moment is the best by the sum over the
    other folds; that of the runs that learn from all bags is the best by the sum over all folds.

    Parameters
    ----------
    folds, rates : int
        How many there are.

    Attributes
    ----------
    value, step : numpy.ndarray of (folds + 1, rates)
        The lowest sum, and after how many steps it was reached; the last row is for all bags.
    start : numpy.ndarray of (folds + 1,)
        The sums at the first look.
    """

    PATIENCE, MORE = 2.0, 64
    """Training ends at so many times the best moment, and these steps more, which are always taken:
    a network may learn nothing for a while."""

    def __init__(self, folds: int, rates: int) -> None:
        self.now = 0
        self.value = np.full((folds + 1, rates), np.inf)
        self.step = np.zeros((folds + 1, rates), int)
        self.start = np.full(folds + 1, np.inf)
        self.before: np.ndarray | None = None

    def better(self, step: int, loss: np.ndarray) -> np.ndarray:
        """Which runs are now better than ever before, (folds + 1, rates).

        Parameters
        ----------
        step : int
            Steps taken so far.
        loss : numpy.ndarray of (folds, rates)
            Minus the log likelihood of each fold's counts under its own runs.
        """
        self.now = step
        now = np.where(np.isfinite(loss), loss, np.inf)
        if self.before is None:
            self.before = now
        loss, self.before = (now + self.before) / 2, now
        judged = [np.delete(loss, fold, axis=0).sum(axis=0) for fold in range(len(loss))]
        judged = np.stack([*judged, loss.sum(axis=0)])
        if not np.isfinite(self.value).any():
            self.start = judged.min(axis=1)
        better = judged < self.value
        self.value = np.where(better, judged, self.value)
        self.step = np.where(better, step, self.step)
        return better

    def finished(self) -> bool:
        """Whether the best moment of the best rate has long passed."""
        best = self.step[-1, np.argmin(self.value[-1])]
        return bool(self.now >= self.PATIENCE * best + self.MORE)

    def shares(self) -> np.ndarray:
        """How much each rate counts in a mean over rates, (folds + 1, rates).

        In proportion to what it gained over the start: choosing one rate from few bags is a dice.
        """
        gain = np.maximum(self.start[:, None] - self.value, 0.0)
        best = gain.max(axis=1, keepdims=True)
        odds = np.where(best > 0, gain, 1.0)
        return odds / odds.sum(axis=1, keepdims=True)


class Validation:
    """What held-out bags and test labels say of the runs of every seed; it may look at any step.

    The held-out reports never touch a model. `held_out` is the loss that they estimate, `choice`
    what the stop rule goes by.

    Parameters
    ----------
    held_out : sequence of Bags
        Those of each seed; empty where none are held out.
    test : tuple of array, optional
        Features and labels.
    X : array, optional
        Features of held-out bags that have none of their own.
    kind : str
        Of the reports.
    loss : Loss
        What models are judged by.
    calm_loss : Loss
        What epochs are chosen by; bounded where the loss is not.
    hold : callable
        From features to what is given to the scores.
    """

    def __init__(
        self,
        held_out: Sequence[Bags],
        test: tuple[Any, Any] | None,
        X: Any,
        kind: Kind,
        loss: Loss,
        calm_loss: Loss,
        *,
        hold: Hold,
    ) -> None:
        self.held_out, self.loss, self.calm_loss = held_out, loss, calm_loss
        self.kind: Kind = kind
        once: dict[int, Any] = {}  # seeds may share their held-out bags
        for bags in held_out:
            if id(bags) not in once:
                own = np.asarray(X)[bags.rows] if bags.X is None else bags.X
                once[id(bags)] = hold(_finite(own))
        self.features = [once[id(bags)] for bags in held_out]
        self.test = None
        if test is not None:
            self.test = hold(test[0]), jnp.asarray(np.asarray(test[1]), jnp.float32)
        self.looks = 0
        self.consensus: dict[tuple[int, int], np.ndarray] = {}

    def look(self, scores: Scores, params: Any) -> dict[str, np.ndarray]:
        """What is observed now, by seed and rate.

        Parameters
        ----------
        scores : callable
            From the parameters of one seed and features to scores.
        params : pytree
            With leading axes (seeds, rates).
        """
        self.looks += 1
        if not self.held_out and self.test is None:
            return {}
        observed: dict[str, list[Any]] = {}

        def note(**values: Any) -> None:
            for name, value in values.items():
                observed.setdefault(name, []).append(value)

        for seed in range(len(jax.tree.leaves(params)[0])):
            own = _of_seed(params, seed)
            if self.held_out:
                score = np.asarray(scores(own, self.features[seed]), float)
                judged = np.array(
                    [self._judge(one, (seed, rate)) for rate, one in enumerate(score)]
                )
                note(held_out=judged[:, 0], choice=judged[:, 1])
            if self.test is not None:
                score, y = scores(own, self.test[0]), self.test[1]
                note(test_loss=_mean_losses(score, y, self.loss, self.kind))
                if self.kind == "binary":
                    note(test_auc=labelled_auc(score, y))
        return {
            name: np.stack([np.asarray(each) for each in values])
            for name, values in observed.items()
        }

    def _judge(self, score: np.ndarray, run: tuple[int, int]) -> tuple[float, float]:
        """The estimated loss of a run, and what its epochs are compared by."""
        if not np.isfinite(score).all():
            return np.nan, np.nan
        bags = self.held_out[run[0]]
        now = predict(score, self.loss, bags.kind)
        before = self.consensus.get(run, now)
        consensus = self.consensus[run] = before + (now - before) / self.looks
        value = judge_all([score], bags, consensus, self.loss).value[0]
        return value, judge_all([score], bags, consensus, self.calm_loss).cautious()[0]


def _finite(given: Any) -> Any:
    """Refuse features that are not finite: with one such score no epoch could be chosen."""
    X = np.asarray(given)
    if X.dtype.kind in "biu":
        return given
    if X.dtype.kind != "f":
        X = X.astype(float)
    finite = np.isfinite(X.reshape(len(X), -1))
    refuse(
        "Features of held-out bags must be finite",
        ~finite.all(axis=1),
        thing="row",
        given=X.reshape(len(X), -1)[np.arange(len(X)), finite.argmin(axis=1)],
        remedy="Fill the gaps as in the features to train on.",
    )
    return given


@jax.jit
def _of_seed(params: Any, seed: Any) -> Any:
    """The parameters of one seed, by one program."""
    return jax.tree.map(lambda leaf: leaf[seed], params)


@partial(jax.jit, static_argnums=(2, 3))
def _mean_losses(score: Any, y: Any, loss: Loss, kind: Kind) -> Any:
    return jax.vmap(lambda s: jnp.mean(loss.value(s, y, kind=kind)))(score)


def labelled_auc(score: Any, y: Any) -> np.ndarray:
    """The area under the ROC curve of each row of scores, ties counted half.

    On the host, because XLA is slow at sorting.

    Parameters
    ----------
    score : array of (runs, rows)
        Of each run.
    y : array of rows
        Labels, 0 or 1.

    >>> labelled_auc(np.array([[0.1, 0.1, 0.7]]), np.array([0, 1, 1])).round(2)
    array([0.75])
    """
    score, positive = np.asarray(score), np.asarray(y) > 0.5
    high, low = np.sort(score[:, positive], axis=1), np.sort(score[:, ~positive], axis=1)
    wins = [  # those below count on both sides, ties on one
        np.searchsorted(b, a, side="left").sum() + np.searchsorted(b, a, side="right").sum()
        for a, b in zip(high, low, strict=True)
    ]
    return np.array(wins) / 2 / max(high.shape[1] * low.shape[1], 1)
