"""What each learner reaches from bags, nothing chosen by labels, on many tables.

    python benchmarks/learning.py [--out benchmarks/results/learning.csv] [--tables adult bike]
                                  [--learners additive default] [--sizes 64] [--seeds 0 1 2]
    python benchmarks/learning.py --summary benchmarks/results/learning.csv

One row for each table, size of bags, seed and learner: the test loss (log loss, or the Poisson
loss of totals) beside that of the trivial predictor, the share of the way from the trivial loss to
that of the true means where these are known, slope and level of the predictions, and CPU seconds.
Rows of other runs in the file stay. The tables are in learning_tasks.py, learning_more.py and
learning_real.py; to add a learner, add a line to LEARNERS. The summary is the mean over seeds, with
the standard error of the loss and of its difference to the trivial loss.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from learning_more import MORE_SIZES, MORE_TASKS
from learning_real import REAL_SIZES, REAL_TASKS
from learning_tasks import SIZES, TASKS, Task
from lightgbm import LGBMClassifier, LGBMRegressor
from rich.console import Console
from scipy import sparse
from scipy.special import expit, log_softmax, logit, softmax, xlogy
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import unbag
from unbag.learners import Additive, NetworkLearner, Trees
from unbag.learners._trees import TreeColumns
from unbag.tables import levels_of, narrow, plan_features

TASKS, SIZES = TASKS | MORE_TASKS | REAL_TASKS, SIZES | MORE_SIZES | REAL_SIZES
KEY = ("table", "size", "seed", "learner")
VALUES = ("loss", "trivial", "way", "slope", "level", "seconds")
Scores = Callable[[Any], np.ndarray]


def additive(task: Task) -> Scores:
    """The additive model by evidence."""
    return Additive().fit(task.bags).scores


def columns(task: Task) -> Scores:
    """The additive model without pairs of columns."""
    return Additive(pairs=0).fit(task.bags).scores


def trees(task: Task) -> Scores:
    """Boosted trees, stopped by the bags of other folds."""
    return Trees().fit(task.bags).scores


def default(task: Task) -> Scores:
    """What unbag.fit gives: learners combined from folds of bags."""
    return unbag.fit(task.bags).scores


def with_network(task: Task) -> Scores:
    """The default with a network however many bags there are."""
    return unbag.fit(task.bags, learner=("additive", "trees", "network")).scores


def network(task: Task) -> Scores:
    """Perceptrons of 32 hidden units, anchored with the square loss."""
    return NetworkLearner().fit(task.bags).scores


def network_log(task: Task) -> Scores:
    """The same, anchored with the log loss."""
    return NetworkLearner(loss="log").fit(task.bags).scores


def ridge(task: Task) -> Scores:
    """What one writes in an hour: least squares on bag counts, penalty from five folds of bags."""
    bags = task.bags.reported()
    bags = bags.take(np.arange(len(bags)))
    encode = _one_hot(bags.X)
    exposure = np.ones(len(bags.bag)) if bags.offset is None else np.exp(bags.offset)
    S = sparse.csr_array((exposure, (bags.bag, np.arange(len(bags.bag)))))
    size = np.asarray(S.sum(axis=1)).ravel()
    sums = (S @ encode(bags.X)).toarray()
    count = (bags.report.T * bags.size).T.reshape(len(bags), -1)
    noise = bags.noise if bags.noise is not None else np.zeros(len(bags))
    rate = np.clip(count.sum(axis=0) / size.sum(), 1e-3, None)
    spread = rate if bags.kind == "total" else rate * (1 - np.minimum(rate, 1 - 1e-3))
    fold = np.random.default_rng(0).permutation(len(bags)) % 5
    penalties, b = 10.0 ** np.arange(-1, 5), []
    for j, (r, v) in enumerate(zip(rate, spread, strict=True)):
        root = np.sqrt(size * v + noise)
        A, y = np.column_stack([size, sums]) / root[:, None], (count[:, j] - r * size) / root
        error = [_held_out(A, y, fold, penalty) for penalty in penalties]
        b.append(_solve(A, y, penalties[int(np.argmin(error))]))
    b = np.stack(b, axis=1)

    def scores(rows: Any) -> np.ndarray:
        mean = np.maximum(rate + b[0] + encode(rows) @ b[1:], rate / 20)
        if bags.kind == "total":
            return np.log(mean[:, 0])
        if bags.kind == "histogram":
            return np.log(mean / mean.sum(axis=1, keepdims=True))
        return logit(np.minimum(mean, 1 - (1 - rate) / 20))[:, 0]

    return scores


def labels(task: Task) -> Scores:
    """Logistic (or Poisson) regression on all labels, one-hot levels and lines."""
    bags = task.bags
    encode = _one_hot(bags.X)
    if bags.kind == "total":
        exposure = np.ones(len(bags.bag)) if bags.offset is None else np.exp(bags.offset)
        poisson = PoissonRegressor(alpha=1e-4, max_iter=1000)
        poisson.fit(encode(bags.X), task.labels / exposure, sample_weight=exposure)
        return lambda rows: encode(rows) @ poisson.coef_ + poisson.intercept_
    model = LogisticRegression(C=1.0, max_iter=1000).fit(encode(bags.X), task.labels)
    return lambda rows: model.decision_function(encode(rows))


def labels_trees(task: Task) -> Scores:
    """LightGBM as it comes, on all labels."""
    bags, columns = task.bags, TreeColumns.of(task.bags.X)
    X, options = columns.matrix(bags.X), {"verbose": -1, "n_jobs": 1}
    if bags.kind == "total":
        exposure = np.ones(len(bags.bag)) if bags.offset is None else np.exp(bags.offset)
        model = LGBMRegressor(objective="poisson", **options)
        model.fit(X, task.labels / exposure, sample_weight=exposure,
                  categorical_feature=columns.categorical)  # fmt: skip
    else:
        model = LGBMClassifier(**options)
        model.fit(X, task.labels, categorical_feature=columns.categorical)
    return lambda rows: np.asarray(model.predict(columns.matrix(rows), raw_score=True))


LEARNERS: dict[str, Callable[[Task], Scores]] = {
    "ridge": ridge,
    "labels": labels,
    "labels_trees": labels_trees,
    "additive": additive,
    "columns": columns,
    "trees": trees,
    "network": network,
    "network_log": network_log,
    "default": default,
    "with_network": with_network,
}


def _one_hot(X: Any) -> Callable[[Any], Any]:
    """Levels one-hot, numbers as a scaled line; a matrix as it is."""
    if not isinstance(X, pa.Table):
        scale = X.std(axis=0)
        return lambda rows: sparse.csr_array(rows / np.where(scale > 0, scale, 1))
    plan = plan_features(X, one_hot=4096)

    def encode(rows: pa.Table) -> Any:
        blocks = []
        for column in plan.used:
            values = narrow(column, rows[column.name].combine_chunks())
            for name, levels in levels_of(column).items():
                if levels is None:
                    x = (values[name] - column.mean) / column.sd
                    blocks.append(sparse.csr_array(np.nan_to_num(x)[:, None]))
                else:
                    code = values[name]
                    row = np.flatnonzero((code >= 0) & (code < len(levels)))
                    entries = (np.ones(len(row)), (row, code[row]))
                    blocks.append(sparse.csr_array(entries, shape=(len(code), len(levels))))
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    return encode


def _solve(A: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Ridge regression, where it is smaller: among the columns, or among the bags."""
    root = np.append(1e-3, np.full(A.shape[1] - 1, np.sqrt(penalty)))
    B = A / root
    if len(A) < A.shape[1]:
        return B.T @ np.linalg.solve(B @ B.T + np.eye(len(A)), y) / root
    return np.linalg.solve(B.T @ B + np.eye(B.shape[1]), B.T @ y) / root


def _held_out(A: np.ndarray, y: np.ndarray, fold: np.ndarray, penalty: float) -> float:
    squares = 0.0
    for k in range(5):
        rest, held = fold != k, fold == k
        squares += float(((y[held] - A[held] @ _solve(A[rest], y[rest], penalty)) ** 2).sum())
    return squares


def loss_of(score: np.ndarray, truth: np.ndarray, kind: str) -> float:
    """The mean test loss; `truth` are labels or true means."""
    if kind == "total":
        return float(np.mean(np.exp(score) - truth * score))
    if kind == "histogram":
        share = truth if truth.ndim == 2 else np.eye(score.shape[1])[truth.astype(int)]
        return float(-(share * log_softmax(score, axis=1)).sum(axis=1).mean())
    return float(np.mean(np.logaddexp(0, score) - truth * score))


def slope(score: np.ndarray, truth: np.ndarray) -> float:
    """Of a logistic regression of the truth on the score; NaN for a constant."""
    if np.ptp(score) < 1e-6 or np.ptp(truth) < 1e-6:
        return np.nan
    A, b = np.column_stack([np.ones_like(score), score]), np.array([logit(truth.mean()), 0.0])
    for _ in range(50):
        h = expit(A @ b)
        step = np.linalg.solve((A.T * (h * (1 - h))) @ A, A.T @ (truth - h))
        b += step * min(1, 1 / max(np.abs(step).max(), 1e-9))
    return float(b[1])


def trivial_score(task: Task) -> np.ndarray:
    """The score of the mean report, of every row to test on."""
    bags = task.bags.reported()
    mean = np.average(bags.report, axis=0, weights=bags.size)
    if bags.kind == "histogram":
        return np.tile(np.log(mean), (len(task.truth), 1))
    if bags.kind == "binary":
        return np.full(len(task.truth), logit(np.clip(mean, 1e-4, 1 - 1e-4)))
    if bags.offset is None or task.offset is None:
        return np.full(len(task.truth), np.log(mean))
    return np.log(mean / np.mean(np.exp(bags.offset))) + task.offset


def measure(task: Task, learner: str) -> list[float]:
    """The values of a row."""
    kind, start = task.bags.kind, time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = LEARNERS[learner](task)
    seconds = time.process_time() - start
    score = np.asarray(scores(task.test), float)
    if task.offset is not None:
        score = score + task.offset
    loss = loss_of(score, task.truth, kind)
    trivial, way, steep, level = loss_of(trivial_score(task), task.truth, kind), np.nan, np.nan, 1.0
    if task.known:
        sure = -xlogy(task.truth, task.truth) - xlogy(1 - task.truth, 1 - task.truth)
        if kind == "histogram":
            sure = -xlogy(task.truth, task.truth).sum(axis=1)
        way = (trivial - loss) / max(trivial - float(sure.mean()), 1e-12)
    if kind == "binary":
        steep, level = slope(score, task.truth), expit(score).mean() / task.truth.mean()
    if kind == "total":
        level = np.exp(score).mean() / task.truth.mean()
    if kind == "histogram" and task.truth.ndim == 2:
        level = (softmax(score, axis=1).mean(axis=0) / task.truth.mean(axis=0)).max()
    return [loss, trivial, way, steep, level, seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--summary", type=Path, help="print the means of this file and stop")
    parser.add_argument("--learners", nargs="+", default=tuple(LEARNERS), choices=tuple(LEARNERS))
    parser.add_argument("--tables", nargs="+", default=tuple(TASKS), choices=tuple(TASKS))
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    options = parser.parse_args()
    if options.summary:
        return summarise(options.summary)
    rows = read_rows(options.out)
    for table in options.tables:
        for size in options.sizes or SIZES[table]:
            for seed in options.seeds:
                task = TASKS[table](size, seed)
                for learner in options.learners:
                    values = [f"{value:.6g}" for value in measure(task, learner)]
                    Console().print(table, size, seed, learner, *values)
                    rows[table, str(size), str(seed), learner] = values
                    write_rows(options.out, rows)


def read_rows(path: Path | None) -> dict[tuple[str, ...], list[str]]:
    if path is None or not path.exists():
        return {}
    with path.open() as file:
        return {tuple(row[:4]): row[4:] for row in list(csv.reader(file))[1:]}


def write_rows(path: Path | None, rows: dict[tuple[str, ...], list[str]]) -> None:
    if path is None:
        return
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [(*KEY, *VALUES), *([*key, *row] for key, row in sorted(rows.items(), key=_order))]
        )


def _order(item: Any) -> tuple[Any, ...]:
    table, size, seed, learner = item[0]
    return list(TASKS).index(table), int(size), list(LEARNERS).index(learner), int(seed)


def summarise(path: Path) -> None:
    """The mean over seeds of each table, size and learner, with standard errors."""
    groups: dict[tuple[str, ...], list[list[float]]] = {}
    for (table, size, _, learner), values in read_rows(path).items():
        groups.setdefault((table, size, learner), []).append([float(v) for v in values])
    console = Console(width=140)
    console.print(
        "table size learner seeds loss (s.e.) less trivial (s.e.) way slope level seconds"
    )
    for key, values in groups.items():
        runs = np.array(values)
        mean, gain = runs.mean(axis=0), runs[:, 0] - runs[:, 1]
        error = [_error(runs[:, 0]), _error(gain)]
        console.print(
            *key, len(runs), f"{mean[0]:.4f} ({error[0]:.4f}) {gain.mean():+.4f} ({error[1]:.4f})",
            *(f"{value:.3f}" for value in mean[2:]),
        )  # fmt: skip


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


if __name__ == "__main__":
    main()
