"""Boosted trees as a learner: LightGBM on the gradient of `unbag.boosting`, all folds at once.

Every fold's booster grows on the same binned data; bags of its own fold have gradient and hessian
0, so their rows are scored for free and never learned from. After some rounds the level is set so
that the mean prediction is the mean report (boosting on residuals of bags loses it). The likelihood
of the counts of held-out bags says when to stop; for each fold the *other* folds say it, so that a
fold's predictions stay free of its own reports. The final model is the mean of the fold models.

One thread for each booster and one booster for each core: OpenMP's threads wait for each other in
every round, which made a fit ten times slower on a machine that had other work to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy import sparse

from unbag._arrays import blocks
from unbag.bags import Bags, Kind, Reports
from unbag.boosting import BagObjective, level_shift
from unbag.learners._booster_text import check_booster
from unbag.learners._folds import (
    FEWEST,
    ByFolds,
    FoldFit,
    dense_strata,
    enough_in_strata,
    held_loss,
)
from unbag.learners._protocol import Progress
from unbag.tables import FeaturePlan, is_matrix, plan_features

JUDGED = 5  # held-out bags are asked after so many rounds; in between little changes
# from so many bags on, trees of depth 3 are tried beside stumps; fewer bags cannot choose
MANY_BAGS = 500
# columns of at most so many levels (all) are split into one level against the rest: sorting levels
# by their noisy gradients fits noise (Adult at bags of 64: .338 against .322)
ONE_AGAINST_REST = 10**6
MOST_LEVELS, MOST_BUCKETS = 4096, 2**12
BIN = 3  # rows of a bin at least


@dataclass(frozen=True)
class TreeColumns:
    """How rows become the matrix that trees split: numbers and codes of levels, NaN for missing.

    Parameters
    ----------
    plan : FeaturePlan or None
        How the columns of a table are read; None for a matrix.
    """

    plan: FeaturePlan | None = None

    @staticmethod
    def of(X: Any) -> TreeColumns:
        """The columns of a table or matrix, made from its rows."""
        if is_matrix(X):
            return TreeColumns()
        return TreeColumns(plan_features(X, one_hot=MOST_LEVELS, most_buckets=MOST_BUCKETS))

    @property
    def _levels(self) -> dict[str, Any]:
        """What each column of the matrix is called, and its levels; None for a number."""
        return getattr(self.plan, "levels", {})

    @property
    def categorical(self) -> list[int]:
        """Which columns of the matrix hold codes of levels."""
        return [i for i, known in enumerate(self._levels.values()) if known is not None]

    @property
    def categorical_names(self) -> list[str]:
        """What these columns are called."""
        return [name for name, known in self._levels.items() if known is not None]

    def codes(self, X: Any) -> Iterator[tuple[str, np.ndarray]]:
        """Name and codes of each column of a table that holds levels."""
        known = set(self.categorical_names)
        if self.plan is not None:
            yield from (pair for pair in self.plan.narrow_columns(X) if pair[0] in known)

    def matrix(self, X: Any) -> Any:
        """The matrix of these rows."""
        if self.plan is None:
            return sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X, np.float64)
        matrix = np.empty((0, len(self._levels)))
        for place, (_, values) in enumerate(self.plan.narrow_columns(X)):
            if place == 0:
                matrix = np.empty((len(values), len(self._levels)))
            matrix[:, place] = _as_float(values)
        return matrix

    def settings(self) -> dict[str, Any]:
        """The columns as JSON can hold them."""
        return {"plan": self.plan and self.plan.to_json()}

    @staticmethod
    def restore(settings: dict[str, Any]) -> TreeColumns:
        """The columns that `settings` described."""
        text = settings["plan"]
        return TreeColumns(text and FeaturePlan.from_json(text))


def _as_float(values: np.ndarray) -> np.ndarray:
    """A column for LightGBM, which takes NaN for a level that it does not know."""
    if values.dtype.kind == "f":
        return values
    return np.where(values < 0, np.nan, values)


@dataclass(frozen=True, eq=False)
class TreesModel:
    """Boosted trees that learned from bags: the mean of several boosters.

    Parameters
    ----------
    kind : {"binary", "total", "histogram"}
        What the scores mean.
    columns : TreeColumns
        How rows are read.
    texts : tuple of str
        Each booster as LightGBM writes it, "" for one without a tree.
    levels : numpy.ndarray
        What is added to the scores of each booster, one row for each.
    """

    kind: Kind
    columns: TreeColumns
    texts: tuple[str, ...]
    levels: np.ndarray

    def __repr__(self) -> str:
        return f"TreesModel({len(self.texts)} boosters of {self.rounds} rounds; {self.kind})"

    @property
    def rounds(self) -> list[int]:
        """How many rounds each booster has."""
        return [0 if booster is None else booster.current_iteration() for booster in self._boosters]

    @cached_property
    def _boosters(self) -> list[Any]:
        if not any(self.texts):
            return [None] * len(self.texts)
        lightgbm = load_lightgbm()
        return [lightgbm.Booster(model_str=text) if text else None for text in self.texts]

    def dumps(self) -> list[dict[str, Any]]:
        """The trees of each booster as LightGBM describes them."""
        return [booster.dump_model() for booster in self._boosters if booster is not None]

    def scores(self, X: Any) -> np.ndarray:
        """Logits, log rates or class scores of rows."""
        matrix = self.columns.matrix(X)
        score = np.zeros((matrix.shape[0], *self.levels.shape[1:]))
        for booster, level in zip(self._boosters, self.levels, strict=True):
            score += level
            if booster is not None:
                score += booster.predict(matrix, raw_score=True)
        return score / len(self.levels)

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and settings; a booster is the text that LightGBM makes of it."""
        texts = {
            f"booster_{i}": np.frombuffer(text.encode(), np.uint8)
            for i, text in enumerate(self.texts)
        }
        return {"levels": self.levels, **texts}, {"kind": self.kind, **self.columns.settings()}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> TreesModel:
        """The model that `arrays` described; see `Model.restore`."""
        levels = np.asarray(arrays["levels"], float)
        texts = [arrays[f"booster_{i}"].tobytes().decode() for i in range(len(levels))]
        columns = TreeColumns.restore(settings)
        for text in filter(None, texts):
            check_booster(text, len(columns._levels) or None)
        return cls(settings["kind"], columns, tuple(texts), levels)

    @staticmethod
    def mean(models: Sequence[TreesModel]) -> TreesModel:
        """One model that predicts with the mean of the scores of several."""
        texts = tuple(text for model in models for text in model.texts)
        levels = np.concatenate([model.levels for model in models])
        return replace(models[0], texts=texts, levels=levels)


def load_lightgbm() -> Any:
    """LightGBM, or an ImportError that says what is missing."""
    try:
        import lightgbm
    except (ImportError, OSError) as error:  # its wheel needs libgomp, which slim images lack
        raise ImportError(
            f"LightGBM cannot be loaded ({error}), so there are no trees. Install libgomp1 with "
            "the system's package manager, or LightGBM with pip."
        ) from error
    return lightgbm


@dataclass(frozen=True)
class Trees(ByFolds):
    """Boosted trees by LightGBM, stopped by the bags of other folds.

    Parameters
    ----------
    rounds : int
        How many rounds there are at most.
    rate : float
        How much of a tree is taken.
    depth : tuple of int
        Depths to choose from; by default stumps, and from 500 bags on depth 3 too.
    patience : int
        Rounds without a better likelihood of held-out bags after which boosting stops.
    share : float
        Of the bags that a round listens to, drawn anew.
    folds : int
        Of `fit`; the caller of `fit_folds` has made them.
    seconds : float, optional
        After which no further round begins.
    threads : int, optional
        Boosters that grow at the same time; by default one for each core.

    Notes ----- A leaf knows as much as it has bags, not rows: it holds at least two bags' worth of
    rows, and the L2 penalty is worth four bags.
    """

    rounds: int = 400
    rate: float = 0.1
    depth: tuple[int, ...] = ()
    patience: int = 50
    share: float = 0.5
    folds: int = 5
    seconds: float | None = None
    threads: int | None = None

    name = "trees"
    needs_random_bags = True  # its gradient is GeneralUPM of residuals

    def fit_folds(
        self, bags: Bags, fold: np.ndarray, *, seed: int = 0, progress: Progress | None = None
    ) -> FoldFit:
        """A model for each fold that never learned from the fold's bags, and their mean.

        See `fit_folds`.
        """
        count, columns = int(fold.max()) + 1, TreeColumns.of(bags.X)
        grown: list[list[_Path]] = []
        data = None
        if len(bags) >= FEWEST and count > 1:
            data = _Data.of(columns, bags)
        if data is not None:
            end = monotonic() + self.seconds if self.seconds is not None else np.inf
            grown = [
                self._grow(data, fold, depth, seed, end, progress) for depth in self._depths(bags)
            ]
        models = [_chosen(grown, number, columns, bags) for number in range(count)]
        return FoldFit(list(models), TreesModel.mean(models))

    def _depths(self, bags: Bags) -> tuple[int, ...]:
        if self.depth:
            return self.depth
        return (1, 3) if len(bags) >= MANY_BAGS else (1,)

    def _grow(
        self,
        data: _Data,
        fold: np.ndarray,
        depth: int,
        seed: int,
        end: float,
        progress: Progress | None,
    ) -> list[_Path]:
        """All folds, side by side, until held-out bags have not become more likely for a while."""
        folds = range(int(fold.max()) + 1)
        grown = [_Growth(self, data, fold, number, depth, seed) for number in folds]
        with ThreadPoolExecutor(self.threads or _cores(), initializer=_quiet) as pool:
            for done in range(0, self.rounds + 1, JUDGED):
                list(pool.map(_Growth.advance, grown))
                curve = np.sum([one.curve for one in grown], axis=0)
                if progress is not None:
                    words = (
                        f"trees of depth {depth}: round {done}, loss {curve[-1] / len(fold):.4f}"
                    )
                    progress(done, self.rounds, words)
                if done - JUDGED * int(np.argmin(curve)) >= self.patience or monotonic() > end:
                    break
        return [one.path() for one in grown]


def _can_split(matrix: Any) -> bool:
    """Whether some column has values enough for two bins; LightGBM stops the program if none."""
    if sparse.issparse(matrix):
        return matrix.nnz > 0
    for column in matrix.T:
        known = column[~np.isnan(column)]
        if len(known) >= 2 * BIN and np.ptp(known) > 0:
            return True
    return False


def _quiet() -> None:
    """LightGBM keeps the level of its messages by thread, and sets it where data are made."""
    params = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 1}
    load_lightgbm().Dataset(np.zeros((2, 1)), params=params).construct()


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


class _Data(NamedTuple):
    """The bags, their rows bag by bag, and the binned rows, made once for all boosters."""

    reports: Reports
    start: np.ndarray
    """The first row of each bag, and the end."""
    blocks: list[slice]
    """Bags whose rows are worked on together; see `unbag._arrays.blocks`."""
    binned: Any
    offset: np.ndarray
    """Of each row; one for all where none was given."""

    @staticmethod
    def of(columns: TreeColumns, bags: Bags) -> _Data | None:
        """None where no column can be split."""
        if (np.diff(bags.bag) < 0).any():
            bags = bags.take(np.arange(len(bags)))
        matrix = columns.matrix(bags.X)
        # tables of the folds of another learner, which Arrow keeps although they are freed
        pa.default_memory_pool().release_unused()
        if not _can_split(matrix):
            return None
        params = {"max_bin": 63, "verbosity": -1, "num_threads": 1, "min_data_in_bin": BIN}
        binned = load_lightgbm().Dataset(
            matrix,
            categorical_feature=columns.categorical,
            # else columns of small tables are dropped, by a usual size of leaves that is not ours
            params=params | {"feature_pre_filter": False},
        )
        offset = np.zeros(1) if bags.offset is None else bags.offset
        if bags.kind == "histogram":
            offset = offset[:, None]
        first = np.concatenate([[0], np.cumsum(bags.size)])
        ends = np.searchsorted(first, [rows.stop for rows in blocks(len(bags.bag))])
        together = [slice(a, b) for a, b in pairwise(np.unique([0, *ends]))]
        return _Data(bags.reports, first, together, binned.construct(), offset.astype(np.float32))

    def rows(self, bags: slice) -> slice:
        """The rows of some bags."""
        return slice(self.start[bags.start], self.start[bags.stop])


class _Path(NamedTuple):
    """What is left of a booster: its trees, and of each look at held-out bags what these said."""

    kind: Kind
    text: str
    curve: list[float]
    levels: list[Any]

    def model(self, judged: int, columns: TreeColumns) -> TreesModel:
        """The model after the rounds that were made when held-out bags were asked this time."""
        rounds, text = JUDGED * judged, ""
        if rounds:
            booster = load_lightgbm().Booster(model_str=self.text)
            text = booster.model_to_string(num_iteration=rounds)
        return TreesModel(self.kind, columns, (text,), np.asarray(self.levels[rounds], float)[None])


class _Growth:
    """One booster that learns from some of the bags, and what the others say of each round.

    All arrays of rows hold all rows, in single precision: weights and gradients of bags that it
    does not learn from are 0. To gather the rows of each fold cost more than the trees did.
    """

    def __init__(
        self, trees: Trees, data: _Data, fold: np.ndarray, number: int, depth: int, seed: int
    ) -> None:
        reports, learns = data.reports, fold != number
        self.data, self.learns = data, learns
        self.held = reports.take(np.flatnonzero(~learns))
        self.learned = enough_in_strata(reports, np.flatnonzero(learns))
        self.listens = np.zeros(len(reports), np.float32)
        self.listens[self.learned] = 1
        draw = int(np.random.default_rng([seed, number]).integers(2**31))
        part = dense_strata(reports.take(self.learned))
        self.objective = BagObjective(part, share=trees.share, seed=draw)
        self.offset = data.offset
        classes = reports.report.shape[1] if reports.kind == "histogram" else 1
        self.shape = (reports.size.sum(), classes)[: 1 + (classes > 1)]
        self.level: Any = self.objective.start
        self.level = self.level + self._shift(np.broadcast_to(0.0, self.shape), steps=30)
        self.levels: list[Any] = []
        self.curve: list[float] = []
        params = _params(trees, self.objective, depth, draw, len(learns) / learns.sum())
        self.booster = load_lightgbm().Booster({**params, "num_class": classes}, data.binned)

    def advance(self) -> None:
        """Some rounds, and a look at the held-out bags before the first of them."""
        # two arrays of all rows for as long as it grows, column by column as LightGBM reads them
        made = tuple(np.empty(self.shape, np.float32, order="F") for _ in range(2))
        for _ in range(JUDGED):
            self.booster.update(fobj=lambda score, _: self._derivatives(np.asarray(score), *made))

    def _derivatives(
        self, score: np.ndarray, gradient: np.ndarray, curvature: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        looks = len(self.levels) % JUDGED == 0
        if looks:  # the level moves slowly, and setting it costs a third of a gradient
            self.level = self.level + self._shift(score, steps=2)
            self.curve.append(self._held_loss(score))
        self.levels.append(self.level)
        data, size, h = self.data, self.data.reports.size, curvature  # which takes its place
        mean = np.empty((len(size), *h.shape[1:]), np.float32)
        for bags in data.blocks:
            rows = data.rows(bags)
            h[rows] = self._predict(self._total(score, rows))
            mean[bags] = np.add.reduceat(h[rows], data.start[bags] - rows.start, axis=0)
        mean = mean.reshape(len(size), -1)[self.learned] / size[self.learned, None]
        own = self.objective.residual_weights(mean, draw=len(self.levels))
        by_bag = np.zeros((len(size), *own.shape[1:]), np.float32)
        by_bag[self.learned] = size[self.learned].sum() * own
        for bags in data.blocks:
            rows = data.rows(bags)
            missing = np.repeat(by_bag[bags], size[bags], axis=0)
            gradient[rows] = self.objective.curve.gradient(h[rows], missing)
            listens = np.repeat(self.listens[bags], size[bags])
            curvature[rows] = (self.objective.curvature(h[rows]).T * listens).T
        return gradient, curvature

    def _total(self, score: np.ndarray, rows: slice) -> np.ndarray:
        offset = self.offset if len(self.offset) == 1 else self.offset[rows]
        added = offset + np.asarray(self.level, np.float32)
        return np.add(score[rows], added, dtype=np.float32, casting="unsafe")

    def _predict(self, total: np.ndarray) -> np.ndarray:
        """Predictions in single precision, for which NumPy's exponential is the fastest."""
        if self.data.reports.kind != "binary":
            return self.objective.curve.predict(total)
        with np.errstate(over="ignore"):  # to infinity, and so to a probability of 0
            return 1 / (1 + np.exp(-total))

    def _totals(self, score: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """The scores of the rows of some bags, with offset and level."""
        data, size = self.data, self.data.reports.size
        parts = [
            self._total(score, data.rows(bags))[np.repeat(chosen[bags], size[bags])]
            for bags in data.blocks
        ]
        return np.concatenate(parts)

    def _held_loss(self, score: np.ndarray) -> float:
        held = self.held
        bag = np.repeat(np.arange(len(held)), held.size)  # rows are bag by bag
        return held_loss(self._totals(score, ~self.learns), bag, held)

    def _shift(self, score: np.ndarray, *, steps: int) -> Any:
        total = self._totals(score, self.listens > 0)
        return level_shift(total, self.objective.prior, self.data.reports.kind, steps=steps)

    def path(self) -> _Path:
        """What is left when it has grown."""
        kind, text = self.data.reports.kind, self.booster.model_to_string(num_iteration=-1)
        return _Path(kind, text, self.curve, self.levels)


def _chosen(grown: list[list[_Path]], number: int, columns: TreeColumns, bags: Bags) -> TreesModel:
    """The model of a fold, of the depth and after the rounds that the other folds prefer."""
    best, at, winner = np.inf, 0, None
    for paths in grown:
        judged = np.sum([one.curve for i, one in enumerate(paths) if i != number], axis=0)
        if judged.min() < best:
            best, at, winner = judged.min(), int(np.argmin(judged)), paths[number]
    if winner is not None:
        return winner.model(at, columns)
    level = np.asarray(BagObjective(bags).start, float)
    return TreesModel(bags.kind, columns, ("",), level[None])


def _params(
    trees: Trees, objective: BagObjective, depth: int, seed: int, spread: float
) -> dict[str, Any]:
    """LightGBM's parameters; rows of its own fold count in a leaf too, hence `spread`."""
    size, rows = float(np.mean(objective.bags.size)), int(objective.bags.size.sum())
    return {
        "objective": "none",
        "learning_rate": trees.rate,
        "max_depth": depth,
        "num_leaves": 2**depth,
        "min_data_in_leaf": max(1, round(spread * min(2 * size, rows / 20))),
        "lambda_l2": 4 * size * objective.unit,
        "cat_l2": 0.0,  # the penalty of all leaves is enough
        "max_cat_to_onehot": ONE_AGAINST_REST,
        "feature_fraction": 0.5,
        "seed": seed,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
