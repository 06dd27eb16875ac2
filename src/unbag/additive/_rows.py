"""The evidence of counts whose rows are in memory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from unbag._progress import Progress
from unbag.additive._counts import CountMoments, Counts, Spread, Whitener
from unbag.additive._evidence import EvidenceFit, Fit, Linear
from unbag.additive._jacobian import Split, as_they_are
from unbag.additive._kernel import RowProducts
from unbag.additive._posterior import MOST, Space

if TYPE_CHECKING:
    from unbag.additive._terms import Design

LONGEST = 4.0  # the largest change of a score in one step
FEW = 3000  # coefficients, or counts, that one thread solves
AT_ONCE = 2**18  # rows whose part of the Jacobian is made at a time
# a multiplication with an entry of a sparse matrix takes as long as so many of a dense one
SCATTERED = 30
# where a Jacobian's product with itself has fewer multiplications for each entry of a row than
# this, it costs no more than a pass over the rows
PRODUCTS = 250


class RowPlace(NamedTuple):
    """Coefficients, and what they make of the rows and the counts."""

    b: np.ndarray
    spread: Spread
    score: np.ndarray
    moments: CountMoments
    whitener: Whitener


class RowsFit(EvidenceFit):
    """The evidence of a design and counts.

    Parameters
    ----------
    design : Design
        Of the instances.
    counts : Counts
        Reported.
    space : {"auto", "coefficients", "counts", "gradients"}
        Where to solve.
    seed : int
        Of the probes of conjugate gradients.
    """

    def __init__(
        self, design: Design, counts: Counts, *, space: str = "auto", seed: int = 0
    ) -> None:
        self.design, self.counts = design, counts
        self.options: dict[str, Any] = {"space": space, "seed": seed}
        m, q = counts.S.shape[0], design.T.shape[1] * counts.classes
        fewer = q <= min(m, MOST) and space in ("auto", "coefficients")
        self.products = counts.simple and fewer  # no step needs the Jacobian as a whole
        if space in ("auto", "counts") and RowProducts.pays(design, counts):
            self.split: Any = RowProducts(design, counts)
        else:
            self.split = Split(design, counts, rows=AT_ONCE if self.products else None)
        super().__init__(np.tile(design.group, counts.classes)[self.split.order])
        products = m * m * q
        if q <= m:
            dense, rare = self.split.width[0], self.split.rare
            products = m * dense**2 + SCATTERED * rare * dense
        entries = design.Z.shape[0] * len(design.Z.slots)
        self.exact = counts.simple and products < PRODUCTS * entries

    @property
    def size(self) -> int:
        """Of the smaller of the two spaces."""
        return min(*self.counts.S.shape, self.design.T.shape[1])

    def start(self) -> RowPlace:
        """All coefficients zero but the intercept, which fits the sum of all counts."""
        counts = self.counts
        level = np.zeros(counts.classes)
        score = counts.offset[:, None] + level
        moments = counts.moments(score)
        for _ in range(50):
            change = self._level_step(moments)
            level, score = level + change, np.add(score, change, out=score)
            moments = counts.moments(score, moments)
            if np.abs(change).max() < 1e-10:
                break
        b = np.zeros((self.design.T.shape[1], counts.classes))
        b[0] = level
        # taken for Poisson counts, large totals would look so certain that columns run away before
        # the dispersion is known (bike sharing in 42 bags: worse than the mean)
        spread = Spread()
        if counts.kind == "total" and counts.disjoint:
            spread = counts.around_mean
        return self._place(self.pack(b), spread, score, moments)

    def _level_step(self, moments: CountMoments) -> np.ndarray:
        """A Newton step, at most 1, of the intercept towards the counts' sum; shares are kept off 0
        and 1."""
        counts = self.counts
        total = counts.count.reshape(-1, counts.classes).sum(axis=0)
        if counts.kind == "histogram":
            times = np.asarray(counts.S.sum(axis=0)).ravel()
            mean, slope = times @ moments.h, times @ (moments.h * (1 - moments.h))
        else:
            mean, slope = moments.mean.sum(), counts.label_variance(moments.h).sum()
        top = counts.S.sum() - 0.5 if counts.kind != "total" else np.inf
        aim = np.clip(total, 0.5, max(top, 0.5))
        return np.clip((aim - mean) / np.maximum(slope, 1e-300), -1, 1)

    def pack(self, b: np.ndarray) -> np.ndarray:
        """Coefficients in the order of the Jacobian."""
        return b.T.ravel()[self.split.order]

    def unpack(self, x: np.ndarray) -> np.ndarray:
        """Coefficients in their own order, (coefficients, classes, ...)."""
        b = np.empty_like(x)
        b[self.split.order] = x
        return b.reshape(self.counts.classes, -1, *x.shape[1:]).swapaxes(0, 1)

    def _place(
        self, b: np.ndarray, spread: Spread, score: np.ndarray, moments: CountMoments
    ) -> RowPlace:
        return RowPlace(b, spread, score, moments, self.counts.whitener(moments.h, spread))

    def _widened(self, place: RowPlace, spread: Spread) -> RowPlace:
        """The place with another spread of the counts."""
        if spread == place.spread:
            return place
        return self._place(place.b, spread, place.score, place.moments)

    def linearise(self, place: RowPlace) -> Linear:
        """The model that is linear about a place."""
        white = place.whitener(self.counts.observed - place.moments.mean)
        of_place = self.counts, place.moments.h, place.whitener
        if not self.products:
            J = self.split.jacobian(*of_place)
            return Linear(place, J.tdot(white), Space(J, **self.options))
        gram, gradient = None, np.zeros(len(self.group))
        for part, J in self.split.jacobians(*of_place):
            gradient += J.tdot(white[part])
            gram = J.products() if gram is None else gram.plus(J.products())
        return Linear(place, gradient, Space(None, gram=gram))

    def gradient(self, place: RowPlace) -> np.ndarray:
        """J' V^-1 (c - M), without the matrix J."""
        white = place.whitener(self.counts.observed - place.moments.mean)
        of_mean, Z = place.whitener.adjoint(white), self.design.Z
        total = np.zeros((Z.shape[1], self.counts.classes))
        for some in self.counts.together:
            total += Z.take(some.rows).tdot(self.counts.back(of_mean, place.moments.h, some))
        return self.pack(self.design.T.T @ total)

    def _moved(self, place: RowPlace, step: np.ndarray, precision: np.ndarray) -> RowPlace | None:
        """As much of the step as lowers the squares, at the covariance of where it started."""
        along = self.design.Z @ (self.design.T @ self.unpack(step))
        furthest = max(along.max(initial=0), -along.min(initial=0), 1e-300)
        length = min(1.0, LONGEST / furthest)
        along *= length
        before = self._squares(place.b, place.moments, place.whitener, precision)
        moments = None
        for _ in range(12):
            b = place.b + length * step
            along += place.score  # in place: a new array of all rows costs more than the sum
            moments = self.counts.moments(along, moments)
            after = self._squares(b, moments, place.whitener, precision)
            if after <= before + 1e-9 * abs(before):
                return self._place(b, place.spread, along, moments)
            along -= place.score
            along /= 2
            length /= 2
        return None

    def _squares(
        self, b: np.ndarray, moments: CountMoments, whitener: Whitener, precision: np.ndarray
    ) -> float:
        residual = whitener(self.counts.observed - moments.mean)
        return float(residual @ residual + (precision * b**2).sum()) / 2

    def value(self, place: RowPlace) -> float:
        """The log likelihood, up to a constant."""
        return self.counts.log_likelihood(place.moments, place.whitener, place.spread)

    def _spread(self, linear: Linear, of_group: np.ndarray, known: float) -> Spread:
        """The spread that the residuals show; of counts that overlap, that of highest evidence."""
        counts, moments = self.counts, linear.place.moments
        if counts.disjoint or counts.kind == "histogram":
            return counts.spread(moments, known)
        from unbag.additive._overlap import Linearised, misfit_by_evidence  # late: not for bags

        precision = self.precisions(of_group)

        def at(t: float) -> Linearised:
            whitener = counts.whitener(moments.h, Spread(misfit=t))
            J = self.split.jacobian(counts, moments.h, whitener)
            solve = Space(J, **self.options).posterior(precision).solve
            return Linearised(whitener, J.dense, solve)

        J = self.split.jacobian(counts, moments.h, as_they_are).dense
        r = counts.observed - moments.mean + J @ linear.place.b
        own = counts.label_variance(moments.h)
        return Spread(misfit=misfit_by_evidence(at, own, r, linear.place.spread.misfit))


def fit_evidence(
    design: Design,
    counts: Counts,
    *,
    precision: np.ndarray | None = None,
    space: str = "auto",
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[RowsFit, Fit]:
    """Fit coefficients and precisions.

    Parameters
    ----------
    design : Design
        Of the instances.
    counts : Counts
        Reported.
    precision : numpy.ndarray, optional
        Of each group when it is fixed; by default the evidence chooses.
    """
    problem = RowsFit(design, counts, space=space, seed=seed)
    with few_threads(problem.size):
        linear = problem.linearise(problem.start())
        if precision is None and problem.groups:
            return problem, problem.fit(linear, progress=progress)
        fixed = np.zeros(0) if precision is None else np.asarray(precision, float)
        state = problem.converge(linear, fixed, Spread(), tolerance=1e-12, most=200)
        return problem, Fit(state, (state.evidence,))


def few_threads(size: int) -> Any:
    """One thread for small problems: threads that wait for each other make small factorisations
    many times slower on a busy machine.

    Parameters
    ----------
    size : int
        Of the matrices that are factored.
    """
    return _libraries().limit(limits=1 if size < FEW else None, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """The libraries that have threads; to look for them takes longer than a small fit."""
    return ThreadpoolController()
