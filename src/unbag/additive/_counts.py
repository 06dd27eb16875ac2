"""Scores of the instances in, mean and covariance of the reported counts out.

Given its instances a count is a sum of independent labels. With S the matrix of who is counted
where (counts in rows, instances in columns) and h = h(score) the mean label of an instance,

    mean M = S h,   covariance V = S diag(d) S' + diag(noise),   d = h (1 - h), or h for Poisson
    counts

and the derivative of M by a coefficient is J = S diag(d) X. A histogram has a count for each class
but one: the counts add up to the size of the bag, so they are turned into contrasts of the classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy import linalg, sparse, special

from unbag._arrays import blocks
from unbag.bags import Bags, Kind

if TYPE_CHECKING:
    from unbag.additive._overlap import Border
    from unbag.additive._slots import Sparse

# scores beyond this are taken to be here: probabilities then stay above the rounding error
STEEPEST = 30.0
# pretended counts in the estimate of the spread: labels that scatter as they should, and totals
# that scatter as they do around their mean, of which no column explains anything
CALM = 5
# added to counts inside a logarithm, so that none is zero (Nelder and Pregibon, 1987)
SIXTH = 1 / 6
LEAST = 1e-12  # of a variance, so that bags of certain instances do not divide by zero


# from a score to the mean label, where an instance has one score
MEAN_LABEL: dict[str, Any] = {"binary": special.expit, "total": np.exp}


class Whitener(Protocol):
    """A root W of the inverse covariance, W' W = V^-1, to be applied from the left."""

    @property
    def logdet(self) -> float: ...

    def __call__(self, A: Any) -> Any: ...

    def adjoint(self, r: np.ndarray) -> np.ndarray: ...


class Diagonal(NamedTuple):
    """Counts that share no instance."""

    root: np.ndarray
    logdet: float

    def __call__(self, A: Any) -> Any:
        """W A, for a vector, a dense or a sparse matrix."""
        if sparse.issparse(A):
            return sparse.csr_array(sparse.diags_array(self.root) @ A)
        return A * self.root.reshape((-1,) + (1,) * (A.ndim - 1))

    def adjoint(self, r: np.ndarray) -> np.ndarray:
        """W' r."""
        return self.root * r


class Blocks(NamedTuple):
    """Counts of several classes in bags that share no instance: one small block for each bag."""

    root: Sparse
    logdet: float
    of_bag: np.ndarray
    """The blocks, (bags, classes - 1, classes - 1)."""

    def __call__(self, A: Any) -> Any:
        """W A, for a vector, a dense or a sparse matrix."""
        return self.root @ A

    def adjoint(self, r: np.ndarray) -> np.ndarray:
        """W' r."""
        return self.root.T @ r


class Spread(NamedTuple):
    """What the variance of a count may have besides that of its labels and the declared noise.

    Parameters
    ----------
    dispersion : float
        The variance of a Poisson count is so many times its mean.
    misfit : float
        Lack of fit: the variance of a shift of the score that all instances of a count share.
    """

    dispersion: float = 1.0
    misfit: float = 0.0


class CountRows(NamedTuple):
    """Some counts and their rows, which are worked on together; see `unbag._arrays.blocks`.

    Parameters
    ----------
    counts, rows : slice
        Which of all.
    size : numpy.ndarray or None
        Of each count, where its rows are its own and come one after the other; None where only the
        matrix S knows them.
    """

    counts: slice
    rows: slice
    size: np.ndarray | None = None


class CountMoments(NamedTuple):
    """What the scores say of the counts.

    Parameters
    ----------
    h : numpy.ndarray
        Mean label of each instance, (instances, classes) for histograms.
    mean : numpy.ndarray
        Of each count; counts of classes one class after the other.
    """

    h: np.ndarray
    mean: np.ndarray


@dataclass(frozen=True)
class Counts:
    """Reported counts, and who is counted in which.

    Parameters
    ----------
    S : scipy.sparse.csr_array
        Who is counted where, counts in rows and instances in columns.
    count : numpy.ndarray
        Reported, (counts,) or (counts, classes).
    noise : numpy.ndarray
        Variance of the noise on each count.
    offset : numpy.ndarray
        Added to the score of each instance.
    kind : {"binary", "total", "histogram"}
        Of the labels.
    """

    S: Sparse
    count: np.ndarray
    noise: np.ndarray
    offset: np.ndarray
    kind: Kind = "binary"

    @cached_property
    def in_order(self) -> bool:
        """Whether every instance is counted once, and they come count by count."""
        n, place = self.S.shape[1], self.S.indices
        return len(place) == n and np.array_equal(place, np.arange(n, dtype=place.dtype))

    @cached_property
    def disjoint(self) -> bool:
        """Whether no instance is counted twice."""
        return self.in_order or bool(np.bincount(self.S.indices, minlength=1).max() <= 1)

    @property
    def simple(self) -> bool:
        """Whether an instance has one score and is counted once."""
        return self.disjoint and self.kind != "histogram"

    @cached_property
    def _blocks(self) -> list[Border]:
        """Counts that share instances, block by block."""
        from unbag.additive._overlap import blocks_of  # late, as bags do not need it

        return blocks_of(self.S)

    @cached_property
    def together(self) -> list[CountRows]:
        """All counts, in blocks where the rows come count by count."""
        (m, n), size = self.S.shape, np.diff(self.S.indptr)
        if self.kind == "histogram" or not self.in_order or not size.all():
            return [CountRows(slice(0, m), slice(0, n))]
        start = self.S.indptr
        ends = np.searchsorted(start, [rows.stop for rows in blocks(n)])
        pairs = pairwise(np.unique([0, *ends]))
        return [CountRows(slice(a, b), slice(start[a], start[b]), size[a:b]) for a, b in pairs]

    def _sums(self, values: np.ndarray, some: CountRows) -> np.ndarray:
        """The sum of values over the rows of each of these counts."""
        if some.size is None:
            return self.S @ values
        return np.add.reduceat(values, np.cumsum(some.size) - some.size)

    @property
    def classes(self) -> int:
        """How many scores an instance has."""
        return self.count.shape[1] if self.kind == "histogram" else 1

    def moments(self, score: np.ndarray, earlier: CountMoments | None = None) -> CountMoments:
        """Mean labels of the instances and means of the counts.

        Parameters
        ----------
        score : numpy.ndarray
            (instances, classes), with the offset.
        earlier : CountMoments, optional
            Whose memory may be written over: fresh memory for all rows costs as much as the work.
        """
        if self.kind == "histogram":
            h = special.softmax(np.clip(score, -STEEPEST, STEEPEST), axis=1)
            return CountMoments(h, (contrasts(self.classes) @ (self.S @ h).T).ravel())
        label = MEAN_LABEL[self.kind]
        h = np.empty(len(score)) if earlier is None else earlier.h
        mean = np.empty(self.S.shape[0])
        for some in self.together:
            own = np.clip(score[some.rows, 0], -STEEPEST, STEEPEST, out=h[some.rows])
            mean[some.counts] = self._sums(label(own, out=own), some)
        return CountMoments(h, mean)

    @property
    def observed(self) -> np.ndarray:
        """The counts in the form of the means."""
        if self.kind == "histogram":
            return (contrasts(self.classes) @ self.count.T).ravel()
        return self.count

    def slope(self, h: np.ndarray) -> np.ndarray:
        """The derivative of the mean label by the score, for labels of one score."""
        if self.kind != "binary":
            return h
        slope = 1 - h
        slope *= h
        return slope

    def label_variance(self, h: np.ndarray) -> np.ndarray:
        """The sum of the labels' variances in each count, for labels of one score."""
        own = np.empty(self.S.shape[0])
        for some in self.together:
            own[some.counts] = self._sums(self.slope(h[some.rows]), some)
        return own

    def whitener(self, h: np.ndarray, spread: Spread) -> Whitener:
        """The root of the inverse covariance of the counts."""
        if self.kind == "histogram":
            return _blocks(self.S, h, self.noise)
        own = self.label_variance(h)
        extra = self.noise + spread.misfit * own**2
        if self.disjoint:
            V = np.maximum(spread.dispersion * own + extra, LEAST)
            return Diagonal(1 / np.sqrt(V), float(np.log(V).sum()))
        from unbag.additive._overlap import factored

        return factored(self.S, spread.dispersion * self.slope(h), extra, self._blocks)

    def back(self, of_mean: np.ndarray, h: np.ndarray, some: CountRows) -> np.ndarray:
        """A derivative by the means turned into one by the scores of some rows, (rows, classes).

        Parameters
        ----------
        of_mean : numpy.ndarray
            By the means of all counts.
        h : numpy.ndarray
            Mean label of each instance.
        some : CountRows
            One of `together`.
        """
        if some.size is not None:
            of_row = np.repeat(of_mean[some.counts], some.size)
            return (self.slope(h[some.rows]) * of_row)[:, None]
        if self.kind != "histogram":
            return (self.slope(h) * (self.S.T @ of_mean))[:, None]
        of_count = of_mean.reshape(self.classes - 1, -1).T @ contrasts(self.classes)
        of_label = self.S.T @ of_count
        return h * (of_label - (h * of_label).sum(axis=1, keepdims=True))

    def spread(self, moments: CountMoments, known: float) -> Spread:
        """The spread with which the squares of the residuals are as large as they should be.

        Parameters
        ----------
        moments : CountMoments
            At the fitted scores.
        known : float
            How many coefficients the counts determine; so many residuals are not free.
        """
        if not self.simple:
            return Spread()
        own = self.label_variance(moments.h)
        residual, alone = self.count - moments.mean, 1.0
        if self.kind == "total":
            alone = self.around_mean.dispersion
        return spread_of(own, residual, self.noise, self.kind, known, alone=alone)

    @cached_property
    def around_mean(self) -> Spread:
        """The spread of totals around one mean rate."""
        exposure = self.S @ np.exp(self.offset)
        mean = exposure * max(self.count.sum(), 0.5) / exposure.sum()
        return spread_of(mean, self.count - mean, self.noise, self.kind, 1.0)

    def slopes(self, h: np.ndarray) -> list[list[np.ndarray]]:
        """The derivative of each instance's part in the means by its scores: of the means in rows
        (the contrasts of classes), of the scores in columns."""
        if self.kind != "histogram":
            return [[self.slope(h)]]
        mixed = contrasts(self.classes) @ h.T
        return [
            [h[:, k] * (q - mix) for k, q in enumerate(contrast)]
            for contrast, mix in zip(contrasts(self.classes), mixed, strict=True)
        ]

    def log_likelihood(self, moments: CountMoments, whitener: Whitener, spread: Spread) -> float:
        """The log density of the counts, up to a constant.

        Classes and counts that overlap are normal. Others have the law whose score is (count - M) /
        V: the extended quasi-likelihood, which is exact for bags of one and for Poisson counts, and
        fair to small ones.
        """
        if not self.disjoint:
            residual = whitener(self.observed - moments.mean)
            return float(-(residual @ residual + whitener.logdet) / 2)
        return float(self.log_likelihoods(moments, whitener, spread).sum())

    def log_likelihoods(
        self, moments: CountMoments, whitener: Whitener, spread: Spread
    ) -> np.ndarray:
        """The log density of each bag's counts, where no instance is counted twice."""
        if self.kind == "histogram":
            residual = whitener(self.observed - moments.mean).reshape(self.classes - 1, -1)
            # the determinant is known of all bags together: its share is right in their sum alone
            return -((residual**2).sum(axis=0) + whitener.logdet / residual.shape[1]) / 2
        deviance, variance = self._deviance(moments, spread)
        return -(deviance + np.log(variance)) / 2

    def _deviance(self, moments: CountMoments, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
        """Deviance of each count, and its variance were the count its mean.

        The variance as a function of the mean t is c t (1 - t/k) + s = (c/k) (t + e) (k + e - t),
        so noise s shifts the counts by e; for totals it is f t + s = f (t + s/f).
        """
        M = np.maximum(moments.mean, LEAST)
        own = self.label_variance(moments.h)
        extra = self.noise + spread.misfit * own**2
        if self.kind == "total":
            f = spread.dispersion
            y, M = np.maximum(self.count + extra / f, 0), M + extra / f
            return 2 / f * (special.xlogy(y, y / M) - (y - M)), f * (y + SIXTH)
        k = np.diff(self.S.indptr)
        # labels that differ within a bag vary less than k equal ones: c <= 1 says how much less
        c = np.maximum(own, LEAST) / np.maximum(M * (1 - M / k), LEAST)
        e = (np.sqrt(k**2 + 4 * k * extra / c) - k) / 2
        yes, no = np.maximum(self.count + e, 0), np.maximum(k - self.count + e, 0)
        mean, rest = M + e, np.maximum(k - M, LEAST) + e
        law = special.xlogy(yes, yes / mean) + special.xlogy(no, no / rest)
        return 2 * k / (c * (k + 2 * e)) * law, c / k * (yes + SIXTH) * (no + SIXTH)


def spread_of(
    own: np.ndarray,
    residual: np.ndarray,
    noise: np.ndarray,
    kind: Kind,
    known: float,
    *,
    alone: float = 1.0,
) -> Spread:
    """The spread with which the squares of the residuals are as large as they should be.

    Parameters
    ----------
    own, residual, noise : numpy.ndarray
        Of each count the variance of its labels, the count less its mean, and its declared noise.
    kind : {"binary", "total"}
        Of the labels.
    known : float
        How many coefficients the counts determine; so many residuals are not free.
    alone : float
        The dispersion of the pretended counts. A model of a few dozen totals can explain them all,
        its residuals are then small, totals look certain, and it explains still more; the
        pretended ones, as dispersed as without any column, stop this.
    """
    n = len(residual)
    own, noise = np.append(own, np.full(CALM, own.mean())), np.append(noise, np.zeros(CALM))
    usual = own + noise
    squares = np.append(residual**2, alone * usual[n:])
    free = np.append(np.full(n, max(1 - known / n, 1 / n)), np.ones(CALM))
    # a dispersion multiplies the variance of the labels, a misfit adds a multiple of its square
    weight = own if kind == "total" else own**2

    # the score equation of a normal likelihood, the derivative by `more` but for a factor 1/2, with
    # the degrees of freedom that the coefficients took subtracted as REML does
    def excess(more: float) -> float:
        V = np.maximum(usual + more * weight, LEAST)
        return float((weight / V * (squares / V - free)).sum())

    if excess(0.0) <= 0:
        return Spread()
    least, most = 0.0, 1.0
    while excess(most) > 0 and most < 1e100:
        least, most = most, 10 * most
    from scipy.optimize import brentq  # takes a while to import

    more = float(brentq(excess, least, most))  # pyright: ignore[reportArgumentType]
    return Spread(dispersion=1 + more) if kind == "total" else Spread(misfit=more)


def counts_of(bags: Bags) -> Counts:
    """The counts of bags whose reports are all observed; an instance is in one bag.

    >>> counts_of(Bags(np.array([0, 1, 0]), np.array([0.5, 1.0]))).count
    array([1., 1.])
    """
    n, size = len(bags.bag), bags.size
    order = np.argsort(bags.bag, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(size)])
    S = sparse.csr_array((np.ones(n), order, indptr), shape=(len(bags), n))
    count = bags.report * size.reshape((-1,) + (1,) * (bags.report.ndim - 1))
    offset = bags.offset if bags.offset is not None else np.broadcast_to(0.0, n)
    return Counts(S, count, bags.noise_or_zero, offset, bags.kind)


def contrasts(classes: int) -> np.ndarray:
    """An orthonormal basis of what class counts tell besides their sum, (classes - 1, classes)."""
    return linalg.helmert(classes)


def _blocks(S: Sparse, h: np.ndarray, noise: np.ndarray) -> Blocks:
    """Of each bag the root of Q (sum_i diag(h_i) - h_i h_i') Q' + noise, Q the contrasts."""
    (bags, _), C = S.shape, h.shape[1]
    Q = contrasts(C)
    V = np.zeros((bags, C, C))
    for c in range(C):
        for k in range(c, C):
            V[:, c, k] = V[:, k, c] = S @ (h[:, c] * ((c == k) - h[:, k]))
    # class counts add up to the size, so V itself is singular; along the contrasts it is not
    V = Q @ V @ Q.T
    V[:, range(C - 1), range(C - 1)] += noise[:, None] + LEAST
    L = np.linalg.cholesky(V)
    W = np.linalg.inv(L)
    row, column = np.meshgrid(range(C - 1), range(C - 1), indexing="ij")
    # the counts stand class by class, so a bag's block is spread over the whole matrix
    place = np.arange(bags)[:, None, None]
    where = ((row * bags + place).ravel(), (column * bags + place).ravel())
    size = bags * (C - 1)
    root = sparse.csr_array((W.ravel(), where), shape=(size, size))
    return Blocks(root, 2 * float(np.log(np.diagonal(L, axis1=1, axis2=2)).sum()), W)
