"""Coefficients of an additive model and their prior variances, by evidence.

The counts c have mean M(b) and covariance V(b); a coefficient of group g has a normal prior of
precision lambda_g. At fixed precisions Gauss-Newton steps solve the score equations

    J' V^-1 (c - M) = lambda b,    H = J' V^-1 J + diag(lambda)

and between them each precision moves towards its fixed point, which maximises the evidence:

    lambda_g <- (gamma_g + a) / (|b_g|^2 + b0),    gamma_g = sum over the group of 1 - lambda_g
    (H^-1)_pp

log evidence = log p(c | b) - lambda |b|^2 / 2 + log |lambda| / 2 - log |H| / 2, plus the weak
hyperprior. Where the rows are makes no difference to this: `_rows` has them in memory, `_sums` in
parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unbag._progress import Progress
from unbag.additive._counts import Spread
from unbag.additive._posterior import FLAT, Space

FURTHEST = 10.0
"""The largest factor of a precision in one update."""
NEGLIGIBLE = 0.05
"""A gain of log evidence that no prediction would notice."""
SLOW = 0.7
"""Where a step gains less than this share less than the one before, the curvature is made anew."""
NEAR = 1.0
"""Nats that a step gains where what it does to the gradient still holds after the next one."""
SMALL = 0.05
"""Precisions that change by less than this share have converged."""
FOLLOW = 20
"""Updates of precisions that cost little."""
START = 100.0
"""The precision to start from: strong shrinkage, so that no column runs away."""


@dataclass(frozen=True)
class Hyperprior:
    """The weak prior of each precision: in its logarithm a Gamma law of shape a/2 and rate b/2.

    The rate is the same for all groups and is estimated with them, b being where it starts from
    with the weight of so many groups: where most columns tell nothing, each needs more to tell
    something."""

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
    """The model linear about a place."""

    place: Any
    """Where the fit is: it has coefficients `b`, the `spread` of the counts, and their moments."""
    gradient: np.ndarray
    """J' V^-1 (c - M)."""
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
    posterior: Any
    """Of the linear model."""


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


Pair = tuple[np.ndarray, np.ndarray]
"""A step, and by how much the gradient fell along it."""


def bent(posterior: Any, gradient: np.ndarray, pairs: list[Pair]) -> np.ndarray:
    """The step H^-1 gradient, with H corrected by what earlier steps did to the gradient (BFGS).

    Gauss and Newton's curvature leaves out how the Jacobian turns, so that by itself it would take
    ten steps to a third digit.
    """
    # the two loops of L-BFGS, with Gauss and Newton's H in the place of the usual multiple of 1
    q, shares = gradient, []
    for s, y in reversed(pairs):
        shares.append(float(s @ q) / float(s @ y))
        q = q - shares[-1] * y
    step = posterior.solve(q)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        step = step + (share - float(y @ step) / float(s @ y)) * s
    return step


class EvidenceFit(ABC):
    """The ascent of the evidence; where the counts and their derivatives come from is left open.

    Parameters
    ----------
    group : numpy.ndarray
        The number of each coefficient's prior variance, -1 where it has none; in the order of the
        Jacobian.
    """

    hyperprior = Hyperprior()
    exact = True
    """Whether a curvature costs about as much as a gradient, so that every step has its own."""

    def __init__(self, group: np.ndarray) -> None:
        self.group = group
        self.groups = int(group.max(initial=-1)) + 1

    @abstractmethod
    def linearise(self, place: Any) -> Linear:
        """The model that is linear about a place."""

    @abstractmethod
    def gradient(self, place: Any) -> np.ndarray:
        """J' V^-1 (c - M) at a place."""

    @abstractmethod
    def _widened(self, place: Any, spread: Spread) -> Any:
        """The place with the same coefficients and another spread of the counts."""

    @abstractmethod
    def _moved(self, place: Any, step: np.ndarray, precision: np.ndarray) -> Any:
        """The place after as much of the step as leads upwards; None when nothing does."""

    @abstractmethod
    def value(self, place: Any) -> float:
        """The log likelihood, up to a constant."""

    @abstractmethod
    def _spread(self, linear: Linear, of_group: np.ndarray, known: float) -> Spread:
        """The spread that the counts show, when they determine so many coefficients."""

    @abstractmethod
    def unpack(self, x: np.ndarray) -> np.ndarray:
        """Coefficients in their own order, (coefficients, classes), from that of the Jacobian."""

    def precisions(self, of_group: np.ndarray) -> np.ndarray:
        """The precision of each coefficient."""
        return np.append(of_group, FLAT)[self.group]

    def by_group(self, values: np.ndarray) -> np.ndarray:
        """Sums of values of coefficients over each group."""
        return np.bincount(self.group + 1, values, minlength=self.groups + 1)[1:]

    def fit(
        self,
        linear: Linear,
        of_group: np.ndarray | None = None,
        *,
        most: int = 60,
        progress: Progress | None = None,
    ) -> Fit:
        """The place of highest evidence.

        Parameters
        ----------
        linear : Linear
            Where to start from.
        of_group : numpy.ndarray, optional
            The precisions to start from.
        most : int
            Updates of the precisions.
        progress : Progress, optional
            Progress after each update.
        """
        if of_group is None:
            of_group = np.full(self.groups, START)
        state = self.converge(linear, of_group, linear.place.spread)
        trace = [state.evidence]
        for step in range(most if self.groups else 0):
            after, change = self._better(state)
            if after is None:
                break
            gain, state = after.evidence - state.evidence, after
            trace.append(state.evidence)
            if progress is not None:
                progress(step + 1, None, f"log evidence {state.evidence:.2f}")
            if np.abs(change).max() < SMALL or gain < NEGLIGIBLE:
                break
        spread = state.linear.place.spread
        known = state.posterior  # of the same linear model and precisions
        final = self.converge(
            state.linear, state.precision, spread, posterior=known, tolerance=1e-4
        )
        return Fit(final, tuple(trace))

    def converge(
        self,
        linear: Linear,
        of_group: np.ndarray,
        spread: Spread,
        *,
        posterior: Any = None,
        tolerance: float = 1e-2,
        most: int = 60,
    ) -> State:
        """Steps at fixed precisions until the expected gain is below the tolerance.

        The gradient is that of the place. The curvature is too where it costs little; elsewhere it
        is that of the last linear model, as long as it leads on.
        """
        precision = self.precisions(of_group)

        def about(place: Any) -> tuple[Linear, Any]:
            """The linear model about a place, and its posterior."""
            made = self.linearise(place)
            return made, made.space.posterior(precision)

        if posterior is None:
            posterior = linear.space.near(precision)
        place, gain, converged = self._widened(linear.place, spread), np.inf, False
        pairs: list[Pair] = []
        earlier: tuple[np.ndarray, np.ndarray] | None = None
        for _ in range(most):
            stale = linear.place is not place
            if self.exact and stale:
                (linear, posterior), stale = about(place), False
                if gain > NEAR:  # far from the top, old pairs speak of another curvature
                    pairs, earlier = [], None
            gradient = self.gradient(place) if stale else linear.gradient
            gradient = gradient - precision * place.b
            if earlier is not None:
                s, y = place.b - earlier[0], earlier[1] - gradient
                if s @ y > 0:  # of negative curvature nothing can be learned
                    pairs.append((s, y))
            earlier = place.b, gradient
            step = bent(posterior, gradient, pairs)
            # twice what a Newton step would gain in log posterior, were this curvature right
            before, gain = gain, float(gradient @ step)
            if abs(gain) < tolerance:
                converged = True
                break
            if stale and gain > SLOW * before:  # the old curvature no longer leads on
                linear, posterior = about(place)
                step = bent(posterior, gradient, pairs)
                gain = float(gradient @ step)
            after = self._moved(place, step, precision)
            if after is None:
                break
            place = after
        if linear.place is not place:
            linear, posterior = about(place)
        elif linear.space.first:  # the steps may have been those of other precisions
            posterior = linear.space.posterior(precision)
        evidence = self._evidence(place, of_group, posterior)
        return State(self.unpack(place.b), of_group, evidence, linear, converged, posterior)

    def _evidence(self, place: Any, of_group: np.ndarray, posterior: Any) -> float:
        """Laplace's: log p(reports | b) + log p(b | precisions) - log det(posterior precision) / 2,
        where the constants in 2 pi of prior and posterior cancel; and the hyperprior."""
        precision = self.precisions(of_group)
        normal = np.log(precision).sum() - (precision * place.b**2).sum()
        prior = float(normal) / 2 + self.hyperprior.log_density(of_group)
        return self.value(place) + prior - posterior.logdet / 2

    def _better(self, state: State) -> tuple[State | None, np.ndarray]:
        """The state after an update of the variances that raises the evidence; None when none
        does."""
        precision, spread = self._target(state)
        change, known = np.log(precision / state.precision), state.linear.place.spread
        wider = np.subtract(spread, known)
        if not change.any() and not wider.any():
            return None, change
        # the target maximises the evidence of the linear model, which need not be higher in truth
        for share in 0.5 ** np.arange(4):
            new = Spread(*(np.array(known) + share * wider))
            after = self.converge(state.linear, state.precision * np.exp(share * change), new)
            if after.evidence > state.evidence:
                return after, np.append(share * change, share * wider)
        return None, change

    def _target(self, state: State, *, updates: int = 4) -> tuple[np.ndarray, Spread]:
        """Precisions near the fixed point of the model linear about the state, and the spread.

        The linear model's posterior follows the precisions at once, so that a few updates cost one.
        """
        linear, of_group = state.linear, state.precision
        pull = linear.gradient + linear.space.squared(linear.place.b)
        if linear.space.first:
            of_group, known = self._apart(state, pull, updates=updates)
            return of_group, self._spread(linear, of_group, known)
        posterior, known = state.posterior, 0.0
        for update in range(updates):
            if update:
                posterior = linear.space.posterior(self.precisions(of_group))
            b, gamma = posterior.solve(pull), posterior.gamma
            known = float(gamma.sum())
            after = self._fixed_point(gamma, b, of_group)
            change = np.log(after / of_group)
            of_group = np.clip(after, state.precision / FURTHEST, state.precision * FURTHEST)
            if np.abs(change).max() < SMALL:
                break
        return of_group, self._spread(linear, of_group, known)

    def _fixed_point(self, gamma: np.ndarray, b: np.ndarray, of_group: np.ndarray) -> np.ndarray:
        """MacKay's: a group's precision is the number of coefficients that the counts determine,
        over the sum of their squares; a and rate are of the hyperprior."""
        hyper, gamma = self.hyperprior, np.maximum(self.by_group(gamma), 0.0)
        return (gamma + hyper.a) / (self.by_group(b**2) + hyper.rate(of_group))

    def _apart(self, state: State, pull: np.ndarray, *, updates: int) -> tuple[np.ndarray, float]:
        """The same where some coefficients are factored apart, and how many coefficients the counts
        determine. The precisions of groups that have such coefficients move first, as if these
        were determined alike; those of the others follow at little cost."""
        space, of_group = state.linear.space, state.precision
        apart = np.isin(np.arange(self.groups), self.group[space.first :])
        b, gamma = state.posterior.solve(pull), state.posterior.gamma
        own, known = np.maximum(self.by_group(gamma), 0.0), float(gamma.sum())
        total = self.by_group(space.squares)
        if self._spread(state.linear, of_group, known) == state.linear.place.spread:
            updates = FOLLOW  # where the spread moves, precisions that ran ahead would overshoot
        squares = self.by_group(b**2)
        ahead = self._ahead(own, squares, total, of_group, updates)
        known += float((_determined(own, total, of_group)(ahead) - own)[apart].sum())
        of_group = np.where(apart, ahead, of_group)
        for _ in range(updates):
            posterior = space.near(self.precisions(of_group))
            b, gamma = posterior.solve(pull), posterior.first_gamma
            after = np.where(apart, of_group, self._fixed_point(gamma, b, of_group))
            change = np.log(after / of_group)
            of_group = np.clip(after, state.precision / FURTHEST, state.precision * FURTHEST)
            if np.abs(change).max() < SMALL:
                break
        # the slope of the linear model's evidence falls to zero on the way: half of it on average
        hyper, start = self.hyperprior, state.precision
        slope = (own + hyper.a - start * (squares + hyper.rate(start))) / 2
        gain = slope @ np.log(of_group / start) / 2
        return (of_group if gain > NEGLIGIBLE else start), known

    def _ahead(
        self,
        gamma: np.ndarray,
        squares: np.ndarray,
        total: np.ndarray,
        of_group: np.ndarray,
        updates: int,
    ) -> np.ndarray:
        """The precision of each group after some updates, were its coefficients determined alike.

        Parameters
        ----------
        gamma, squares : numpy.ndarray
            Of each group, how many coefficients the counts determine, and the sum of squares.
        total : numpy.ndarray
            Of each group the trace of J' J.
        of_group : numpy.ndarray
            Precisions at which these are.
        updates : int
            Of the precisions.
        """
        hyper, precision = self.hyperprior, of_group
        determined = _determined(gamma, total, of_group)
        start = determined(of_group)
        for _ in range(updates):
            now = determined(precision)
            shrunk = squares * (now / start) ** 2  # coefficients shrink as gamma does
            precision = (now + hyper.a) / (shrunk + hyper.rate(precision))
            precision = np.clip(precision, of_group / FURTHEST, of_group * FURTHEST)
        return precision


def _determined(gamma: np.ndarray, total: np.ndarray, of_group: np.ndarray) -> Any:
    """How many coefficients of each group are determined at other precisions: total / (c +
    precision), as of coefficients that are determined alike, exact at large precisions."""
    gamma = np.maximum(gamma, 1e-12)
    c = np.maximum(total / gamma - of_group, 0.0)
    return lambda precision: gamma * (c + of_group) / (c + precision)
