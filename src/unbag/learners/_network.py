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
from dataclasses import asdict, dataclass, replace
from time import monotonic
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from unbag import models
from unbag._model_file import Misfit
from unbag._rules import broken
from unbag.bags import Bags, Kind
from unbag.boosting import level_shift
from unbag.learners._folds import FEWEST, FoldFit, folds_of, mean_report
from unbag.learners._protocol import Progress
from unbag.likelihood import count_likelihood
from unbag.losses import LOSSES
from unbag.methods import METHODS, PROPER, Method
from unbag.tables import FeaturePlan, plan_features
from unbag.training import FoldStopRule, Lanes, Objective, TrainingConfig

FEWEST_ROWS, FEWEST_BAGS = 2048, 16
"""A batch has at least so many rows, and at least so many bags on average."""
SHARPER = 1.15
"""Each look comes after so many times the steps of the one before."""
SAMPLE = 16_384
"""So many rows tell the level while a network learns; all rows tell that of the result."""
LEAST_SHARE = 1e-3
"""A network that counts for less is left out of a mean."""
BLOCK = 8192
"""Rows that are scored at once."""
MOST_ENTRIES = 2**29
"""Of a sparse matrix that is made dense."""


@dataclass(frozen=True)
class NetworkForm:
    """What a network looks like.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    outputs : int
        Scores of a row: 1, or one for each class.
    numbers : int
        How many columns are numbers; bucket numbers follow.
    buckets, dimensions : tuple of int
        Of each embedding.
    image : tuple of int
        Height, width and channels, where convolutions are wanted.
    """

    hidden: tuple[int, ...]
    outputs: int
    numbers: int
    buckets: tuple[int, ...] = ()
    dimensions: tuple[int, ...] = ()
    image: tuple[int, ...] = ()

    def make(self, key: int, start: Any) -> Any:
        """A network that starts at the trivial predictor; embeddings start at zero, so that a value
        that is rare or new adds nothing."""
        options: dict[str, Any] = {"key": key, "outputs": self.outputs, "start": start}
        if self.image:
            shape = cast(tuple[int, int, int], self.image)
            return models.Flat(models.cnn(shape, **options), shape)
        if not self.buckets:
            return models.mlp(self.numbers, self.hidden, **options)
        sizes = (self.numbers, self.buckets, self.dimensions)
        made = models.mixed_network(*sizes, widths=self.hidden, **options)
        zeros = tuple(jnp.zeros_like(table) for table in made.tables)
        return eqx.tree_at(lambda network: network.tables, made, zeros)


@dataclass(frozen=True, eq=False)
class NetworkColumns:
    """How rows become the matrix that a network takes: numbers around 0, then bucket numbers.

    All numbers are divided by one scale and not each by its own: what hardly varies, as the rim of
    an image, should hardly count.

    Parameters
    ----------
    plan : FeaturePlan or None
        How the columns of a table are read; None for a matrix or images.
    shape : tuple of int
        Of a row of a matrix or of images.
    mean : numpy.ndarray
        Of each number.
    scale : float
        The root of the mean variance of the numbers.
    """

    plan: FeaturePlan | None
    shape: tuple[int, ...]
    mean: np.ndarray
    scale: float

    @staticmethod
    def of(X: Any) -> tuple[NetworkColumns, np.ndarray]:
        """The columns of a table, matrix or images, and the matrix of these rows."""
        plan, shape = None, ()
        if isinstance(X, np.ndarray) or sparse.issparse(X):
            shape = tuple(X.shape[1:])
        else:
            plan = plan_features(X)
        columns = NetworkColumns(plan, shape, np.zeros(0), 1.0)
        raw = columns._raw(X)
        numbers = raw[:, : columns.numbers(raw.shape[1])]
        known = np.isfinite(numbers)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, numbers, 0).sum(axis=0, dtype=float) / count
        away = np.where(known, numbers - mean.astype(numbers.dtype), 0)
        largest = float(np.abs(away).max(initial=0)) or 1.0  # squares in single precision overflow
        away /= away.dtype.type(largest)
        scale = largest * float(np.sqrt((away**2).sum(dtype=float) / max(known.sum(), 1)))
        columns = replace(columns, mean=mean, scale=scale or 1.0)
        return columns, columns._centred(raw)

    def numbers(self, width: int) -> int:
        """How many of the columns are numbers."""
        if self.plan is None:
            return width
        return self.plan.numbers

    def form(self, hidden: tuple[int, ...], outputs: int, *, convolutions: bool) -> NetworkForm:
        """The form of a network for these columns."""
        if self.plan is not None:
            plan = self.plan
            return NetworkForm(hidden, outputs, plan.numbers, plan.buckets, plan.dimensions)
        if not convolutions:
            return NetworkForm(hidden, outputs, int(np.prod(self.shape)))
        if len(self.shape) != 3:
            raise broken(
                "Convolutions must have images of (rows, height, width, channels)",
                f"rows of shape {self.shape} given",
                "Give images, or leave {convolutions} out.",
            )
        return NetworkForm((), outputs, int(np.prod(self.shape)), image=self.shape)

    def matrix(self, X: Any) -> np.ndarray:
        """The matrix of rows, as those of training became it."""
        raw = self._raw(X)
        if self.plan is None and tuple(np.shape(X)[1:]) != self.shape:
            raise broken(
                f"Rows must have the shape {self.shape} of those learned from",
                f"{tuple(np.shape(X)[1:])} given",
                "Give the same columns.",
            )
        return self._centred(raw)

    def _raw(self, X: Any) -> np.ndarray:
        if self.plan is not None:
            return self.plan.apply(X)
        if sparse.issparse(X):
            X = _dense(X)
        X = np.asarray(X)
        if X.dtype != np.float32:
            X = X.astype(np.float64)
        return X.reshape(len(X), -1)

    def _centred(self, raw: np.ndarray) -> np.ndarray:
        """Numbers around 0, where a missing one is taken to be."""
        count = len(self.mean)
        numbers = (raw[:, :count] - self.mean.astype(raw.dtype)) / raw.dtype.type(self.scale)
        numbers = np.where(np.isfinite(numbers), numbers, 0)
        return np.concatenate([numbers, raw[:, count:]], axis=1)


def _dense(X: Any) -> np.ndarray:
    if np.prod(X.shape, dtype=float) > MOST_ENTRIES:
        raise broken(
            f"A sparse matrix for a network must have at most {MOST_ENTRIES:,} entries",
            f"{X.shape[0]:,} x {X.shape[1]:,} given",
            "Use the additive model or trees, or give the table itself.",
        )
    return X.toarray()


@dataclass(frozen=True, eq=False, repr=False)
class NetworkModel:
    """Networks that learned from bags: a weighted mean of their scores, and a level.

    Parameters
    ----------
    kind : {"binary", "total", "histogram"}
        What the scores mean.
    columns : NetworkColumns
        How rows are read.
    form : NetworkForm
        Of each network.
    leaves : list of numpy.ndarray
        Parameters, each with a leading axis of networks.
    weights : numpy.ndarray
        Of each network.
    level : numpy.ndarray
        Added to the mean: a number, or one for each class.
    """

    kind: Kind
    columns: NetworkColumns
    form: NetworkForm
    leaves: list[np.ndarray]
    weights: np.ndarray
    level: np.ndarray

    def __repr__(self) -> str:
        return f"NetworkModel({len(self.weights)} networks of {self.form.hidden}; {self.kind})"

    def scores(self, X: Any) -> np.ndarray:
        """Logits, log rates or class scores of rows, in double precision, so that they do not
        depend on which rows come together."""
        matrix = self.columns.matrix(X)
        shape = (len(matrix), *self.level.shape)
        if not len(self.weights) or not len(matrix):
            return np.broadcast_to(self.level, shape).copy()
        return self._mean(matrix) + self.level

    def _mean(self, matrix: np.ndarray) -> np.ndarray:
        params, static = eqx.partition(self.form.make(0, 0.0), eqx.is_inexact_array)
        structure, parts = jax.tree.structure(params), []
        with jax.enable_x64(True):
            leaves = [jnp.asarray(leaf, jnp.float64) for leaf in self.leaves]
            for start in range(0, len(matrix), BLOCK):
                X = jnp.asarray(matrix[start : start + BLOCK], jnp.float64)

                def one(own: list[Any], X: Any = X) -> Any:
                    return eqx.combine(jax.tree.unflatten(structure, own), static)(X)

                parts.append(np.tensordot(self.weights, np.asarray(jax.vmap(one)(leaves)), axes=1))
        return np.concatenate(parts)

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and settings that JSON can hold."""
        arrays = {f"leaf_{i}": leaf for i, leaf in enumerate(self.leaves)}
        arrays |= {"weights": self.weights, "level": self.level, "mean": self.columns.mean}
        plan = self.columns.plan
        settings = {
            "kind": self.kind,
            "form": asdict(self.form),
            "shape": list(self.columns.shape),
            "scale": self.columns.scale,
            "plan": plan and plan.to_json(),
        }
        return arrays, settings

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> NetworkModel:
        """The model that `arrays` described."""
        given = settings["form"]
        several = ("hidden", "buckets", "dimensions", "image")
        form = NetworkForm(**{**given, **{name: tuple(given[name]) for name in several}})
        text = settings["plan"]
        columns = NetworkColumns(
            text and FeaturePlan.from_json(text),
            tuple(settings["shape"]),
            np.asarray(arrays["mean"], float),
            settings["scale"],
        )
        count = sum(name.startswith("leaf_") for name in arrays)
        leaves = [np.asarray(arrays[f"leaf_{i}"]) for i in range(count)]
        level = np.asarray(arrays["level"], float)
        _check_leaves(form, leaves, len(arrays["weights"]))
        return cls(settings["kind"], columns, form, leaves, np.asarray(arrays["weights"]), level)


def _check_leaves(form: NetworkForm, leaves: list[np.ndarray], networks: int) -> None:
    """Refuse parameters of other shapes than the form has, before a network of it is built: a form
    is a few numbers and may ask for any amount of memory."""
    if max(len(form.hidden), len(form.buckets)) > len(leaves):
        raise Misfit("a network has more layers than arrays")
    made = jax.tree.leaves(eqx.filter_eval_shape(form.make, 0, 0.0))
    shapes = [(networks, *leaf.shape) for leaf in made if hasattr(leaf, "shape")]
    if networks and shapes != [leaf.shape for leaf in leaves]:
        raise Misfit("the arrays of a network have other shapes than its form")


@dataclass(frozen=True)
class NetworkLearner:
    """Small networks, stopped by the likelihood of the counts of other folds' bags.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    convolutions : bool
        Whether images go through the paper's convolutions instead of hidden layers; many times
        slower.
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
    convolutions: bool = False
    method: Method | Objective = "anchored"
    loss: str | None = None
    rates: tuple[float, ...] = (3e-3, 1e-2)
    epochs: int = 60
    batch: int | None = None
    decay: float = 1.0
    folds: int = 5
    seconds: float | None = None

    @property
    def name(self) -> str:
        """How the command line and reports call it."""
        return "network"

    @property
    def needs_random_bags(self) -> bool:
        """Whether the method does; one of your own is taken to, unless it says otherwise."""
        if callable(self.method):
            return getattr(self.method, "needs_random_bags", True)
        return METHODS[self.method].needs_random_bags

    def fit(self, bags: Bags, *, seed: int = 0, progress: Progress | None = None) -> NetworkModel:
        """The mean of the networks of folds of these bags, and of those that learn from all.

        Parameters
        ----------
        bags : Bags
            With a table, a matrix or images as features.
        seed : int
            Of the folds, the first parameters and the order of the bags.
        progress : Progress, optional
            Informed after each look at the held-out bags.
        """
        bags = bags.reported()
        fold = folds_of(bags, self.folds, seed=seed)
        return cast(NetworkModel, self.fit_folds(bags, fold, seed=seed, progress=progress).final)

    def fit_folds(
        self, bags: Bags, fold: np.ndarray, *, seed: int = 0, progress: Progress | None = None
    ) -> FoldFit:
        """A model for each fold that never learned from the fold's bags, and the final one.

        Parameters
        ----------
        bags : Bags
            With observed reports.
        fold : numpy.ndarray
            Fold number of each bag.
        seed, progress
            As in `fit`.
        """
        columns, X = NetworkColumns.of(bags.X)
        outputs = 1
        if bags.kind == "histogram":
            outputs = bags.report.shape[1]
        form = columns.form(self.hidden, outputs, convolutions=self.convolutions)
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
            return everything, replace(bags, **_NO_STRATA)
        count = np.bincount(bags.stratum)[bags.stratum]
        if count.min() >= 2:
            return everything, bags
        kept = np.flatnonzero(count >= 2)
        dense = np.unique(bags.stratum[kept], return_inverse=True)[1]
        return kept, replace(bags.take(kept), **{**_NO_STRATA, "stratum": dense})


_NO_STRATA: dict[str, Any] = {"stratum": None, "stratum_names": None, "known_prior": None}


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
        config = TrainingConfig(batch=self._batch(), weight_decay=learner.decay)
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

    def _batch(self) -> int:
        usual = max(FEWEST_ROWS, round(FEWEST_BAGS * float(np.mean(self.bags.size))))
        return self.learner.batch or usual

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
        held = self.held[number]
        report = held.components().report
        values = []
        for score in scores:
            shift = level_shift(score[: len(rows)], self.targets[number], self.bags.kind)
            value = count_likelihood(
                score[len(rows) :] + shift,
                held.bag,
                held.size,
                report,
                kind=held.kind,
                exact=1,
                noise=held.noise,
            )
            values.append(value.sum())
        return np.array(values)

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
        params = jax.tree.map(lambda leaf: leaf[where], params)
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
    """The new parameters of the lanes that are better."""

    def pick(a: Any, b: Any) -> Any:
        return jnp.where(better.reshape((-1,) + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, new, old)
