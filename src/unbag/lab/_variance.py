"""How much the estimate from one bag varies, by bag size: the theory's claim, measured.

With the prior p and the means of f1, f2 known, a bag of k with proportion a says of the loss of a
fixed model

    GeneralUPM  E f1 + p E f2 + k (a - p) (mean f2 - E f2)
    EasyLLP     mean f1 + (k (a - p) + p) mean f2

The model is a logistic regression fitted to labels of the test part, so the bags' labels never
touched it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbag.datasets import Dataset
from unbag.lab._store import RunStore, typed
from unbag.losses import log

ROWS, BAGS = 5_000, 4_000


class BagDeviation(NamedTuple):
    """Standard deviation between bags of one size, of what they say of the log loss; `bags` were
    drawn."""

    task: str
    size: int
    bags: int
    upm: float
    easy: float


def measure(task: str, data: Dataset, store: RunStore) -> None:
    """Measure a task once, at the paper's bag sizes, and keep it in the store."""
    if not any(spread.task == task for spread in read(store)):
        spreads = bag_spread(task, data, [2**i for i in range(12) if 2 ** (i + 1) <= len(data.y)])
        store.write_table(
            task,
            "variance",
            [{**s._asdict(), "upm": f"{s.upm:.5f}", "easy": f"{s.easy:.5f}"} for s in spreads],
        )


def read(store: RunStore) -> list[BagDeviation]:
    """What was measured, for every task."""
    return [BagDeviation(**typed(BagDeviation, row)) for row in store.table("variance")]


def bag_spread(
    task: str, data: Dataset, sizes: Sequence[int], *, seed: int = 0
) -> list[BagDeviation]:
    """How much bags of each size differ in what they say of a fixed model's loss."""
    X, X_test = (part.reshape(len(part), -1) for part in (data.X, data.X_test))
    from sklearn.linear_model import LogisticRegression  # late: half of what the lab imports

    model = LogisticRegression(C=0.1, max_iter=200, tol=1e-3)
    model.fit(X_test[:ROWS], data.y_test[:ROWS])
    f = log.components(model.decision_function(X).astype(float))
    rng = np.random.default_rng(seed)
    return [BagDeviation(task, size, *_spread(f, data.y, size, rng)) for size in sorted(sizes)]


def _spread(
    f: np.ndarray, y: np.ndarray, size: int, rng: np.random.Generator
) -> tuple[int, float, float]:
    """Over bags from as many shuffles of the rows as make enough bags."""
    p, (E1, E2), in_one = y.mean(), f.mean(axis=0), len(y) // size
    upm, easy = [], []
    for _ in range(-(-BAGS // in_one)):
        rows = rng.permutation(len(y))[: in_one * size].reshape(in_one, size)
        a, (f1, f2) = y[rows].mean(axis=1), f[rows].mean(axis=1).T
        upm.append(E1 + p * E2 + size * (a - p) * (f2 - E2))
        easy.append(f1 + (size * (a - p) + p) * f2)
    values = [np.concatenate(each) for each in (upm, easy)]
    return len(values[0]), float(values[0].std(ddof=1)), float(values[1].std(ddof=1))
