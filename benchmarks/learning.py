"""What each learner reaches from bags, nothing chosen by labels: Adult, clicks, and digits.

    python benchmarks/learning.py [--out benchmarks/results/learning.csv] [--learners additive]
                                  [--tables adult clicks mnist] [--sizes 64 512] [--seeds 5]

Adult: test log loss from its raw columns; MNIST (even or odd): from its pixels, only when asked
for. Clicks (`make_conversions`): the share of the way from the trivial predictor to the true
probabilities, in log loss, with the slope of a logistic regression of the truth on the score and
the mean prediction over the truth's. Rows of other runs in the file stay. To add a learner, add a
line to LEARNERS.
"""

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rich.console import Console
from scipy import sparse
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import unbag
from unbag.datasets import load_mnist, make_conversions, read_adult
from unbag.learners import Additive, NetworkLearner, Trees
from unbag.tables import levels_of, narrow, plan_features

SIZES = (16, 64, 256, 512, 1024, 2048)
HEADER = ("table", "size", "learner", "value", "standard_error", "slope", "level", "seconds")


def additive(bags: unbag.Bags, labels: np.ndarray) -> Callable[[Any], np.ndarray]:
    """The additive model by evidence."""
    return Additive().fit(bags).scores


def trees(bags: unbag.Bags, labels: np.ndarray) -> Callable[[Any], np.ndarray]:
    """Boosted trees, stopped by the bags of other folds."""
    return Trees().fit(bags).scores


def default(bags: unbag.Bags, labels: np.ndarray) -> Callable[[Any], np.ndarray]:
    """What unbag.fit gives: additive and trees, combined from folds of bags."""
    return unbag.fit(bags).scores


def network(bags: unbag.Bags, labels: np.ndarray) -> Callable[[Any], np.ndarray]:
    """Perceptrons of 32 hidden units, anchored with the square loss."""
    return NetworkLearner().fit(bags).scores


def ridge(bags: unbag.Bags, labels: np.ndarray) -> Callable[[Any], np.ndarray]:
    """What one writes in an hour: least squares on bag counts, penalty from five folds of bags."""
    bags = bags.reported()
    bags = bags.take(np.arange(len(bags)))
    encode = _one_hot(bags.X)
    X, size = encode(bags.X), bags.size
    starts = np.cumsum(size) - size
    sums = sparse.csr_array((np.ones(len(bags.bag)), (bags.bag, np.arange(len(bags.bag))))) @ X
    sums = sums.toarray()
    noise = bags.noise if bags.noise is not None else np.zeros(len(bags))
    rate = float(np.clip(bags.prior, 1e-3, 1 - 1e-3))
    root = np.sqrt(size * rate * (1 - rate) + noise)
    A = np.column_stack([size, sums]) / root[:, None]
    y = (bags.report * size - rate * size) / root
    fold = np.random.default_rng(0).permutation(len(starts)) % 5
    penalties = 10.0 ** np.arange(-1, 5)
    error = [_held_out(A, y, fold, penalty) for penalty in penalties]
    b = _solve(A, y, penalties[int(np.argmin(error))])

    def scores(rows: Any) -> np.ndarray:
        mean = rate + b[0] + encode(rows) @ b[1:]
        return logit(np.clip(mean, rate / 20, 1 - (1 - rate) / 20))

    return scores


def labels(bags: unbag.Bags, labels: np.ndarray) -> Callable[[Any], np.ndarray]:
    """Logistic regression on all labels, one-hot levels and lines."""
    encode = _one_hot(bags.X)
    model = LogisticRegression(C=1.0, max_iter=1000).fit(encode(bags.X), labels)

    def scores(rows: Any) -> np.ndarray:
        return model.decision_function(encode(rows))

    return scores


LEARNERS: dict[str, Callable[..., Callable[[Any], np.ndarray]]] = {
    "additive": additive,
    "trees": trees,
    "network": network,
    "default": default,
    "ridge": ridge,
    "labels": labels,
}


def _one_hot(X: pa.Table) -> Callable[[pa.Table], sparse.csr_array]:
    """Levels one-hot, numbers as a scaled line."""
    plan = plan_features(X, one_hot=4096)

    def encode(rows: pa.Table) -> sparse.csr_array:
        blocks = []
        for column in plan.used:
            values = narrow(column, rows[column.name].combine_chunks())
            for name, levels in levels_of(column).items():
                if levels is None:
                    x = (values[name] - column.mean) / column.sd
                    blocks.append(sparse.csr_array(np.nan_to_num(x)[:, None]))
                else:
                    code = values[name]
                    row = np.flatnonzero(code >= 0)
                    entries = (np.ones(len(row)), (row, code[row]))
                    blocks.append(sparse.csr_array(entries, shape=(len(code), len(levels))))
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    return encode


def _solve(A: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    H = A.T @ A
    H[np.diag_indices_from(H)] += np.append(1e-6, np.full(A.shape[1] - 1, penalty))
    return np.linalg.solve(H, A.T @ y)


def _held_out(A: np.ndarray, y: np.ndarray, fold: np.ndarray, penalty: float) -> float:
    squares = 0.0
    for k in range(5):
        rest, held = fold != k, fold == k
        squares += float(((y[held] - A[held] @ _solve(A[rest], y[rest], penalty)) ** 2).sum())
    return squares


class Task(NamedTuple):
    """Bags with their labels, and rows to test on with labels or probabilities."""

    bags: unbag.Bags
    labels: np.ndarray
    test: pa.Table | np.ndarray
    truth: np.ndarray


def adult(size: int, seed: int) -> Task:
    (people, rich), (others, truth) = read_adult(), read_adult("test")
    bags = unbag.random_bags(pa.table(people), rich, size=size, seed=seed)
    return Task(bags, rich[bags.rows], pa.table(others), truth)


def clicks(size: int, seed: int) -> Task:
    made = make_conversions(seed=seed)
    return Task(made.bags(), made.label, made.test, made.test_truth)


def mnist(size: int, seed: int) -> Task:
    digits = load_mnist()
    bags = unbag.random_bags(digits.X, digits.y, size=size, seed=seed)
    return Task(bags, digits.y[bags.rows], digits.X_test, digits.y_test)


TASKS = {"adult": adult, "mnist": mnist, "clicks": clicks}
READ_TABLES = ("ridge", "labels")


def log_loss(score: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, score) - truth * score))


def slope(score: np.ndarray, truth: np.ndarray) -> float:
    """Of a logistic regression of the truth on the score."""
    A, b = np.column_stack([np.ones_like(score), score]), np.array([0.0, 1.0])
    for _ in range(30):
        h = expit(A @ b)
        b += np.linalg.solve((A.T * (h * (1 - h))) @ A, A.T @ (truth - h))
    return float(b[1])


def measure(task: Task, learner: str, *, way: bool) -> tuple[float, float, float, float]:
    """Test log loss or share of the way, slope, level and seconds."""
    start = time.perf_counter()
    scores = LEARNERS[learner](task.bags, task.labels)
    seconds = time.perf_counter() - start
    score = scores(task.test)
    value = log_loss(score, task.truth)
    if way:
        trivial = log_loss(np.full(len(score), logit(task.bags.prior)), task.truth)
        value = (trivial - value) / (trivial - log_loss(logit(task.truth), task.truth))
    return value, slope(score, task.truth), expit(score).mean() / task.truth.mean(), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--learners", nargs="+", default=tuple(LEARNERS), choices=tuple(LEARNERS))
    parser.add_argument("--tables", nargs="+", default=("adult", "clicks"))
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    sized = [table for table in ("adult", "mnist") if table in options.tables]
    jobs = [(table, k) for table in sized for k in options.sizes]
    jobs += [("clicks", 0)] if "clicks" in options.tables else []
    rows, console = read_rows(options.out), Console()
    for table, size in jobs:
        tasks = [TASKS[table](size, seed) for seed in range(options.seeds)]
        able = [one for one in options.learners if table != "mnist" or one not in READ_TABLES]
        for learner in able:
            runs = np.array([measure(task, learner, way=table == "clicks") for task in tasks])
            mean, error = runs.mean(axis=0), runs[:, 0].std(ddof=1) / np.sqrt(len(runs))
            cells = [f"{number:.4f}" for number in (mean[0], error, *mean[1:3])]
            rows[table, str(size), learner] = [*cells, f"{mean[3]:.1f}"]
            console.print(table, size, learner, *rows[table, str(size), learner])
            write_rows(options.out, rows)


def read_rows(path: Path | None) -> dict[tuple[str, ...], list[str]]:
    if path is None or not path.exists():
        return {}
    with path.open() as file:
        return {tuple(row[:3]): row[3:] for row in list(csv.reader(file))[1:]}


def write_rows(path: Path | None, rows: dict[tuple[str, ...], list[str]]) -> None:
    if path is None:
        return
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *([*key, *row] for key, row in rows.items())])


if __name__ == "__main__":
    main()
