"""A whitened Jacobian and prior precisions in, the posterior of the linearised model out.

The curvature is H = J' J + diag(precision). It is factored where that is cheapest: among the
coefficients, among the counts (Woodbury), or not at all (conjugate gradients, with traces from
random probes). Where most coefficients are levels that few counts have, these are factored apart:
their factor serves for all precisions of the others.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dpotrf, dtrtri  # pyright: ignore[reportAttributeAccessIssue]

from unbag.additive._jacobian import Jacobian, Products

FLAT = 1e-6  # prior precision of the intercept: none that matters, yet class scores keep their sum
MOST = 10_000  # more coefficients and counts than this are solved by conjugate gradients
APART = 500  # so many sparse coefficients, and counts where these are fewer, are factored apart
# logarithms of precisions that differ by less than this need no factor of their own to step by
NEARBY = 0.35
STRIP = 64  # columns of a large product that are made at a time
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
        return 1 - self._precision * _row_squares(self.root)

    def draws(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """Draws of the coefficients about their mean, in columns."""
        z = rng.normal(size=(len(self._factor), number))
        return _solved(self._factor, z, trans=1)

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
        # 1/precision of a flat prior would drown all else in K, and K would lose its digits
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


class AmongCoefficients:
    """The block A of H that belongs to the sparse coefficients, factored as it is.

    Like the one below it knows `logdet`, log |A|; `schur`, what is left for the others, H_dd less
    H_ds A^-1 H_sd, without their precisions; `solve`, A^-1 of columns; `across` and `back`, N =
    A^-1 H_sd and its transpose times columns; `diagonal`, of A^-1; `spill`, the squares in each row
    of N R; and `draws`. Of coefficients that share a prior `diagonal` and `spill` may be means.

    Parameters
    ----------
    gram : Products
        J' J in blocks.
    precision : numpy.ndarray
        Of the sparse coefficients.
    """

    def __init__(self, gram: Products, precision: np.ndarray) -> None:
        # symmetric, so that the transpose, which LAPACK takes as it is, is the same
        self._L = _factored(gram.rest.copy().T, precision)
        self._W = _solved(self._L, gram.across)
        self.schur = gram.first - self._W.T @ self._W
        self.logdet = 2 * float(np.log(np.diag(self._L)).sum())

    def solve(self, x: np.ndarray) -> np.ndarray:
        """A^-1 x."""
        return linalg.cho_solve((self._L, True), x, check_finite=False)

    def across(self, y: np.ndarray) -> np.ndarray:
        """N y."""
        return _solved(self._L, self._W @ y, trans=1)

    def back(self, x: np.ndarray) -> np.ndarray:
        """N' x."""
        return self._W.T @ _solved(self._L, x)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Of A^-1."""
        inverse, _ = dtrtri(self._L, lower=1)
        return _row_squares(inverse.T)

    @cached_property
    def _N(self) -> np.ndarray:
        return _solved(self._L, self._W, trans=1)

    def spill(self, R: np.ndarray) -> np.ndarray:
        """The squares in each row of N R."""
        return _row_squares(self._N @ R)

    def draws(self, rng: np.random.Generator, others: np.ndarray) -> np.ndarray:
        """Draws of the sparse coefficients, given those of the others."""
        z = rng.normal(size=(len(self._L), others.shape[1]))
        return _solved(self._L, z - self._W @ others, trans=1)


class AmongCounts:
    """The same block by Woodbury's identity, A^-1 = D - D J' K^-1 J D, K = 1 + J D J', of the
    sparse columns J and their prior variances D: then N = D J' K^-1 times the dense columns."""

    def __init__(self, J: Jacobian, products: np.ndarray | None, precision: np.ndarray) -> None:
        self._J, self._spread = J, 1 / precision
        # where all share one variance K differs between precisions by a factor: J J' is made once
        K = J.rest_outer(self._spread) if products is None else products * self._spread[0]
        self._L = _factored(K.T, np.ones(len(K)))
        W = _solved(self._L, J.dense)
        self.schur, self._V = W.T @ W, _solved(self._L, W, trans=1)
        logs = 2 * np.log(np.diag(self._L)).sum() + np.log(precision).sum()
        self.logdet = float(logs)

    def solve(self, x: np.ndarray) -> np.ndarray:
        """A^-1 x."""
        D, J = self._spread[:, None], self._J.sparse
        inside = linalg.cho_solve((self._L, True), J @ (D * x), check_finite=False)
        return D * (x - J.T @ inside)

    def across(self, y: np.ndarray) -> np.ndarray:
        """N y."""
        return self._spread[:, None] * (self._J.sparse.T @ (self._V @ y))

    def back(self, x: np.ndarray) -> np.ndarray:
        """N' x."""
        return self._V.T @ (self._J.sparse @ (self._spread[:, None] * x))

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Of A^-1."""
        return self._spread * (1 - self._spread * self._J.rest_quadratic(self._L, self._spread))

    def spill(self, R: np.ndarray) -> np.ndarray:
        """The squares in each row of N R."""
        size = len(self._spread)
        if self._J.alike:  # J D J' = K - 1, and K V are the dense columns
            inside = (self.schur - self._V.T @ self._V) @ R
            return np.full(size, self._spread[0] * float((R * inside).sum()) / size)
        total = np.zeros(size)
        for start in range(0, R.shape[1], STRIP):  # all columns at once may take too much memory
            total += _row_squares(self.across(R[:, start : start + STRIP]))
        return total

    def draws(self, rng: np.random.Generator, others: np.ndarray) -> np.ndarray:
        """Draws of the sparse coefficients, given those of the others: of the prior, less what the
        counts, drawn too, know of them."""
        sizes, J = (len(self._spread), len(self._L)), self._J.sparse
        prior, count = (rng.normal(size=(size, others.shape[1])) for size in sizes)
        prior *= np.sqrt(self._spread)[:, None]
        count += J @ prior
        known = linalg.cho_solve((self._L, True), count, check_finite=False) + self._V @ others
        prior -= self._spread[:, None] * (J.T @ known)
        return prior


class Bordered:
    """H with the block of the sparse coefficients factored apart, which takes nearly all the time:
    other precisions of the first coefficients then cost little.

    Parameters
    ----------
    inside : AmongCoefficients or AmongCounts
        The block of the sparse coefficients.
    precision : numpy.ndarray
        Of each coefficient.
    """

    def __init__(self, inside: AmongCoefficients | AmongCounts, precision: np.ndarray) -> None:
        self._inside, self._precision, self._first = inside, precision, len(inside.schur)
        # symmetric, so the transpose of the copy is in the order of columns that LAPACK writes over
        S = inside.schur.copy().T
        self._S = _factored(S, precision[: self._first])
        self.logdet = inside.logdet + 2 * float(np.log(np.diag(self._S)).sum())

    @cached_property
    def _root(self) -> np.ndarray:
        """R of the first coefficients' covariance R R'."""
        inverse, _ = dtrtri(self._S, lower=1)
        return inverse.T

    @property
    def first_gamma(self) -> np.ndarray:
        """1 - precision (H^-1)_pp of the first coefficients, and 0 of the sparse ones."""
        gamma = np.zeros(len(self._precision))
        own = self._precision[: self._first]
        gamma[: self._first] = 1 - own * _row_squares(self._root)
        return gamma

    @cached_property
    def gamma(self) -> np.ndarray:
        """1 - precision (H^-1)_pp; its mean where the sparse coefficients share a prior."""
        gamma, own = self.first_gamma, self._precision[self._first :]
        gamma[self._first :] = 1 - own * (self._inside.diagonal + self._inside.spill(self._root))
        return gamma

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """H^-1 rhs."""
        r = rhs.reshape(len(rhs), -1)
        x = np.empty_like(r)
        inside, first = self._inside, self._first
        x[:first] = linalg.cho_solve((self._S, True), r[:first] - inside.back(r[first:]))
        x[first:] = inside.solve(r[first:]) - inside.across(x[:first])
        return x.reshape(rhs.shape)

    def draws(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """Draws of the coefficients about their mean, in columns."""
        first = _solved(self._S, rng.normal(size=(self._first, number)), trans=1)
        return np.concatenate([first, self._inside.draws(rng, first)])


def _factored(A: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """The lower Cholesky factor of A + diag(diagonal), written over A."""
    A[np.diag_indices_from(A)] += diagonal
    L, failed = dpotrf(A, lower=1, overwrite_a=1)
    if failed:
        raise linalg.LinAlgError(f"minor {failed} is not positive definite")
    return L


def _solved(L: np.ndarray, x: np.ndarray, *, trans: int = 0) -> np.ndarray:
    """L^-1 x, or with the transpose."""
    return linalg.solve_triangular(L, x, trans=trans, lower=True, check_finite=False)


def _row_squares(A: np.ndarray) -> np.ndarray:
    """The sum of squares of each row."""
    return np.einsum("ij,ij->i", A, A)


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
    once.

    Parameters
    ----------
    J : Jacobian or None
        Of the whitened counts.
    gram : numpy.ndarray or Products, optional
        J' J, where the Jacobian is not needed.
    seed : int
        Of the probes of conjugate gradients.
    space : {"auto", "coefficients", "counts", "gradients"}
        Where to solve.
    """

    def __init__(self, J: Any, *, gram: Any = None, seed: int = 0, space: str = "auto") -> None:
        self._seed, self.name = seed, space
        self.J: Any = J
        if gram is not None:
            self.name = "coefficients"
        elif space == "auto":
            m, q = J.shape
            smaller = "coefficients" if q <= m else "counts"
            self.name = smaller if min(m, q) <= MOST else "gradients"
        if self.name == "coefficients" and gram is None:
            gram, self.J = J.products(), None  # the products are enough, and J may be large
        self.first = self._apart(gram)
        """So many coefficients come before those that are factored apart; 0 where none are."""
        self.gram: Any = gram
        if isinstance(gram, Products) and not self.first:
            self.gram = gram.joined()
        self._inside: tuple[np.ndarray, Any] | None = None

    def _apart(self, gram: Any) -> int:
        if isinstance(gram, Products):
            return len(gram.first) if len(gram.rest) >= APART else 0
        if self.name != "counts" or not isinstance(self.J, Jacobian):
            return 0
        (m, q), rest = self.J.shape, self.J.rest
        return q - rest if min(m, rest) >= APART and q - rest <= m else 0

    @cached_property
    def squares(self) -> np.ndarray:
        """The diagonal of J' J."""
        return self.J.squares() if self.gram is None else self.gram.diagonal()

    @cached_property
    def _products(self) -> np.ndarray | None:
        """Of the sparse columns with themselves, which one prior variance only scales."""
        return self.J.rest_outer(np.ones(self.J.rest)) if self.J.alike else None

    def squared(self, b: np.ndarray) -> np.ndarray:
        """J' J b."""
        return self.J.tdot(self.J.dot(b)) if self.gram is None else self.gram.dot(b)

    def posterior(self, precision: np.ndarray) -> Any:
        """The posterior at these prior precisions."""
        if self.first:
            return Bordered(self._factored(precision[self.first :]), precision)
        if self.gram is not None:
            return Primal(self.gram, precision)
        if self.name == "counts":
            return Dual(self.J, precision)
        return Iterative(self.J, precision, seed=self._seed)

    def near(self, precision: np.ndarray) -> Any:
        """The posterior at precisions near these, where that saves a large factorisation: enough to
        step by."""
        if self._inside is not None:
            known = self._inside[0]
            # a step is taken only where it raises the posterior, so a factor of old precisions does
            # no harm; where the steps end, `posterior` is asked for that of the right ones
            if np.abs(np.log(precision[self.first :] / known)).max() < NEARBY:
                precision = np.append(precision[: self.first], known)
        return self.posterior(precision)

    def _factored(self, precision: np.ndarray) -> AmongCoefficients | AmongCounts:
        """The block of the sparse coefficients at their precisions, the last one kept."""
        if self._inside is None or not np.array_equal(self._inside[0], precision):
            self._inside = None  # frees its memory first
            if self.gram is not None:
                made: Any = AmongCoefficients(self.gram, precision)
            else:
                made = AmongCounts(self.J, self._products, precision)
            self._inside = precision, made
        return self._inside[1]
