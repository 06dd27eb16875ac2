"""Counts that share instances: the root of their covariance, and their lack of fit.

Cells of marginal tables overlap: two tables count the same events, so

    V = S diag(d) S' + diag(extra)

has an entry for every two cells with a common event. Cells of one table have none, so the largest
set of disjoint cells that is at hand has a diagonal block D in V, and a factor of V needs dense
work only for the border, which are the other cells:

    V = ( D  C )      L = (  D^1/2        0  )      B = D^-1/2 C,   L2 L2' = E - B' B
        ( C' E )          (  B'           L2 )
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from unbag._rules import broken
from unbag.learners._terms import Sparse

LARGEST = 60_000_000
"""Entries of the dense part of a factor, half a gigabyte."""
RIDGE = 1e-9
"""Share of its own variance that every cell gets beside: complete tables without noise repeat one
sum, so V is singular along their difference. The residual has no part there, and neither has the
Jacobian, so the ridge changes results by its own size only, where a pseudo-inverse would cost ten
times as much."""
SCORINGS, MANY = 8, 600
"""Steps of Fisher scoring for the lack of fit; with more than so many counts, one."""


class Bordered(NamedTuple):
    """The factor L of V, as a whitener: W = L^-1 in the order of `disjoint`, then `border`."""

    disjoint: np.ndarray
    border: np.ndarray
    root: np.ndarray
    B: np.ndarray
    factor: np.ndarray
    logdet: float

    def __call__(self, A: Any) -> Any:
        """W A, for a vector, a dense or a sparse matrix."""
        if sparse.issparse(A):
            A = A.toarray()
        first = (A[self.disjoint].T / self.root).T
        rest = A[self.border] - self.B.T @ first
        return np.concatenate([first, _triangular(self.factor, rest)])

    def adjoint(self, r: np.ndarray) -> np.ndarray:
        """W' r, in the order of the counts."""
        split, out = len(self.disjoint), np.empty_like(r)
        rest = _triangular(self.factor, r[split:], trans=1)
        out[self.border] = rest
        out[self.disjoint] = ((r[:split] - self.B @ rest).T / self.root).T
        return out


def _triangular(L: np.ndarray, A: np.ndarray, trans: int = 0) -> np.ndarray:
    if len(L) == 0:
        return A
    return linalg.solve_triangular(L, A, lower=True, trans=trans, check_finite=False)


def disjoint_counts(S: Sparse) -> tuple[np.ndarray, np.ndarray]:
    """Counts of which no two share an instance, as many as a greedy choice gives, and the others.

    Counts that touch few others are chosen first, which is the table with the most cells.

    >>> S = sparse.csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1]]))
    >>> disjoint_counts(S)
    (array([1, 2]), array([0]))
    """
    pattern: Sparse = sparse.csr_array(S != 0).astype(np.int32)
    touch: Sparse = sparse.csr_array(pattern @ pattern.T)
    degree = np.diff(touch.indptr)
    free, chosen = np.ones(S.shape[0], bool), np.zeros(S.shape[0], bool)
    for j in np.lexsort((np.diff(pattern.indptr), degree)):
        if free[j]:
            chosen[j] = True
            free[touch.indices[touch.indptr[j] : touch.indptr[j + 1]]] = False
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def check_memory(border: int, counts: int) -> None:
    """Refuse a dense part that would not fit into memory."""
    if border * counts > LARGEST:
        raise broken(
            f"Cells that overlap must have a dense covariance of at most {LARGEST:,} entries",
            f"{border:,} of {counts:,} cells overlap with others, which makes {border * counts:,}",
            "Leave out the table with the most small cells, make its keys coarser, or keep one "
            "large table: the cells of the largest cost little.",
        )


def factored(
    S: Sparse, d: np.ndarray, extra: np.ndarray, parts: tuple[np.ndarray, np.ndarray]
) -> Bordered:
    """The root of the inverse of S diag(d) S' + diag(extra).

    Parameters
    ----------
    S : scipy.sparse.csr_array
        Who is counted where.
    d : numpy.ndarray
        Variance of each instance.
    extra : numpy.ndarray
        Variance of each count beside that of its instances.
    parts : tuple of numpy.ndarray
        Disjoint counts and the others, see `disjoint_counts`.
    """
    first, rest = parts
    check_memory(len(rest), S.shape[0])
    own = S @ d
    diagonal = own + extra + RIDGE * own + 1e-12
    root = np.sqrt(diagonal[first])
    border = S[rest]
    weighted = border @ sparse.diags_array(d)
    B = np.asarray((S[first] @ weighted.T).todense()) / root[:, None]
    E = np.asarray((weighted @ border.T).todense())
    E[np.diag_indices_from(E)] = diagonal[rest]
    E -= B.T @ B
    L = linalg.cholesky(E, lower=True, overwrite_a=True, check_finite=False)
    logdet = 2 * float(np.log(root).sum() + np.log(np.diag(L)).sum())
    return Bordered(first, rest, root, B, L, logdet)


def misfit_by_evidence(
    V: np.ndarray, own: np.ndarray, J: np.ndarray, spread: np.ndarray, r: np.ndarray, start: float
) -> float:
    """The lack-of-fit variance t that maximises the evidence of the linear model.

    The counts less their means have the law of r = J b + e, where the coefficients b are normal
    with variances `spread` (infinite for those that are flat) and e has covariance V + t D. Fisher
    scoring, with K the covariance of r and P = K^-1 less what the flat coefficients take:

        score = (r' P D P r - tr P D) / 2,   information = tr(P D P D) / 2,   D = diag(own^2)

    Parameters
    ----------
    V : numpy.ndarray
        Covariance of the counts without lack of fit.
    own : numpy.ndarray
        Variance of each count without noise: a shift of all scores by s shifts it by s own.
    J : numpy.ndarray
        Derivative of the means by the coefficients.
    spread : numpy.ndarray
        Prior variance of each coefficient, infinite where there is none.
    r : numpy.ndarray
        Counts less means, plus J b.
    start : float
        Where to start from.
    """
    flat = ~np.isfinite(spread)
    base = V + (J[:, ~flat] * spread[~flat]) @ J[:, ~flat].T
    u, D, t = J[:, flat], own**2, start
    steps = 1
    if len(r) <= MANY:
        steps = SCORINGS
    for _ in range(steps):
        K = base.copy()
        K[np.diag_indices_from(K)] += t * D
        P = _inverse(K)
        Pu = P @ u
        P -= Pu @ np.linalg.solve(u.T @ Pu, Pu.T)
        z = P @ r
        score = float((D * z**2).sum() - (D * np.diag(P)).sum())
        information = float(D @ (P**2) @ D)
        before, t = t, max(0.0, t + score / max(information, 1e-300))
        if abs(t - before) < 1e-3 * max(t, 1e-6):
            break
    return t


def _inverse(K: np.ndarray) -> np.ndarray:
    """Of a symmetric positive matrix, scaled to a diagonal of ones for its rounding error."""
    scale = 1 / np.sqrt(np.diag(K))
    L = linalg.cholesky(K * np.outer(scale, scale), lower=True, check_finite=False)
    inverse, _ = linalg.get_lapack_funcs(("potri",), (L,))[0](L, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    return inverse * np.outer(scale, scale)
