"""A column of the training and of the test part in, columns of numbers and their names out.

What an encoding needs to know it takes from the training part alone.
"""

from __future__ import annotations

import numpy as np

Columns = tuple[np.ndarray, np.ndarray, list[str]]


def scaled(column: str, train: np.ndarray, test: np.ndarray) -> Columns:
    """(x - low) / (high - low) with the range of the training part; test values may fall outside
    [0, 1].

    >>> scaled("age", np.array([20, 30]), np.array([35]))[1].tolist()
    [[1.5]]
    """
    train, test = train.astype(np.float64), test.astype(np.float64)
    low, high = train.min(), train.max()
    scale = lambda x: ((x - low) / ((high - low) or 1)).astype(np.float32)[:, None]
    return scale(train), scale(test), [column]


def one_hot(column: str, train: np.ndarray, test: np.ndarray) -> Columns:
    """A column of 0 and 1 for each value of the training part; a value seen only in the test part
    gets zeros.

    >>> one_hot("sex", np.array(["f", "m"]), np.array(["m", "x"]))[1].tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    values = np.unique(train)
    encode = lambda x: (x[:, None] == values).astype(np.float32)
    return encode(train), encode(test), [f"{column}={value}" for value in values]


def side_by_side(columns: list[Columns]) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """X, X_test and the names of all columns."""
    train, test, names = zip(*columns, strict=True)
    return np.hstack(train), np.hstack(test), tuple(name for group in names for name in group)
