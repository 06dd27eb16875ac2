"""A design and counts in, the coefficients of an additive model and their prior variances out.

The counts c have mean M(b) and covariance V(b); a coefficient of group g has a normal prior of
precision lambda_g. At fixed precisions Gauss-Newton steps solve the score equations

    J' V^-1 (c - M) = lambda b,    H = J' V^-1 J + diag(lambda)

and between them each precision moves towards its fixed point, which maximises the evidence:

    lambda_g <- (gamma_g + a) / (|b_g|^2 + b0),    gamma_g = sum over the group of 1 - lambda_g
    (H^-1)_pp

log evidence = log p(c | b) - lambda |b|^2 / 2 + log |lambda| / 2 - log |H| / 2, plus the weak
hyperprior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from unbag._progress import Progress
from unbag.additive._counts import CountMoments, Counts, Spread, Whitener
from unbag.additive._jacobian import Split, as_they_are
from unbag.additive._overlap import Linearised, misfit_by_evidence
from unbag.additive._posterior import FLAT, Space

if TYPE_CHECKING:
    from unbag.additive._terms import Design

AS_DECLARED = Spread()
Place = tuple[np.ndarray, np.ndarray, CountMoments]
"""Coefficients, and the scores and moments there."""
LONGEST = 4.0
"""The largest change of a score in one step."""
FURTHEST = 10.0
"""The largest factor of a precision in one update."""
NEGLIGIBLE = 0.05
"""A gain of log evidence that no prediction would notice."""
SLOW = 0.7
"""Where a step gains less than this share less than the one before, the curvature is made anew."""
FEW = 3000
"""Coefficients, or counts, that one thread solves."""
SMALL = 0.05
"""Precisions that change by less than this share have converged."""


@dataclass(frozen=True)
class Hyperprior:
    """The weak prior of each precision: in its logarithm a Gamma law of shape a/2 and rate b/2.

    The rate is the same for all groups and is estimated with them, b being where it starts from
    with the
    weight of so many groups: where most columns tell nothing, each needs more to tell something."""

    a: float = 1.0
    b: float = 0.1
    weight: float = 5.0

    def rate(self, of_group: np.ndarray) -> float:
        """The most probable rate, given the precisions."""
        weight = self.weight * self.a
        return (self.a * len(of_group) + weight) / (of_group.sum() + weight / self.b)

    def log_density(self, of_group: np.ndarray) -> float:
        """Of the precisions and of their most probable rate, up to constants."""
        rate, weight = self.rate(of_group), self.weight * self.a
        own = self.a * (np.log(of_group) + np.log(rate)) - rate * of_group
        return float(own.sum() + weight * (np.log(rate) - rate / self.b)) / 2


class Linear(NamedTuple):
    """The model linear about some coefficients: moments and Jacobian of the counts there."""

    b: np.ndarray
    """(coefficients, classes)."""
    spread: Spread
    """Of the counts."""
    score: np.ndarray
    moments: CountMoments
    whitener: Whitener
    space: Space


class State(NamedTuple):
    """Coefficients converged at given precisions, and what follows from them."""

    b: np.ndarray
    """(coefficients, classes)."""
    precision: np.ndarray
    """Of each group."""
    evidence: float
    linear: Linear
    converged: bool


class Fit(NamedTuple):
    """What the evidence chose.

    Parameters
    ----------
    state : State
        Coefficients and precisions at the end.
    trace : tuple of float
        The log evidence of each accepted step; it rises.
    """

    state: State
    trace: tuple[float, ...]


@dataclass(frozen=True)
class Evidence:
    """The problem: a design, counts, and how to solve.

    Parameters
    ----------
    design : Design
        Of the instances.
    counts : Counts
        Reported.
    hyperprior : Hyperprior
        Of the precisions.
    space : {"auto", "coefficients", "counts", "gradients"}
        Where to solve.
    seed : int
        Of the probes of conjugate gradients.
    """

    design: Design
    counts: Counts
    split: Split
    hyperprior: Hyperprior = Hyperprior()
    space: str = "auto"
    seed: int = 0

    @property
    def groups(self) -> int:
        """How many prior variances there are."""
        return int(self.design.group.max(initial=-1)) + 1

    def precisions(self, of_group: np.ndarray) -> np.ndarray:
        """The precision of each coefficient, (coefficients, classes)."""
        each = np.append(of_group, FLAT)[self.design.group]
        return np.repeat(each[:, None], self.counts.classes, axis=1)

    def score(self, b: np.ndarray) -> np.ndarray:
        """Scores of the instances, (instances, classes)."""
        return self.design.Z @ (self.design.T @ b) + self.counts.offset[:, None]

    def by_group(self, values: np.ndarray) -> np.ndarray:
        """Sums of values of coefficients over each group."""
        group = np.repeat(self.design.group[:, None], values.shape[1], axis=1)
        return np.bincount(group.ravel() + 1, values.ravel(), minlength=self.groups + 1)[1:]

    def start(self) -> np.ndarray:
        """All coefficients zero but the intercept, which fits the sum of all counts."""
        b = np.zeros((self.design.T.shape[1], self.counts.classes))
        for _ in range(50):
            change = self._level(b)
            b[0] += change
            if np.abs(change).max() < 1e-10:
                break
        return b

    def _level(self, b: np.ndarray) -> np.ndarray:
        """A Newton step, at most 1, of the intercept towards the counts' sum; shares are kept off 0
        and 1."""
        counts = self.counts
        h = counts.moments(self.score(b)).h.reshape(-1, counts.classes)
        times = np.asarray(counts.S.sum(axis=0)).ravel()
        n = times.sum()
        total = counts.count.reshape(-1, counts.classes).sum(axis=0)
        mean, slope = times @ h, times @ (h * (1 - h) if counts.kind != "total" else h)
        top = n - 0.5 if counts.kind != "total" else np.inf
        aim = np.clip(total, 0.5, max(top, 0.5))
        return np.clip((aim - mean) / np.maximum(slope, 1e-300), -1, 1)

    def pack(self, b: np.ndarray) -> np.ndarray:
        """Coefficients in the order of the Jacobian."""
        return b.T.ravel()[self.split.order]

    def unpack(self, x: np.ndarray) -> np.ndarray:
        """Coefficients in their own order, from that of the Jacobian."""
        b = np.empty(len(x))
        b[self.split.order] = x
        return b.reshape(self.counts.classes, -1).T

    def linearise(
        self, b: np.ndarray, spread: Spread, known: tuple[np.ndarray, CountMoments] | None = None
    ) -> Linear:
        """The model that is linear about these coefficients; scores and moments may be known."""
        score, moments = known or self._moments(b)
        whitener = self.counts.whitener(moments.h, spread)
        J = self.split.jacobian(self.counts, moments.h, whitener)
        space = Space(J, seed=self.seed, space=self.space)
        return Linear(b, spread, score, moments, whitener, space)

    def _moments(self, b: np.ndarray) -> tuple[np.ndarray, CountMoments]:
        score = self.score(b)
        return score, self.counts.moments(score)

    def converge(
        self,
        linear: Linear,
        of_group: np.ndarray,
        spread: Spread = AS_DECLARED,
        *,
        tolerance: float = 1e-2,
        most: int = 60,
    ) -> State:
        """Steps at fixed precisions until the expected gain is below the tolerance.

        The gradient is that of the place, the curvature that of the last linear model, as long as
        it leads on: a gradient is much cheaper.
        """
        precision = self.precisions(of_group)
        posterior = linear.space.posterior(self.pack(precision))
        b, score, moments = linear.b, linear.score, linear.moments
        gain, converged = np.inf, False
        for _ in range(most):
            whitener = self.counts.whitener(moments.h, spread)
            gradient = self._gradient(moments, whitener) - precision * b
            step = self.unpack(posterior.solve(self.pack(gradient)))
            before, gain = gain, float((gradient * step).sum())
            if abs(gain) < tolerance:
                converged = True
                break
            if gain > SLOW * before:
                linear = self.linearise(b, spread, (score, moments))
                posterior = linear.space.posterior(self.pack(precision))
                step = self.unpack(posterior.solve(self.pack(gradient)))
                gain = float((gradient * step).sum())
            after = self._moved((b, score, moments), step, precision, whitener)
            if after is None:
                break
            b, score, moments = after
        if linear.b is not b or linear.spread != spread:
            linear = self.linearise(b, spread, (score, moments))
            posterior = linear.space.posterior(self.pack(precision))
        value = self.counts.log_likelihood(linear.moments, linear.whitener, spread)
        evidence = value + self._prior(b, of_group) - posterior.logdet / 2
        return State(b, of_group, evidence, linear, converged)

    def _gradient(self, moments: CountMoments, whitener: Whitener) -> np.ndarray:
        """J' V^-1 (c - M), without the matrix J."""
        residual = whitener(self.counts.observed - moments.mean)
        of_score = self.counts.back(whitener.adjoint(residual), moments.h)
        return self.design.T.T @ self.design.Z.tdot(of_score)

    def _moved(
        self, place: Place, step: np.ndarray, precision: np.ndarray, whitener: Whitener
    ) -> Place | None:
        """As much of the step as lowers the squares, at the covariance of where it started."""
        b, score, moments = place
        along = self.design.Z @ (self.design.T @ step)
        length = min(1.0, LONGEST / max(np.abs(along).max(initial=0), 1e-300))
        before = self._squares(b, moments, precision, whitener)
        for _ in range(12):
            new, new_score = b + length * step, score + length * along
            after = self.counts.moments(new_score)
            if self._squares(new, after, precision, whitener) <= before + 1e-9 * abs(before):
                return new, new_score, after
            length /= 2
        return None

    def _squares(
        self, b: np.ndarray, moments: CountMoments, precision: np.ndarray, whitener: Whitener
    ) -> float:
        residual = whitener(self.counts.observed - moments.mean)
        return float(residual @ residual + (precision * b**2).sum()) / 2

    def _prior(self, b: np.ndarray, of_group: np.ndarray) -> float:
        """The log density of the coefficients and of the hyperprior, up to constants."""
        precision, hyper = self.precisions(of_group), self.hyperprior
        normal = np.log(precision).sum() - (precision * b**2).sum()
        return float(normal) / 2 + hyper.log_density(of_group)

    def target(self, state: State, *, updates: int = 4) -> tuple[np.ndarray, Spread]:
        """Precisions near the fixed point of the model linear about the state, and the spread.

        The linear model's posterior follows the precisions at once, so that a few updates cost one.
        """
        linear, hyper, of_group = state.linear, self.hyperprior, state.precision
        space = linear.space
        gradient = self.pack(self._gradient(linear.moments, linear.whitener))
        pull = gradient + space.squared(self.pack(state.b))
        known = 0.0
        for _ in range(updates):
            posterior = space.posterior(self.pack(self.precisions(of_group)))
            b, gamma = self.unpack(posterior.solve(pull)), self.unpack(posterior.gamma)
            known = float(gamma.sum())
            gamma = np.maximum(self.by_group(gamma), 0.0)
            after = (gamma + hyper.a) / (self.by_group(b**2) + hyper.rate(of_group))
            change = np.log(after / of_group)
            of_group = np.clip(after, state.precision / FURTHEST, state.precision * FURTHEST)
            if np.abs(change).max() < SMALL:
                break
        if self.counts.disjoint or self.counts.kind == "histogram":
            return of_group, self.counts.spread(linear.moments, known)
        return of_group, self._misfit(linear, of_group)

    def _misfit(self, linear: Linear, of_group: np.ndarray) -> Spread:
        """The lack of fit of counts that overlap, at these precisions."""
        counts, h = self.counts, linear.moments.h
        precision = self.pack(self.precisions(of_group))

        def at(t: float) -> Linearised:
            whitener = counts.whitener(h, Spread(misfit=t))
            J = self.split.jacobian(counts, h, whitener)
            space = Space(J, seed=self.seed, space=self.space)
            return Linearised(whitener, J.dense, space.posterior(precision).solve)

        J = self.split.jacobian(counts, h, as_they_are).dense
        r = counts.observed - linear.moments.mean + J @ self.pack(linear.b)
        own = counts.S @ counts.slope(h)
        return Spread(misfit=misfit_by_evidence(at, own, r, linear.spread.misfit))


def fit_evidence(
    design: Design,
    counts: Counts,
    *,
    hyperprior: Hyperprior | None = None,
    precision: np.ndarray | None = None,
    space: str = "auto",
    start: float = 100.0,
    most: int = 60,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Evidence, Fit]:
    """Fit coefficients and precisions.

    Parameters
    ----------
    design : Design
        Of the instances.
    counts : Counts
        Reported.
    hyperprior : Hyperprior, optional
        Of the precisions.
    precision : numpy.ndarray, optional
        Of each group when it is fixed; by default the evidence chooses.
    start : float
        The precision to start from: strong shrinkage, so that no column runs away.
    most : int
        Updates of the precisions.
    """
    problem = Evidence(design, counts, Split(design, counts), hyperprior or Hyperprior(),
                       space, seed)  # fmt: skip
    with few_threads(problem):
        return problem, _fit(problem, precision, start, most, progress)


def few_threads(problem: Evidence) -> threadpool_limits:
    """One thread for small problems: threads that wait for each other make small factorisations
    many times slower on a busy machine."""
    small = min(*problem.counts.S.shape, problem.design.T.shape[1]) < FEW
    return threadpool_limits(1 if small else None, user_api="blas")


def _fit(
    problem: Evidence,
    precision: np.ndarray | None,
    start: float,
    most: int,
    progress: Progress | None,
) -> Fit:
    if precision is not None or problem.groups == 0:
        fixed = np.zeros(0) if precision is None else np.asarray(precision, float)
        linear = problem.linearise(problem.start(), AS_DECLARED)
        state = problem.converge(linear, fixed, tolerance=1e-12, most=200)
        return Fit(state, (state.evidence,))
    linear = _as_scattered(problem, problem.linearise(problem.start(), AS_DECLARED))
    state = problem.converge(linear, np.full(problem.groups, start), linear.spread)
    trace = [state.evidence]
    for step in range(most):
        after, change = _better(problem, state)
        if after is None:
            break
        gain = after.evidence - state.evidence
        state = after
        trace.append(state.evidence)
        if progress is not None:
            progress(step + 1, None, f"log evidence {state.evidence:.2f}")
        if np.abs(change).max() < SMALL or gain < NEGLIGIBLE:
            break
    final = problem.converge(state.linear, state.precision, state.linear.spread, tolerance=1e-4)
    return Fit(final, tuple(trace))


def _as_scattered(problem: Evidence, linear: Linear) -> Linear:
    """The model of the mean alone with totals as dispersed as they then are.

    Taken for Poisson counts at first, large totals would look so certain that columns run away
    before the dispersion is known (bike sharing in 42 bags: worse than the mean).
    """
    if problem.counts.kind != "total" or not problem.counts.disjoint:
        return linear
    return problem.linearise(linear.b, problem.counts.around_mean)


def _better(problem: Evidence, state: State) -> tuple[State | None, np.ndarray]:
    """The state after an update of the variances that raises the evidence; None when none does."""
    precision, spread = problem.target(state)
    change = np.log(precision / state.precision)
    wider = np.subtract(spread, state.linear.spread)
    for share in 0.5 ** np.arange(4):
        new = Spread(*(np.array(state.linear.spread) + share * wider))
        after = problem.converge(state.linear, state.precision * np.exp(share * change), new)
        if after.evidence > state.evidence:
            return after, np.append(share * change, share * wider)
    return None, change
