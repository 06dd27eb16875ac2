"""Features of any kind as one table of numbers with names, and what was left out of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LEVELS = 20


class Features(NamedTuple):
    """Numbers per instance (dense, or sparse by rows), the name of each column, and what was left
    out."""

    values: Any
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_features(X: Any) -> Features:
    """An array, a sparse matrix or a data frame as a table of numbers.

    Text and categories become one column per level, the 20 most frequent ones. A missing number
    becomes the mean of its column, which moves no bag.

    >>> read_features(np.array([[1, 2], [3, 4]])).names
    ('x0', 'x1')
    """
    if X is None:
        return Features(np.empty((0, 0)), (), ("no features were given",))
    if hasattr(X, "tocsr"):
        return _sparse_without_gaps(X.tocsr().astype(float))
    if hasattr(X, "columns"):  # pandas, polars and Arrow tables alike
        columns = getattr(X, "column_names", None) or list(X.columns)
        return _from_columns({str(name): np.asarray(X[name]) for name in columns})
    values = np.asarray(X)
    values = values.reshape(len(values), -1)
    names = _numbered(values.shape[1])
    if values.dtype.kind not in "biuf":
        return _from_columns(dict(zip(names, values.T, strict=True)))
    return _without_gaps(values.astype(float), names, ())


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"x{i}" for i in range(count))


def _from_columns(columns: dict[str, np.ndarray]) -> Features:
    """Numbers as they are, and of text an indicator of each of the most frequent levels."""
    values, names, notes = [np.empty((len(next(iter(columns.values()), ())), 0))], [], []
    for name, column in columns.items():
        numeric = _as_numbers(column)
        if numeric is not None:
            values.append(numeric[:, None])
            names.append(name)
            continue
        text = column.astype(str)
        levels, number, count = np.unique(text, return_inverse=True, return_counts=True)
        kept = np.sort(np.argsort(-count, kind="stable")[:LEVELS])
        values.append((number[:, None] == kept).astype(float))
        names += [f"{name}={level}" for level in levels[kept].tolist()]
        if len(levels) > LEVELS:
            rarer = len(levels) - LEVELS
            notes.append(f"{name} has {rarer} rarer values, which were left out")
    return _without_gaps(np.hstack(values), tuple(names), tuple(notes))


def _as_numbers(column: np.ndarray) -> np.ndarray | None:
    """The column as numbers, or None for text and categories."""
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype("int64").astype(float))
    if column.dtype.kind in "biuf":
        return column.astype(float)
    if column.dtype == object and all(
        v is None or isinstance(v, int | float | np.number) for v in column
    ):
        return column.astype(float)
    return None


def _without_gaps(values: np.ndarray, names: tuple[str, ...], notes: tuple[str, ...]) -> Features:
    missing = ~np.isfinite(values)
    if not missing.any():
        return Features(values, names, notes)
    counts = np.maximum((~missing).sum(axis=0), 1)
    mean = np.where(missing, 0.0, values).sum(axis=0) / counts
    gaps = _gaps(int(missing.any(axis=0).sum()))
    return Features(np.where(missing, mean, values), names, (*notes, gaps))


def _sparse_without_gaps(values: Any) -> Features:
    """The same for a sparse matrix of our own, where what is not stored is a zero."""
    names, missing, column = _numbered(values.shape[1]), ~np.isfinite(values.data), values.indices
    if not missing.any():
        return Features(values, names)
    gaps = np.bincount(column[missing], minlength=len(names))
    total = np.bincount(column, weights=np.where(missing, 0.0, values.data), minlength=len(names))
    values.data[missing] = (total / np.maximum(values.shape[0] - gaps, 1))[column[missing]]
    return Features(values, names, (_gaps(int((gaps > 0).sum())),))


def _gaps(columns: int) -> str:
    return f"{columns} columns have missing values, taken as the mean of their column"
