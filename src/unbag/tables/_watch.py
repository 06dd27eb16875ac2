"""What the columns of rows to predict have in common with those of training."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unbag.tables._encode import Column, narrow
from unbag.tables._plan import FeaturePlan
from unbag.tables._range import beyond_note
from unbag.tables._values import LARGEST, as_numbers


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
                what = "missing" if self.missing[name] == self.rows else "one that the model knows"
                none = "all values are" if what == "missing" else "no value is"
                said.append(f"Column {name}: {none} {what}. Check the export.")
            if self.beyond[name]:
                said.append(beyond_note(name, self.beyond[name], self.first[name]))
        return said
