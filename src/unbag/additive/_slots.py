"""The rows of a design in narrow form: a code in as few bytes as it needs, or a number (float32).

A row of Z has one entry at most in each slot: a level, a bin of a number, or the number itself. So
a table of twelve columns takes some forty bytes a row, where a sparse matrix would take 250.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from unbag._arrays import blocks

Sparse = Any  # a sparse matrix of SciPy, whose type does not know that it has a shape


class Slot(NamedTuple):
    """One entry of each row of Z.

    Parameters
    ----------
    start, width : int
        The columns of Z that it may lie in.
    place : numpy.ndarray or None
        The column of each row after `start`, -1 for none; None where it is always the first.
    value : numpy.ndarray or None
        Of each entry, float32; None where all are 1.
    """

    start: int
    width: int
    place: np.ndarray | None = None
    value: np.ndarray | None = None

    def score(self, level: np.ndarray) -> np.ndarray | float:
        """What the entry adds to the score of each row, from one number for each column of Z."""
        if self.value is not None:
            return self.value * level[self.start]
        if self.place is None:
            return level[self.start]
        own = np.append(level[self.start : self.start + self.width], 0.0)
        return own.take(self.place, mode="wrap")  # -1 is the last

    def sums(self, weight: np.ndarray) -> np.ndarray:
        """The sums of weighted entries over all rows, one for each of its columns."""
        if self.place is None:
            return np.sum(weight if self.value is None else weight * self.value)[None]
        return np.bincount(self.place.astype(np.intp) + 1, weight, minlength=self.width + 1)[1:]

    def by_count(self, count: np.ndarray, counts: int, weight: np.ndarray) -> np.ndarray:
        """The sums of weighted entries over the rows of each count, (counts, width).

        Parameters
        ----------
        count : numpy.ndarray
            Of each row, in order.
        counts : int
            How many there are.
        weight : numpy.ndarray
            Of each row.
        """
        sums, width = np.zeros((counts, self.width)), self.width + (self.place is not None)
        for rows in blocks(len(count)):
            first, last = count[rows.start], count[rows.stop - 1] + 1
            cell = (count[rows] - first).astype(np.intp) * width
            own = weight[rows]
            if self.place is not None:
                cell += self.place[rows]
                cell += 1
            if self.value is not None:
                own = own * self.value[rows]
            made = np.bincount(cell, own, minlength=(last - first) * width)
            sums[first:last] += made.reshape(last - first, width)[:, width - self.width :]
        return sums


@dataclass(frozen=True, eq=False)
class Slots:
    """The matrix Z of a design.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    slots : tuple of Slot
        The intercept first.
    raw : sparse matrix or None
        Columns of a matrix that are taken as they are, at their places in Z.
    """

    shape: tuple[int, int]
    slots: tuple[Slot, ...]
    raw: Sparse | None = None

    def __matmul__(self, level: np.ndarray) -> np.ndarray:
        """Z times a vector, or a matrix of few columns."""
        score = np.zeros((self.shape[0], *level.shape[1:]))
        for rows in blocks(self.shape[0]):
            slots = self._slots(rows)
            for own, out in zip(_columns(level), _columns(score[rows]), strict=True):
                for slot in slots:
                    out += slot.score(own)
        if self.raw is not None:
            score += self.raw @ level
        return score

    def tdot(self, weight: np.ndarray) -> np.ndarray:
        """Z' times a vector, or a matrix of few columns."""
        sums = np.zeros((self.shape[1], *weight.shape[1:]))
        for rows in blocks(self.shape[0]):
            slots = self._slots(rows)
            for own, out in zip(_columns(weight[rows]), _columns(sums), strict=True):
                for slot in slots:
                    out[slot.start : slot.start + slot.width] += slot.sums(own)
        if self.raw is not None:
            sums += self.raw.T @ weight
        return sums

    def mean(self) -> np.ndarray:
        """The mean of each column."""
        return self.tdot(np.broadcast_to(1.0, self.shape[0])) / max(self.shape[0], 1)

    def _slots(self, rows: Any) -> tuple[Slot, ...]:
        """The slots of some rows."""
        if isinstance(rows, slice) and rows == slice(0, self.shape[0]):
            return self.slots
        return tuple(
            slot._replace(**{name: array[rows] for name, array in _arrays(slot)})
            for slot in self.slots
        )

    def take(self, rows: Any) -> Slots:
        """Some rows, by their numbers or as a slice."""
        slots = self._slots(rows)
        raw = None if self.raw is None else sparse.csr_array(self.raw[rows])
        count = len(range(*rows.indices(self.shape[0]))) if isinstance(rows, slice) else len(rows)
        return Slots((count, self.shape[1]), slots, raw)

    def within(self, start: int, stop: int) -> Slots:
        """The entries that lie in some columns; the others are zero."""
        slots = tuple(slot for slot in self.slots if start <= slot.start < stop)
        raw = self.raw
        if raw is not None:
            kept = np.zeros(self.shape[1])
            kept[start:stop] = 1
            raw = sparse.csr_array(raw @ sparse.diags_array(kept))
        return replace(self, slots=slots, raw=raw)

    def with_levels(self, code: np.ndarray, levels: int) -> Slots:
        """The matrix with further columns, one for each code; -1 has none."""
        rows, width = self.shape
        raw = self.raw
        if raw is not None:
            raw = sparse.csr_array(
                (raw.data, raw.indices, raw.indptr), shape=(rows, width + levels)
            )
        slot = Slot(width, levels, as_places(code, levels))
        return Slots((rows, width + levels), (*self.slots, slot), raw)

    def csr(self) -> Sparse:
        """The same as a sparse matrix, six times as large."""
        one, row = np.ones(self.shape[0]), np.arange(self.shape[0])
        total: Sparse = sparse.csr_array(self.shape) if self.raw is None else self.raw
        for slot in self.slots:
            place = np.zeros_like(row) if slot.place is None else slot.place.astype(np.intp)
            value, there = one if slot.value is None else slot.value.astype(float), place >= 0
            where = (row[there], slot.start + place[there])
            total = total + sparse.csr_array((value[there], where), shape=self.shape)
        return sparse.csr_array(total)


def as_places(code: np.ndarray, width: int) -> np.ndarray:
    """Codes in the smallest type that holds them and -1."""
    return code.astype(np.min_scalar_type(-max(width, 1)))


def _columns(A: np.ndarray) -> Iterator[np.ndarray]:
    """The columns of a matrix, or a vector as its own: a loop over rows of one number is slow."""
    yield from [A] if A.ndim == 1 else A.T


def _arrays(slot: Slot) -> list[tuple[str, np.ndarray]]:
    known = {"place": slot.place, "value": slot.value}
    return [(name, array) for name, array in known.items() if array is not None]


class CellSums(NamedTuple):
    """The sums of entries that touch few of the cells (count, column): only those that they touch.

    Parameters
    ----------
    pair, value : numpy.ndarray or None
        Of each entry: which row of the counts it belongs to, None where each has one; and its
        value, None where all are 1.
    cell : numpy.ndarray
        Of each entry; one more than there are for an entry that is not there.
    number : int
        How many cells there are.
    """

    pair: np.ndarray | None
    value: np.ndarray | None
    cell: np.ndarray
    number: int

    @staticmethod
    def of(
        count: np.ndarray, column: np.ndarray, pair: Any = None, value: Any = None
    ) -> tuple[CellSums, np.ndarray, np.ndarray]:
        """The cells of entries, from the count and the column (-1 for none) of each; and count and
        column of each cell, by count."""
        width = int(column.max(initial=0)) + 1
        key = np.where(column < 0, -1, count.astype(np.int64) * width + column)
        unique, cell = np.unique(key, return_inverse=True)
        if len(unique) and unique[0] < 0:
            unique, cell = unique[1:], np.where(cell == 0, len(unique), cell) - 1
        where = (unique // width).astype(np.int32), (unique % width).astype(np.int32)
        return CellSums(pair, value, cell.astype(np.int32), len(unique)), *where

    def sums(self, weight: np.ndarray) -> np.ndarray:
        """Of each cell the sum of the weighted entries."""
        if self.pair is not None:
            weight = weight[self.pair]
        if self.value is not None:
            weight = weight * self.value
        return np.bincount(self.cell, weight, minlength=self.number + 1)[: self.number]
