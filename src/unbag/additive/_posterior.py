"""A whitened Jacobian and prior precisions in, the posterior of the linearised model out.

The curvature is H = J' J + diag(precision). It is factored where that is cheapest: among the
coefficients, among the counts (Woodbury), or not at all (conjugate gradients, with traces from
random probes).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg

if TYPE_CHECKING:
    from unbag.additive._jacobian import Jacobian

FLAT = 1e-6
"""Prior precision of the intercept: none that matters, yet class scores keep their sum."""
MOST = 10_000
"""More coefficients and counts than this are solved by conjugate gradients."""
PROBES, LANCZOS, TOLERANCE = 32, 60, 1e-9


class Primal:
    """H factored among the coefficients.

    Like the two below it knows `logdet`, log |H|; `gamma`, of each coefficient how far the counts
    determine it, 1 - precision (H^-1)_pp; and `solve`, H^-1 of a vector or of several in columns.

    Parameters
    ----------
    gram : numpy.ndarray
        J' J, which does not change with the precisions.
    precision : numpy.ndarray
        Of each coefficient.
    """

    def __init__(self, gram: np.ndarray, precision: np.ndarray) -> None:
        H = gram.copy()
        H[np.diag_indices_from(H)] += precision
        self._factor = linalg.cholesky(H, lower=True, overwrite_a=True, check_finite=False)
        self._precision = precision
        self.logdet = 2 * float(np.log(np.diag(self._factor)).sum())

    @cached_property
    def root(self) -> np.ndarray:
        """A root of the covariance, H^-1 = root root': the inverse of the factor, turned."""
        inverse, _ = linalg.get_lapack_funcs(("trtri",), (self._factor,))[0](self._factor, lower=1)
        return inverse.T

    @property
    def gamma(self) -> np.ndarray:
        """1 - precision (H^-1)_pp."""
        return 1 - self._precision * np.einsum("ij,ij->i", self.root, self.root)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """H^-1 rhs."""
        return linalg.cho_solve((self._factor, True), rhs, check_finite=False)


class Dual:
    """H by Woodbury's identity, factored among the counts; coefficients of a flat prior apart.

    With J = (u, J1), u of the flat ones, and K = 1 + J1 diag(1/precision) J1',

        w = J x,   K w = u x0 + J1 r1 / precision,   (u' K^-1 u + flat) x0 = r0 - u' K^-1 J1 r1 /
        precision
    """

    def __init__(self, J: Jacobian, precision: np.ndarray) -> None:
        self._J, self._precision = J, precision
        self._flat = np.flatnonzero(precision <= FLAT)
        self._spread = np.where(precision <= FLAT, 0.0, 1 / precision)
        K = J.outer(self._spread)
        K[np.diag_indices_from(K)] += 1
        self._K = linalg.cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        self._u = J.columns(self._flat)  # flat coefficients touch every count, so they are dense
        self._Ku = linalg.cho_solve((self._K, True), self._u, check_finite=False)
        fixed = self._u.T @ self._Ku + FLAT * np.eye(len(self._flat))
        self._fixed = linalg.cho_factor(fixed, lower=True)
        # |H| = |diag(precision)| |K| |u' K^-1 u + flat|: the determinant lemma, then Schur's
        logs = np.log(np.diag(self._K)).sum() + np.log(np.diag(self._fixed[0])).sum()
        self.logdet = 2 * float(logs) + float(np.log(precision[precision > FLAT]).sum())

    @cached_property
    def gamma(self) -> np.ndarray:
        """The diagonal of J' P J / precision, with P = K^-1 less its part along u."""
        along = linalg.solve_triangular(self._fixed[0], self._Ku.T, lower=True)
        gamma = self._J.quadratic(self._K, self._spread) - (self._J.tdot(along.T) ** 2).sum(axis=1)
        gamma *= self._spread
        gamma[self._flat] = 1.0
        return gamma

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """H^-1 rhs."""
        r = rhs.reshape(len(rhs), -1)
        spread = self._spread[:, None] * r
        c = linalg.cho_solve((self._K, True), self._J.dot(spread), check_finite=False)
        x0 = linalg.cho_solve(self._fixed, r[self._flat] - self._u.T @ c)
        w = c + self._Ku @ x0
        x = spread - self._spread[:, None] * self._J.tdot(w)
        x[self._flat] = x0
        return x.reshape(rhs.shape)


class Iterative:
    """H not factored: conjugate gradients, and traces from random probes that stay the same."""

    def __init__(self, J: Jacobian, precision: np.ndarray, *, seed: int = 0) -> None:
        self._J, self._precision = J, precision
        self._root = 1 / np.sqrt(J.squares() + precision)  # Jacobi's preconditioner
        # signs have the least variance of all probes, as their squares are exactly 1 (Hutchinson)
        signs = np.random.default_rng(seed).integers(0, 2, size=(len(precision), PROBES))
        self._probe = 2.0 * signs - 1

    def _scaled(self, x: np.ndarray) -> np.ndarray:
        """The curvature scaled to a diagonal of ones."""
        x = self._root[:, None] * x
        return self._root[:, None] * (self._J.tdot(self._J.dot(x)) + self._precision[:, None] * x)

    @property
    def gamma(self) -> np.ndarray:
        """Unbiased, from the probes z: z * (H^-1 z) has the diagonal of H^-1 as its mean."""
        diagonal = np.mean(self._probe * self.solve(self._probe), axis=1)
        return 1 - self._precision * diagonal

    @property
    def logdet(self) -> float:
        """Stochastic Lanczos quadrature."""
        return _log_trace(self._scaled, self._probe) - 2 * float(np.log(self._root).sum())

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """H^-1 rhs, all columns at once."""
        r = (self._root * rhs.reshape(len(rhs), -1).T).T
        x, p, power = np.zeros_like(r), r.copy(), (r * r).sum(axis=0)
        enough = TOLERANCE**2 * np.maximum(power, 1e-300)
        for _ in range(20 * LANCZOS):
            Hp = self._scaled(p)
            step = power / np.maximum((p * Hp).sum(axis=0), 1e-300)
            x += step * p
            r -= step * Hp
            previous, power = power, (r * r).sum(axis=0)
            if (power <= enough).all():
                break
            p = r + power / np.maximum(previous, 1e-300) * p
        return (self._root[:, None] * x).reshape(rhs.shape)


def _log_trace(apply: Any, probe: np.ndarray) -> float:
    """An estimate of tr log A, from Lanczos tridiagonal matrices started at the probes."""
    q, count = probe.shape
    steps = min(LANCZOS, q)
    v = probe / np.sqrt(q)
    basis, alpha, beta = [v], np.zeros((steps, count)), np.zeros((steps, count))
    for k in range(steps):
        w = apply(basis[k])
        alpha[k] = (w * basis[k]).sum(axis=0)
        for earlier in basis:  # full orthogonalisation: rounding would bring back what is done
            w -= (w * earlier).sum(axis=0) * earlier
        beta[k] = np.sqrt((w * w).sum(axis=0))
        basis.append(w / np.maximum(beta[k], 1e-300))
    total = 0.0
    for i in range(count):
        last = np.flatnonzero(beta[: steps - 1, i] < 1e-10)
        size = last[0] + 1 if len(last) else steps
        value, vector = linalg.eigh_tridiagonal(alpha[:size, i], beta[: size - 1, i])
        # z' log(A) z / z'z by Gauss quadrature: its nodes are the eigenvalues of the tridiagonal
        # matrix, its weights the squared first entries of the eigenvectors (Golub and Welsch)
        total += float((vector[0] ** 2 * np.log(np.maximum(value, 1e-300))).sum())
    return q * total / count


class Space:
    """Where a Jacobian is solved: the same for all precisions, so that what they share is made
    once."""

    def __init__(
        self, J: Any, *, gram: np.ndarray | None = None, seed: int = 0, space: str = "auto"
    ) -> None:
        self.J: Any = J
        self.gram, self._seed, self.name = gram, seed, space
        if gram is not None:
            self.name = "coefficients"
        elif space == "auto":
            m, q = J.shape
            smaller = "coefficients" if q <= m else "counts"
            self.name = smaller if min(m, q) <= MOST else "gradients"
        if self.name == "coefficients" and gram is None:
            self.gram, self.J = J.gram(), None  # the products are enough, and J may be large

    def squared(self, b: np.ndarray) -> np.ndarray:
        """J' J b."""
        return self.J.tdot(self.J.dot(b)) if self.gram is None else self.gram @ b

    def posterior(self, precision: np.ndarray) -> Primal | Dual | Iterative:
        """The posterior at these prior precisions."""
        if self.gram is not None:
            return Primal(self.gram, precision)
        if self.name == "counts":
            return Dual(self.J, precision)
        return Iterative(self.J, precision, seed=self._seed)
