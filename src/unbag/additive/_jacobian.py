"""The derivative of the counts' means by the coefficients: sums of weighted rows over each count.

Columns that many counts touch are kept dense, the others sparse, where only the cells (count,
column) that some row touches are summed; which these are does not change from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from scipy import linalg, sparse
from scipy.linalg.blas import dsyrk  # pyright: ignore[reportAttributeAccessIssue]
from scipy.linalg.lapack import dpotri, dtrtri  # pyright: ignore[reportAttributeAccessIssue]

from unbag.additive._slots import CellSums, Slots, Sparse

if TYPE_CHECKING:
    from unbag.additive._counts import Counts, Diagonal
    from unbag.additive._terms import Design

# a column of the Jacobian with a larger share of entries than this is kept dense; the second where
# counts are fewer than coefficients, so that it is multiplied more often and takes less memory
DENSE, DENSE_OF_FEW = 0.15, 0.05
PARTS = 8  # of the rows, in the product of a sparse matrix with itself
AT_ONCE = 2**16  # entries of a matrix that are gathered at once: they stay in the CPU's cache
NARROW = 64  # slots of at most so many columns are kept dense as they are


class Products(NamedTuple):
    """J' J in blocks.

    Parameters
    ----------
    first, across, rest : numpy.ndarray
        Of the first coefficients, of the sparse ones with them, and of the sparse ones.
    """

    first: np.ndarray
    across: np.ndarray
    rest: np.ndarray

    def plus(self, others: Products) -> Products:
        """With those of further counts, in place: a copy of many takes longer than the sum."""
        for own, other in zip(self, others, strict=True):
            own += other
        return self

    def joined(self) -> np.ndarray:
        """J' J as one matrix."""
        if not len(self.rest):
            return self.first
        return np.block([[self.first, self.across.T], [self.across, self.rest]])

    def diagonal(self) -> np.ndarray:
        """Of J' J."""
        return np.append(np.diag(self.first), np.diag(self.rest))

    def dot(self, b: np.ndarray) -> np.ndarray:
        """J' J b."""
        split = len(self.first)
        one, two = b[:split], b[split:]
        return np.append(
            self.first @ one + self.across.T @ two, self.across @ one + self.rest @ two
        )


@dataclass(frozen=True, eq=False)
class Jacobian:
    """A matrix whose first columns are dense and the others sparse: faster than either alone.

    Parameters
    ----------
    sums : numpy.ndarray
        Of the dense columns of Z over each count.
    basis : sparse matrix
        Which turns these columns into coefficients; `dense` is the product, made where it is used.
    sparse : sparse matrix
        The other columns, whose coefficients are the columns of Z.
    alike : bool
        Whether the sparse columns are of one group, which shares its prior variance.
    """

    sums: np.ndarray
    basis: Sparse
    sparse: Sparse
    alike: bool = False

    @cached_property
    def dense(self) -> np.ndarray:
        """The derivatives by the first coefficients."""
        return self.sums @ self.basis

    @property
    def shape(self) -> tuple[int, int]:
        """Counts and coefficients."""
        return self.sums.shape[0], self.basis.shape[1] + self.sparse.shape[1]

    def dot(self, b: np.ndarray) -> np.ndarray:
        """J b."""
        split = self.basis.shape[1]
        return self.sums @ (self.basis @ b[:split]) + self.sparse @ b[split:]

    def tdot(self, r: np.ndarray) -> np.ndarray:
        """J' r."""
        return np.concatenate([self.basis.T @ (self.sums.T @ r), self.sparse.T @ r])

    def products(self) -> Products:
        """J' J."""
        T = self.basis
        first = T.T @ (self.sums.T @ self.sums) @ T
        return Products(
            first, (self.sparse.T @ self.sums) @ T, (self.sparse.T @ self.sparse).toarray()
        )

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        """Some of the dense columns."""
        return self.dense[:, chosen]

    @property
    def rest(self) -> int:
        """How many columns are sparse."""
        return self.sparse.shape[1]

    def outer(self, weight: np.ndarray) -> np.ndarray:
        """The lower triangle of J diag(weight) J', in the order of columns that LAPACK works in."""
        split = self.basis.shape[1]
        K, scaled = self.rest_outer(weight[split:]), self.dense * np.sqrt(weight[:split])
        return dsyrk(1.0, scaled.T, beta=1.0, c=K.T, trans=1, lower=1, overwrite_c=1)

    def rest_outer(self, weight: np.ndarray) -> np.ndarray:
        """The upper triangle of the same product of the sparse columns."""
        m = self.shape[0]
        K = np.zeros((m, m))
        if self.sparse.nnz:
            rest = sparse.csr_array(self.sparse, copy=True)
            rest.data *= np.sqrt(weight)[rest.indices]
            turned = sparse.csr_array(rest.T)
            # SciPy has no product of a matrix with itself: blocks of rows leave out most of what
            # is there twice
            for start, end in pairwise(np.linspace(0, m, PARTS + 1).astype(int)):
                K[start:end, start:] = (rest[start:end] @ turned[:, start:]).toarray()
        return K

    def quadratic(self, L: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The diagonal of J' (L L')^-1 J, with L the lower triangle and L L' = 1 + J diag(weight)
        J'; of sparse columns that are alike its mean, for each of them."""
        first, split = _squares_within(L, self.dense), self.basis.shape[1]
        others = float(weight[:split] @ first)
        return np.append(first, self.rest_quadratic(L, weight[split:], others))

    def rest_quadratic(self, L: np.ndarray, weight: np.ndarray, others: float = 0.0) -> np.ndarray:
        """The same of the sparse columns.

        Parameters
        ----------
        L : numpy.ndarray
            The lower triangle.
        weight : numpy.ndarray
            Of the sparse columns.
        others : float
            The sum of the weighted diagonal over the columns that L knows besides.
        """
        columns: Sparse = sparse.csc_array(self.sparse)
        if columns.nnz == 0:
            return np.zeros(columns.shape[1])
        if self.alike:
            # the trace of (L L')^-1 J diag(weight) J' is that of 1 - (L L')^-1, which tells what is
            # left for the sparse columns, at half of what the whole inverse takes
            inverse, _ = dtrtri(L, lower=1)
            total = len(L) - np.linalg.norm(inverse) ** 2 - others
            return np.full(len(weight), total / weight.sum())
        return _squares_between(dpotri(L, lower=1)[0], columns)

    def squares(self) -> np.ndarray:
        """The diagonal of J' J."""
        return np.concatenate([(self.dense**2).sum(axis=0), self.sparse.power(2).sum(axis=0)])


def _squares_within(L: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The diagonal of A' (L L')^-1 A."""
    inside = linalg.solve_triangular(L, A, lower=True, check_finite=False)
    return np.einsum("mq,mq->q", inside, inside)


def _squares_between(P: np.ndarray, columns: Sparse) -> np.ndarray:
    """The diagonal of A' P A, of a symmetric P whose lower triangle is given and a sparse A: of a
    level that c bags have only c^2 entries of P count."""
    count, row, value = np.diff(columns.indptr), columns.indices, columns.data
    flat, m = P.ravel(order="F"), len(P)
    of_column = np.repeat(np.arange(len(count)), count)
    total = np.bincount(of_column, value**2 * np.diag(P)[row], minlength=len(count))
    for c in np.unique(count[count > 1]):  # columns of equal c together
        equal, (i, j) = np.flatnonzero(count == c), np.tril_indices(c, -1)
        for part in np.array_split(equal, len(equal) * c * c // AT_ONCE + 1):
            place = columns.indptr[part][:, None] + np.arange(c)
            r, v = row[place].astype(np.int64), value[place]
            between = flat.take(r.take(i, axis=1) + (m * r).take(j, axis=1))
            both = v.take(i, axis=1) * v.take(j, axis=1)
            total[part] += 2 * np.einsum("pk,pk->p", both, between)
    return total


class CountBlock:
    """Some counts and their rows, which come count by count.

    Parameters
    ----------
    Z : Slots
        The rows of the design, those of all counts.
    start : numpy.ndarray
        Where the rows of each of these counts begin, and the end.
    counts : slice
        Which of all counts they are.
    """

    def __init__(self, Z: Slots, start: np.ndarray, counts: slice) -> None:
        self.rows, self.counts, self.number = slice(start[0], start[-1]), counts, len(start) - 1
        own = Z.take(self.rows)
        self.count = np.repeat(np.arange(self.number, dtype=np.int32), np.diff(start))
        self.narrow = [slot for slot in own.slots if slot.width <= NARROW]
        made = _cells(own, self.count)
        none = np.empty(0, np.int32)
        self.cells = [cells for cells, _, _ in made]
        self.cell_count = np.concatenate([none, *(count for _, count, _ in made)])
        self.cell_column = np.concatenate([none, *(column for _, _, column in made)])

    def touched(self, width: int) -> np.ndarray:
        """How many counts touch each column of Z."""
        touched = np.bincount(self.cell_column, minlength=width)
        for slot in self.narrow:
            touched[slot.start : slot.start + slot.width] = self.number
        return touched

    def arrange(self, frequent: np.ndarray, place: np.ndarray, width: tuple[int, int]) -> None:
        """Where each cell stands: in the dense matrix, or among the entries of the sparse one."""
        # whole numbers in four bytes where they fit: there may be a cell for each row
        count, column, self.width = self.cell_count, self.cell_column, width
        del self.cell_count, self.cell_column
        self.start = [place[slot.start] for slot in self.narrow]
        often, own = frequent[column], place.astype(np.int32)[column]
        self.often = np.flatnonzero(often).astype(np.int32)
        flat = np.min_scalar_type(-max(self.number, 2) * max(width[0], 1))  # 127 is the last int8
        self.target = count[often].astype(flat) * flat.type(width[0]) + own[often].astype(flat)
        rare = np.flatnonzero(~often).astype(np.int32)
        self.rare = rare[np.argsort(count[rare], kind="stable")]
        number = np.bincount(count[self.rare], minlength=self.number)
        self.indptr = np.concatenate([[0], np.cumsum(number)])
        self.indices = own[self.rare]

    def sums(self, weight: np.ndarray, of_count: Any = None) -> tuple[np.ndarray, Sparse]:
        """The sums of weighted rows over each count, dense columns and sparse ones apart.

        Parameters
        ----------
        weight : numpy.ndarray
            Of each row.
        of_count : numpy.ndarray, optional
            A weight of each of all counts.
        """
        if of_count is not None:
            weight = weight * of_count[self.counts][self.count]
        dense = np.zeros((self.number, self.width[0]))
        for slot, start in zip(self.narrow, self.start, strict=True):
            own = slot.by_count(self.count, self.number, weight)
            dense[:, start : start + slot.width] = own
        # the pattern was made once, by `arrange`; only the numbers change from step to step
        data = np.concatenate([np.empty(0), *(cells.sums(weight) for cells in self.cells)])
        dense.ravel()[self.target] = data[self.often]
        shape = (self.number, self.width[1])
        rest = sparse.csr_array((data[self.rare], self.indices, self.indptr), shape=shape)
        return dense, rest


class Split:
    """The sums over counts of the rows of a design, with coefficients in the order of the Jacobian:
    dense ones first.

    Parameters
    ----------
    design : Design
        Of the instances.
    counts : Counts
        Who is counted where.
    rows : int, optional
        About so many at a time, where the Jacobian is never needed as a whole.
    """

    def __init__(self, design: Design, counts: Counts, *, rows: int | None = None) -> None:
        S, width = counts.S, design.Z.shape[1]
        T: Sparse = sparse.csc_array(design.T)
        self.rows = None if counts.in_order else S.indices
        Z = design.Z if self.rows is None else design.Z.take(self.rows)
        number = 1 if rows is None else -(-S.nnz // rows)
        ends = np.searchsorted(S.indptr, np.linspace(0, S.nnz, number + 1))
        ends[0], ends[-1] = 0, S.shape[0]
        self.blocks = [
            CountBlock(Z, S.indptr[a : b + 1], slice(a, b)) for a, b in pairwise(np.unique(ends))
        ]
        # whitening mixes counts that overlap, and then no column stays sparse
        frequent, entries = np.ones(width, bool), np.diff(sparse.csr_array(T).indptr)
        if counts.disjoint:
            # a column of Z that several coefficients share (steps, ranks) cannot be half dense
            steps = entries > 1
            least = DENSE if T.shape[1] <= S.shape[0] else DENSE_OF_FEW
            touched = sum(block.touched(width) for block in self.blocks)
            frequent = (touched > least * S.shape[0]) | steps
        # columns of Z are sorted by how often they occur, and coefficients follow: those that a
        # frequent column touches are dense, all others have one rare column each
        kept = np.flatnonzero(frequent)
        basis = T[kept]
        dense = np.flatnonzero(np.diff(sparse.csc_array(basis).indptr))
        other = np.setdiff1d(np.arange(T.shape[1]), dense)
        self.basis: Sparse = sparse.csr_array(basis[:, dense])
        self.alike = len(np.unique(design.group[other])) == 1
        rare = ~frequent & (entries > 0)  # a level that no row has may have no coefficient
        place = np.where(frequent, np.cumsum(frequent), np.cumsum(rare)) - 1
        self.width = len(kept), len(other)
        for block in self.blocks:
            block.arrange(frequent, place, self.width)
        self.rare = sum(len(block.rare) for block in self.blocks)
        order = [
            chosen + k * T.shape[1] for chosen in (dense, other) for k in range(counts.classes)
        ]
        self.order = np.concatenate(order)
        """Where each coefficient of the Jacobian stands in b, flattened class by class."""

    def jacobians(
        self, counts: Counts, h: np.ndarray, whitener: Diagonal
    ) -> Iterator[tuple[slice, Jacobian]]:
        """Which counts, and the derivatives of their whitened means by the coefficients; of counts
        that are `simple`."""
        for block in self.blocks:
            rows = block.rows if self.rows is None else self.rows[block.rows]
            # the rows' weights are fewer than the sums
            dense, rest = block.sums(counts.slope(h[rows]), whitener.root)
            yield block.counts, Jacobian(dense, self.basis, rest, self.alike)

    def jacobian(self, counts: Counts, h: np.ndarray, whitener: Callable[[Any], Any]) -> Jacobian:
        """The derivative of the whitened means by the coefficients, of all counts as one block."""
        if counts.simple and whitener is not as_they_are:
            ((_, J),) = self.jacobians(counts, h, cast("Diagonal", whitener))
            return J
        (block,) = self.blocks
        order = slice(None) if self.rows is None else self.rows
        sums = [[block.sums(weight[order]) for weight in row] for row in counts.slopes(h)]
        dense, rest = sums[0][0]
        if len(sums[0]) > 1:
            dense = np.block([[part[0] for part in row] for row in sums])
            rest = sparse.block_array([[part[1] for part in row] for row in sums])
        basis = sparse.csr_array(sparse.block_diag([self.basis] * counts.classes))
        rest = sparse.csr_array(whitener(rest))
        return Jacobian(whitener(dense), basis, rest, self.alike)


def _cells(Z: Slots, count: np.ndarray) -> list[tuple[CellSums, np.ndarray, np.ndarray]]:
    """The cells that entries of wide slots, and of columns that are taken as they are, touch."""
    cells = []
    for slot in Z.slots:
        if slot.width > NARROW and slot.place is not None:
            place = slot.place.astype(np.int64)
            cells.append(CellSums.of(count, np.where(place < 0, -1, place + slot.start)))
    if Z.raw is not None:
        pair = np.repeat(np.arange(len(count)), np.diff(Z.raw.indptr))
        cells.append(CellSums.of(count[pair], Z.raw.indices.astype(np.int64), pair, Z.raw.data))
    return cells


def as_they_are(A: Any) -> Any:
    """No whitening."""
    return A
