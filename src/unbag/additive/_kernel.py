"""The Jacobian of class histograms of few rows, by products of rows.

Of a bag j the derivative of the whitened counts is J_j = sum_i A_i (x) x_i', with A_i the
(classes - 1, classes) derivative by the scores of row i. The matrix J has classes times as many
columns as there are coefficients of one score, and blocks that all come of the same rows, so

    J diag(w) J' = sum_ii' A_i A_i'' k(i, i'),    k = X diag(w) X'

needs the products of rows once instead of products of blocks for every pair of classes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpotri  # pyright: ignore[reportAttributeAccessIssue]

from unbag.additive._counts import contrasts

if TYPE_CHECKING:
    from unbag.additive._counts import Blocks, Counts
    from unbag.additive._terms import Design

LARGEST = 2**25
"""Numbers in an array of rows by coefficients, or by counts and classes: a quarter of a
gigabyte."""


class RowProducts:
    """Rows of a design as a dense matrix, with what their order by bags is.

    Parameters
    ----------
    design : Design
        Of the instances.
    counts : Counts
        Histograms of bags whose rows come bag by bag.
    """

    def __init__(self, design: Design, counts: Counts) -> None:
        X = (design.Z.csr() @ design.T).toarray()
        self.X = X[counts.S.indices]
        self.rows, self.start = counts.S.indices, counts.S.indptr
        self.order = np.arange(design.T.shape[1] * counts.classes)

    @staticmethod
    def pays(design: Design, counts: Counts) -> bool:
        """Whether products of rows are fewer than those of the Jacobian's blocks."""
        n, q = counts.S.nnz, design.T.shape[1]
        m, C = counts.S.shape[0] * (counts.classes - 1), counts.classes
        if counts.kind != "histogram" or not counts.disjoint or n * max(n, q, m * C) > LARGEST:
            return False
        return m < q * C and 2 * n * n < m * m * C

    def jacobian(self, counts: Counts, h: np.ndarray, whitener: Blocks) -> KernelJacobian:
        """The derivative of the whitened means by the coefficients."""
        h, C = h[self.rows], counts.classes
        # of softmax: dh_c / ds_d = h_c (1[c = d] - h_d)
        mixed = h[:, :, None] * (np.eye(C) - h[:, None, :])
        size = np.diff(self.start)
        W = np.repeat(whitener.of_bag @ contrasts(C), size, axis=0)
        return KernelJacobian(self.X, self.start, W @ mixed)


class KernelJacobian:
    """J = sum_i A_i (x) x_i' over the rows of each bag; classes one after the other.

    Parameters
    ----------
    X : numpy.ndarray
        The rows, bag by bag.
    start : numpy.ndarray
        Where the rows of each bag begin, and the end.
    A : numpy.ndarray
        (rows, classes - 1, classes).
    """

    def __init__(self, X: np.ndarray, start: np.ndarray, A: np.ndarray) -> None:
        self._X, self._start, self._A = X, start, A

    @property
    def shape(self) -> tuple[int, int]:
        """Counts and coefficients."""
        _, K, C = self._A.shape
        return (len(self._start) - 1) * K, self._X.shape[1] * C

    @property
    def _bags(self) -> list[slice]:
        return [slice(a, z) for a, z in pairwise(self._start)]

    def dot(self, b: np.ndarray) -> np.ndarray:
        """J b."""
        C, m = self._A.shape[2], self.shape[0]
        of_class = b.reshape(C, self._X.shape[1], -1)
        score = np.stack([self._X @ one for one in of_class], axis=1)
        total = np.add.reduceat(self._A @ score, self._start[:-1], axis=0)
        return total.swapaxes(0, 1).reshape(m, *b.shape[1:])

    def tdot(self, r: np.ndarray) -> np.ndarray:
        """J' r."""
        _, K, C = self._A.shape
        of_bag = r.reshape(K, len(self._start) - 1, -1).swapaxes(0, 1)
        of_row = np.repeat(of_bag, np.diff(self._start), axis=0)
        of_score = self._A.swapaxes(1, 2) @ of_row
        sums = [self._X.T @ of_score[:, c] for c in range(C)]
        return np.concatenate(sums).reshape(-1, *r.shape[1:])

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        """Some columns of J."""
        unit = np.zeros((self.shape[1], len(chosen)))
        unit[chosen, np.arange(len(chosen))] = 1
        return self.dot(unit)

    def outer(self, weight: np.ndarray) -> np.ndarray:
        """J diag(weight) J', with weights that are the same for all classes."""
        (n, K, C), bags = self._A.shape, self._bags
        scaled = self._X * np.sqrt(weight[: self._X.shape[1]])
        # entry (j, l) is sum over i in j, i' in l of A_i k(i, i') A_i'': the rows meet only in k,
        # so that the coefficients, however many, are summed over once
        k = scaled @ scaled.T
        half, total = np.empty((len(bags), K * C, n)), np.empty((K, len(bags), K, len(bags)))
        for j, rows in enumerate(bags):
            half[j] = self._A[rows].reshape(-1, K * C).T @ k[rows]
        half = half.reshape(len(bags) * K, C, n)
        for j, rows in enumerate(bags):
            own = self._A[rows].transpose(2, 0, 1).reshape(-1, K)
            made = half[:, :, rows].reshape(len(half), -1) @ own
            total[:, :, :, j] = made.reshape(len(bags), K, K).swapaxes(0, 1)
        return total.reshape(self.shape[0], -1)

    def quadratic(self, L: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The diagonal of J' (L L')^-1 J, L a lower triangle; its mean over the classes, which
        share their prior, for each of them."""
        (n, K, C), bags = self._A.shape, self._bags
        P, _ = dpotri(L, lower=1)
        P = (np.tril(P) + np.tril(P, -1).T).reshape(K, len(bags), K, len(bags))
        half, R = np.empty((K, len(bags), C, n)), np.empty((n, n))
        for j, rows in enumerate(bags):
            own = self._A[rows].transpose(1, 2, 0).reshape(K, -1)
            half[:, :, :, rows] = (P[..., j] @ own).reshape(K, len(bags), C, -1)
        for j, rows in enumerate(bags):
            own = self._A[rows].reshape(-1, K * C)
            R[rows] = own @ half[:, j].reshape(K * C, n)
        return np.tile(np.einsum("iq,iq->q", self._X, R @ self._X) / C, C)
