"""Counts that share instances: the root of their covariance, and their lack of fit.

Cells of marginal tables overlap: two tables count the same events, so

    V = S diag(d) S' + diag(extra)

has an entry for every two cells with a common event. It falls into blocks of cells that are
connected by common events: tables that all have the campaign among their keys make a block for
each campaign. Within a block, cells of one table share no event, so the largest set of disjoint
cells that is at hand has a diagonal part D, and a factor needs dense work only for the border,
which are the other cells (V^-1 by its Schur complement, as Woodbury has it):

    V = ( D  C )      L = (  D^1/2        0  )      B = D^-1/2 C,   L2 L2' = E - B' B
        ( C' E )          (  B'           L2 )
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components

from unbag._rules import broken

if TYPE_CHECKING:
    from unbag.additive._terms import Sparse

LARGEST = 60_000_000
"""Entries of the dense part of a factor, half a gigabyte."""
# Share of its own variance that every cell gets beside: complete tables without noise repeat one
# sum, so V is singular along their difference. The residual has no part there, and neither has the
# Jacobian, so the ridge changes results by its own size only, where a pseudo-inverse would cost ten
# times as much.
RIDGE = 1e-9
SCORINGS, MANY = 8, 600  # steps of scoring for the lack of fit; with more than so many counts, one
TOGETHER = 256  # small blocks are factored together, so many counts at a time


class Border(NamedTuple):
    """The counts of one block of V: those of which no two share an instance, and the others."""

    disjoint: np.ndarray
    rest: np.ndarray


class Factor(NamedTuple):
    """The factor L of one block."""

    block: Border
    root: np.ndarray
    B: np.ndarray
    L: np.ndarray

    def whiten(self, A: np.ndarray) -> np.ndarray:
        """L^-1 A, disjoint counts first."""
        first = (A[self.block.disjoint].T / self.root).T
        return np.concatenate([first, _triangular(self.L, A[self.block.rest] - self.B.T @ first)])

    def adjoint(self, r: np.ndarray, out: np.ndarray) -> None:
        """L^-T r, written to the places of the block."""
        split = len(self.block.disjoint)
        rest = _triangular(self.L, r[split:], trans=1)
        out[self.block.rest] = rest
        out[self.block.disjoint] = ((r[:split] - self.B @ rest).T / self.root).T

    def diagonal(self, out: np.ndarray) -> None:
        """The diagonal of the inverse of the block, written to its places."""
        along = _triangular(self.L, self.B.T / self.root)
        out[self.block.disjoint] = 1 / self.root**2 + (along**2).sum(axis=0)
        inverse = _triangular(self.L, np.eye(len(self.L)))
        out[self.block.rest] = (inverse**2).sum(axis=0)


class BlockWhitener(NamedTuple):
    """The factor L of V, as a whitener: W = L^-1, one block after the other."""

    factors: tuple[Factor, ...]
    logdet: float

    def __call__(self, A: Any) -> Any:
        """W A, for a vector, a dense or a sparse matrix."""
        if sparse.issparse(A):
            A = A.toarray()
        return np.concatenate([factor.whiten(A) for factor in self.factors])

    def adjoint(self, r: np.ndarray) -> np.ndarray:
        """W' r, in the order of the counts."""
        out, start = np.empty_like(r), 0
        for factor in self.factors:
            stop = start + len(factor.root) + len(factor.L)
            factor.adjoint(r[start:stop], out)
            start = stop
        return out

    def diagonal(self) -> np.ndarray:
        """The diagonal of V^-1."""
        out = np.empty(sum(len(factor.root) + len(factor.L) for factor in self.factors))
        for factor in self.factors:
            factor.diagonal(out)
        return out


def _triangular(L: np.ndarray, A: np.ndarray, trans: int = 0) -> np.ndarray:
    if len(L) == 0:
        return A
    return linalg.solve_triangular(L, A, lower=True, trans=trans, check_finite=False)


def blocks_of(S: Sparse) -> list[Border]:
    """The blocks of V, and in each block disjoint counts, as many as a greedy choice gives.

    Counts that touch few others are chosen first, which is the table with the most cells.

    >>> S = sparse.csr_array(np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]))
    >>> alone, block = blocks_of(S)
    >>> block
    Border(disjoint=array([1, 2]), rest=array([0]))
    """
    pattern: Sparse = sparse.csr_array(S != 0).astype(np.int32)
    touch: Sparse = sparse.csr_array(pattern @ pattern.T)
    degree = np.diff(touch.indptr)
    free, chosen = np.ones(S.shape[0], bool), np.zeros(S.shape[0], bool)
    for j in np.lexsort((np.diff(pattern.indptr), degree)):
        if free[j]:
            chosen[j] = True
            free[touch.indices[touch.indptr[j] : touch.indptr[j + 1]]] = False
    _, block = connected_components(touch, directed=False)
    sizes = np.bincount(block)
    # blocks without overlap have no dense part, whatever their number
    alone = sizes == 1
    group = np.where(alone, 0, 1 + (np.cumsum(np.where(alone, 0, sizes)) - 1) // TOGETHER)
    of_count = np.unique(group[block], return_inverse=True)[1]
    borders = []
    for number in range(of_count.max() + 1):
        inside = of_count == number
        borders.append(Border(np.flatnonzero(inside & chosen), np.flatnonzero(inside & ~chosen)))
    _check_memory(borders)
    return borders


def _check_memory(borders: Sequence[Border]) -> None:
    """Refuse dense parts that would not fit into memory."""
    border = sum(len(one.rest) for one in borders)
    counts = border + sum(len(one.disjoint) for one in borders)
    entries = sum(len(one.rest) * (len(one.rest) + len(one.disjoint)) for one in borders)
    if entries > LARGEST:
        raise broken(
            f"Cells that overlap must have a dense covariance of at most {LARGEST:,} entries",
            f"{border:,} of {counts:,} cells overlap with others, which makes {entries:,}",
            "Leave out the table with the most small cells, make its keys coarser, or keep one "
            "large table: the cells of the largest cost little.",
        )


def factored(
    S: Sparse, d: np.ndarray, extra: np.ndarray, blocks: Sequence[Border]
) -> BlockWhitener:
    """The root of the inverse of S diag(d) S' + diag(extra).

    Parameters
    ----------
    S : scipy.sparse.csr_array
        Who is counted where.
    d : numpy.ndarray
        Variance of each instance.
    extra : numpy.ndarray
        Variance of each count beside that of its instances.
    blocks : sequence of Border
        Of V, see `blocks_of`.
    """
    own = S @ d
    diagonal = own + extra + RIDGE * own + 1e-12
    factors = tuple(_factor(S, d, diagonal, block) for block in blocks)
    logs = [np.log(one.root).sum() + np.log(np.diag(one.L)).sum() for one in factors]
    return BlockWhitener(factors, 2 * float(np.sum(logs)))


def _factor(S: Sparse, d: np.ndarray, diagonal: np.ndarray, block: Border) -> Factor:
    first, rest = block
    root = np.sqrt(diagonal[first])
    border = S[rest]
    weighted = border @ sparse.diags_array(d)
    B = np.asarray((S[first] @ weighted.T).todense()) / root[:, None]
    E = np.asarray((weighted @ border.T).todense())
    E[np.diag_indices_from(E)] = diagonal[rest]
    # the Schur complement of the disjoint counts: their own block is diagonal and costs nothing, so
    # as many of them as can be found stand first
    E -= B.T @ B
    L = linalg.cholesky(E, lower=True, overwrite_a=True, check_finite=False)
    return Factor(block, root, B, L)


class Linearised(NamedTuple):
    """Counts less their means as r = J b + e, e of covariance V + t diag(own^2), at one t.

    Parameters
    ----------
    whitener : BlockWhitener
        The root W of the inverse of the covariance of e.
    J : numpy.ndarray
        W times the derivative of the means by the coefficients.
    solve : function
        Of a right hand side x the solution of (J' J + prior precisions) b = x.
    """

    whitener: Any
    J: np.ndarray
    solve: Callable[[np.ndarray], np.ndarray]

    def __call__(self, r: np.ndarray) -> np.ndarray:
        """P r = K^-1 r, K the covariance of r, by Woodbury: W' (1 - J H^-1 J') W r."""
        white = self.whitener(r)
        return self.whitener.adjoint(white - self.J @ self.solve(self.J.T @ white))

    def diagonal(self) -> np.ndarray:
        """The diagonal of P."""
        A = self.whitener.adjoint(self.J)
        return self.whitener.diagonal() - np.einsum("mq,qm->m", A, self.solve(A.T))


def misfit_by_evidence(
    at: Callable[[float], Linearised], own: np.ndarray, r: np.ndarray, start: float
) -> float:
    """The lack-of-fit variance t that maximises the evidence of the linear model.

    With K the covariance of r, P = K^-1 and D = diag(own^2), Newton steps with the average of
    observed and expected information, which needs no trace of a product (average-information
    REML, Gilmour, Thompson and Cullis 1995):

        score = (r' P D P r - tr P D) / 2,   information = r' P D P D P r / 2

    Parameters
    ----------
    at : function of float
        The linear model at a lack-of-fit variance.
    own : numpy.ndarray
        Variance of each count without noise: a shift of all scores by s shifts it by s own.
    r : numpy.ndarray
        Counts less means, plus J b.
    start : float
        Where to start from.
    """
    D, t = own**2, start
    steps = 1
    if len(r) <= MANY:
        steps = SCORINGS
    for _ in range(steps):
        P = at(t)
        z = P(r)
        score = float((D * z**2).sum() - D @ P.diagonal())
        information = float((D * z) @ P(D * z))
        before, t = t, max(0.0, t + score / max(information, 1e-300))
        if abs(t - before) < 1e-3 * max(t, 1e-6):
            break
    return t
