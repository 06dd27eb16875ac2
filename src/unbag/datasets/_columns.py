"""Encodings of one column: numbers scaled, categories one-hot.

What an encoding needs to know it takes from the training part alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

Columns = tuple[np.ndarray, np.ndarray, list[str]]
"""The columns of the training part, those of the test part, and their names."""


def scaled(column: str, train: np.ndarray, test: np.ndarray) -> Columns:
    """(x - low) / (high - low) with the range of the training part; test values may fall outside.

    >>> scaled("age", np.array([20, 30]), np.array([35]))[1].tolist()
    [[1.5]]
    """
    low, high = float(train.min()), float(train.max())
    train, test = (
        ((x.astype(np.float64) - low) / ((high - low) or 1)).astype(np.float32)[:, None]
        for x in (train, test)
    )
    return train, test, [column]


def one_hot(column: str, train: np.ndarray, test: np.ndarray) -> Columns:
    """A column of 0 and 1 for each value of the training part; a new value of the test part gets
    zeros.

    >>> one_hot("sex", np.array(["f", "m"]), np.array(["m", "x"]))[1].tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    values = np.unique(train)
    train, test = ((x[:, None] == values).astype(np.float32) for x in (train, test))
    return train, test, [f"{column}={value}" for value in values]


def encode_columns(
    table: Mapping[str, np.ndarray], test: np.ndarray, categories: Collection[str]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The columns of a table side by side, categories one-hot and numbers scaled.

    Parameters
    ----------
    table : mapping of str to array
        The columns in their order.
    test : array of bool
        Which rows are for testing.
    categories : collection of str
        The columns that are one-hot.

    Returns
    -------
    tuple
        X, X_test and the names of the columns.
    """
    parts = []
    for name, column in table.items():
        encode = one_hot if name in categories else scaled
        parts.append(encode(name, column[~test], column[test]))
    train, tests, names = zip(*parts, strict=True)
    return np.hstack(train), np.hstack(tests), tuple(name for group in names for name in group)
