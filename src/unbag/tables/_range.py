"""Values that a model cannot use: numbers that features in single precision cannot hold, which are
missing in rows of any kind, and levels that were not there at training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from unbag.tables._encode import Column, narrow
from unbag.tables._plan import FeaturePlan
from unbag.tables._rules import count
from unbag.tables._sources import is_matrix, open_table
from unbag.tables._values import LARGEST, as_numbers, is_number


def in_range(X: Any) -> tuple[Any, tuple[str, ...]]:
    """Rows in which infinite numbers and those beyond 1e38 are missing, and a note on each column
    that has some. The numbers of a table stay: its plan reads them as missing, see `is_known`.

    Parameters
    ----------
    X : frame, Arrow table, NumPy array or sparse matrix
        One row for each instance.

    >>> in_range(np.array([[1.0, 2.0], [3.0, 1e39]]))[1]
    ('Column 1 has 1 value beyond 1e+38, first in row 1. Such values count as missing.',)
    """
    if not is_matrix(X):
        table = open_table(X)
        names = [field.name for field in table.schema if is_number(field.type)]
        read = table.read(names)
        return X, _notes((name, as_numbers(read[name], name=name)) for name in names)
    values: Any = X.data if sparse.issparse(X) else X
    if values.dtype.kind != "f":
        return X, ()
    # the ends are found without a copy of the matrix, and whether or not some numbers are NaN
    high, low = (end.reduce(values, axis=None, initial=0) for end in (np.fmax, np.fmin))
    if max(high, -low) <= LARGEST:
        return X, ()
    columns: Any = sparse.csc_array(X) if sparse.issparse(X) else X.reshape(len(X), -1)
    notes = _notes((j, _dense(columns[:, [j]])) for j in range(columns.shape[1]))
    X = X.copy()
    values = X.data if sparse.issparse(X) else X
    values[np.abs(values) > LARGEST] = np.nan
    return X, notes


def _dense(column: Any) -> np.ndarray:
    return (column.toarray() if sparse.issparse(column) else column).ravel()


def _notes(columns: Iterable[tuple[Any, np.ndarray]]) -> tuple[str, ...]:
    beyond = ((name, np.flatnonzero(np.abs(x) > LARGEST)) for name, x in columns)
    return tuple(beyond_note(name, len(rows), rows[0]) for name, rows in beyond if len(rows))


def beyond_note(name: Any, values: int, first: int) -> str:
    """The sentence on values of a column that count as missing.

    Parameters
    ----------
    name : str or int
        Of the column.
    values : int
        How many there are.
    first : int
        The row of the first.
    """
    return (
        f"Column {name} has {count(values, 'value')} beyond {LARGEST:g}, first in row {first}. "
        "Such values count as missing."
    )


class ColumnWatch:
    """Counts the values that a plan can use; `add` batches, then ask for `warnings`.

    Parameters
    ----------
    plan : FeaturePlan
        How the model reads its columns.
    """

    def __init__(self, plan: FeaturePlan) -> None:
        self.columns = [column for column in plan.used if column.kind in ("numeric", "category")]
        self.rows = 0
        self.known = dict.fromkeys([column.name for column in self.columns], 0)
        self.missing, self.beyond = dict(self.known), dict(self.known)
        self.first: dict[str, int] = {}  # row of the first number beyond measure, of each column

    def add(self, batch: pa.Table) -> None:
        """Look at one more batch."""
        for column in self.columns:
            self._count(column, batch[column.name])
        self.rows += batch.num_rows

    def _count(self, column: Column, values: pa.ChunkedArray) -> None:
        (read,) = narrow(column, values).values()
        if column.kind == "numeric":
            known = missing = np.isfinite(read)
            large = np.flatnonzero(np.abs(as_numbers(values, name=column.name)) > LARGEST)
            self.beyond[column.name] += len(large)
            if len(large):
                self.first.setdefault(column.name, self.rows + int(large[0]))
        else:
            known, missing = (read >= 0) & (read < len(column.values)), read < len(column.values)
        self.known[column.name] += int(known.sum())
        self.missing[column.name] += int((~missing).sum())

    def warnings(self) -> list[str]:
        """Sentences on columns without a value that the model can use, and on numbers beyond
        measure."""
        said = []
        for column in self.columns:
            name = column.name
            if not self.known[name]:
                what = "no value is one that the model knows"
                if self.missing[name] == self.rows:
                    what = "all values are missing"
                said.append(f"Column {name}: {what}. Check the export.")
            if self.beyond[name]:
                said.append(beyond_note(name, self.beyond[name], self.first[name]))
        return said
