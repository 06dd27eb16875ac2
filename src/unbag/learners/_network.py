"""Networks as a learner: all folds on the same batches, stopped inside epochs by counts.

Every lane (a fold, or all bags, at one learning rate) sees the same rows; bags of its own fold have
weight 0, so they are scored by a network that never learned from their reports. After a few steps,
then at growing intervals, the level of each lane is set so that its mean prediction is the mean
report, and the likelihood of the counts of held-out bags says whether the lane is better than ever
(`unbag.training.FoldStopRule`). Without the level this likelihood is useless at large bags: an
error of the level counts once for each instance of a bag. Rates are not chosen but averaged, by
their likelihood. The final model is the mean over folds and over the networks of all bags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import jax
import numpy as np

from unbag import models
from unbag.bags import Bags
from unbag.boosting import level_shift
from unbag.learners._folds import (
    FEWEST,
    ByFolds,
    FoldFit,
    dense_strata,
    enough_in_strata,
    held_loss,
    mean_report,
)
from unbag.learners._network_model import NetworkColumns, NetworkForm, NetworkModel
from unbag.learners._protocol import Progress
from unbag.losses import LOSSES
from unbag.methods import METHODS, PROPER, Method
from unbag.training import FoldStopRule, Lanes, Objective, TrainingConfig

FEWEST_ROWS, FEWEST_BAGS = 2048, 16
"""A batch has at least so many rows, and at least so many bags on average."""
SHARPER = 1.15
"""Each look comes after so many times the steps of the one before."""
SAMPLE = 16_384
"""So many rows tell the level while a network learns; all rows tell that of the result."""
LEAST_SHARE = 1e-3
"""A network that counts for less is left out of a mean."""


@dataclass(frozen=True)
class NetworkLearner(ByFolds):
    """Small networks, stopped by the likelihood of the counts of other folds' bags.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    method : str
        Of training: "anchored", "upm", "easy", "matching" or "likelihood".
    loss : str or None
        Of training; by default the method's usual one.
    rates : tuple of float
        Learning rates, which are averaged by their likelihood.
    epochs : int
        Passes over the bags at most.
    batch : int, optional
        About how many rows a step sees; by default 2,048, or as many as 16 bags have.
    decay : float
        Weight decay of the embeddings of large categories; other parameters are held by the stop.
    folds : int
        Of `fit`; the caller of `fit_folds` has made them.
    seconds : float, optional
        After which no further step begins.
    """

    hidden: tuple[int, ...] = (32,)
    method: Method | Objective = "anchored"
    loss: str | None = None
    rates: tuple[float, ...] = (3e-3, 1e-2)
    epochs: int = 60
    batch: int | None = None
    decay: float = 1.0
    folds: int = 5
    seconds: float | None = None

    name = "network"

    @property
    def needs_random_bags(self) -> bool:
        """Whether the method does; one of your own is taken to, unless it says otherwise."""
        if callable(self.method):
            return getattr(self.method, "needs_random_bags", True)
        return METHODS[self.method].needs_random_bags

    def fit_folds(
        self, bags: Bags, fold: np.ndarray, *, seed: int = 0, progress: Progress | None = None
    ) -> FoldFit:
        """A model for each fold that never learned from the fold's bags, and the final one.

        See `fit_folds`.
        """
        columns, X = NetworkColumns.of(bags.X)
        outputs = bags.report.size // len(bags)
        form = columns.form(self.hidden, outputs)
        count = int(fold.max()) + 1
        kept, learned = self._learnable(replace(bags, X=_with_offset(X, bags)))
        if len(learned) < FEWEST or count < 2:
            trivial = _trivial(bags, columns, form)
            return FoldFit([trivial] * count, trivial)
        race = _Race(self, learned, fold[kept], form, count, seed)
        race.run(progress)
        of_folds = [race.fold_model(number, columns) for number in range(count)]
        return FoldFit(of_folds, race.final_model(columns))

    def _learnable(self, bags: Bags) -> tuple[np.ndarray, Bags]:
        """The bags that the method can use, and their numbers: a bag that is alone in its stratum
        has no mean to be compared with; methods for bags that are not random know no strata."""
        everything = np.arange(len(bags))
        if bags.stratum is None or not self.needs_random_bags:
            return everything, bags.without_strata()
        kept = enough_in_strata(bags, everything)
        if len(kept) == len(bags):
            return everything, bags
        return kept, dense_strata(bags.take(kept))


class _Race:
    """All lanes and what held-out bags say of them; the last fold's number means all bags."""

    def __init__(
        self,
        learner: NetworkLearner,
        bags: Bags,
        fold: np.ndarray,
        form: NetworkForm,
        folds: int,
        seed: int,
    ) -> None:
        self.learner, self.bags, self.form = learner, bags, form
        self.folds, self.rates = folds, len(learner.rates)
        self.learns = fold != np.arange(self.folds + 1)[:, None]
        without = bags.bare()
        self.held = [without.take(np.flatnonzero(~own)) for own in self.learns[:-1]]
        self.held_rows = [bags.rows_of(np.flatnonzero(~own)) for own in self.learns[:-1]]
        self.targets = [mean_report(bags, own) for own in self.learns]
        rng = np.random.default_rng([seed, 2])
        rows = len(bags.bag)
        self.sample = np.arange(rows)
        if rows > SAMPLE:
            self.sample = np.sort(rng.choice(rows, SAMPLE, replace=False))
        usual = max(FEWEST_ROWS, round(FEWEST_BAGS * float(np.mean(bags.size))))
        config = TrainingConfig(batch=learner.batch or usual, weight_decay=learner.decay)
        self.lanes = Lanes(
            [self._start(number, seed) for number, _ in self._runs()],
            bags,
            np.repeat(self.learns, self.rates, axis=0),
            [rate for _, rate in self._runs()],
            method=learner.method,
            loss=learner.loss,
            config=config,
            decayed=_embeddings,
            seed=seed,
        )
        self.rule = FoldStopRule(self.folds, self.rates)
        self.best = self.common = self.lanes.average

    def _runs(self) -> list[tuple[int, float]]:
        """Number of the fold and rate of each lane."""
        return [(n, rate) for n in range(self.folds + 1) for rate in self.learner.rates]

    def _start(self, number: int, seed: int) -> Any:
        """The first network of a fold; each fold has its own, which a mean over folds gains by."""
        kind = self.bags.kind
        start = LOSSES[PROPER[kind]].trivial_score(self.targets[number], kind=kind)
        key = int(np.random.default_rng([seed, number]).integers(2**31))
        network = self.form.make(key, start)
        if _has_offset(self.bags):
            return models.with_offset(network)
        return network

    def run(self, progress: Progress | None) -> None:
        """Steps and looks, until the best moment has long passed."""
        lanes, learner = self.lanes, self.learner
        end = np.inf
        if learner.seconds is not None:
            end = monotonic() + learner.seconds
        looks = 0
        while True:
            self._look()
            looks += 1
            if progress is not None:
                words = f"network: epoch {max(lanes.epoch, 1)}, step {lanes.steps}"
                progress(looks, None, words)
            if self.rule.finished() or lanes.epoch > learner.epochs or monotonic() > end:
                return
            lanes.advance(max(2, round(lanes.steps * (SHARPER - 1))))

    def _look(self) -> None:
        """Judge every fold's lanes by its bags, and keep the networks that are better than ever: by
        the other folds, and for the final model, which no bag judges, by all folds."""
        loss = np.stack([self._judged(number) for number in range(self.folds)])
        better = self.rule.better(self.lanes.steps, loss)
        by_all = np.broadcast_to(better[-1], better.shape)
        self.best = _chosen(better.ravel(), self.lanes.average, self.best)
        self.common = _chosen(by_all.ravel(), self.lanes.average, self.common)

    def _judged(self, number: int) -> np.ndarray:
        """Minus the log likelihood of a fold's counts under its lanes, each at its level."""
        params = self.lanes.take(self._own(number))
        known = self.learns[number][self.bags.bag[self.sample]]
        rows = self.sample[known]
        scores = self.lanes.scores(params, np.concatenate([rows, self.held_rows[number]]))
        held, losses = self.held[number], []
        for score in scores:
            shift = level_shift(score[: len(rows)], self.targets[number], self.bags.kind)
            losses.append(held_loss(score[len(rows) :] + shift, held.bag, held))
        return np.array(losses)

    def _own(self, number: int) -> list[int]:
        """The lanes of a fold."""
        return list(range(number * self.rates, (number + 1) * self.rates))

    def fold_model(self, number: int, columns: NetworkColumns) -> NetworkModel:
        """The mean over rates of a fold's networks, which know nothing of the fold's reports."""
        shares = self.rule.shares()[number]
        return self._mean(self.best, self._own(number), shares, self.learns[number], columns)

    def final_model(self, columns: NetworkColumns) -> NetworkModel:
        """The mean over rates and over all networks, at the moments that all folds prefer."""
        shares = np.tile(self.rule.shares()[-1], self.folds + 1) / (self.folds + 1)
        lanes = list(range(len(shares)))
        return self._mean(self.common, lanes, shares, self.learns[-1], columns)

    def _mean(
        self,
        params: Any,
        lanes: Sequence[int],
        shares: np.ndarray,
        learned: np.ndarray,
        columns: NetworkColumns,
    ) -> NetworkModel:
        """A weighted mean of networks, at the level of the bags learned from."""
        kept = shares > LEAST_SHARE * shares.max()
        where, weights = np.asarray(lanes)[kept], shares[kept] / shares[kept].sum()
        params = jax.tree.map(lambda leaf: np.asarray(leaf)[where], params)
        rows = self.bags.rows_of(np.flatnonzero(learned))
        score = np.tensordot(weights, self.lanes.scores(params, rows), axes=1)
        level = level_shift(score, mean_report(self.bags, learned), self.bags.kind)
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(params)]
        return NetworkModel(self.bags.kind, columns, self.form, leaves, weights, level)


def _trivial(bags: Bags, columns: NetworkColumns, form: NetworkForm) -> NetworkModel:
    """The model of bags that are too few: their mean."""
    mean = mean_report(bags)
    score = np.zeros((len(bags.bag), *mean.shape))
    if bags.offset is not None and _has_offset(bags):
        score = bags.offset
    level = level_shift(score, mean, bags.kind)
    return NetworkModel(bags.kind, columns, form, [], np.zeros(0), level)


def _has_offset(bags: Bags) -> bool:
    """Whether there is one that matters; class probabilities are blind to a common one."""
    return bags.offset is not None and bags.kind != "histogram"


def _with_offset(X: np.ndarray, bags: Bags) -> np.ndarray:
    """Features in single precision, with the offset as a last column."""
    X = X.astype(np.float32)
    if not _has_offset(bags):
        return X
    return np.column_stack([X, np.asarray(bags.offset, np.float32)])


def _embeddings(params: Any) -> Any:
    """Which parameters are tables of embeddings."""

    def is_table(path: Any, _: Any) -> bool:
        return any(getattr(key, "name", None) == "tables" for key in path)

    return jax.tree_util.tree_map_with_path(is_table, params)


def _chosen(better: np.ndarray, new: Any, old: Any) -> Any:
    """The new parameters of the lanes that are better, on the host."""

    def pick(a: Any, b: Any) -> np.ndarray:
        return np.where(better.reshape((-1,) + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, new, old)
