"""Fold scores of several learners in, one combination of very few parameters out.

    score = offset + level + sum over learners of b_l (z_l - mean z_l)

The level and the weights b are those under which the reported counts are most likely, given scores
by models that never learned from the bags, with a prior that knows what to do when bags are few:
a mean of the learners, with a slope of 1. So one fit combines, and repairs level and slope.
It needs no random bags, only models that hold across them.

Whether the learners are to be believed at all, the evidence of this fit tells, which charges the
weights for their freedom: against the likelihood of the prior alone it gives the probability that
bags teach anything, and the weights, expected to be 0 if not, are multiplied by it. So when bags
teach nothing, the answer is the prior; when they are too few to tell, it is in between; and a
learner that is merely too sure of itself gets a smaller slope.

The scores are not independent of the reports they are judged by: what bag j says of the model that
learned from bag k is what bag k says of the model that learned from bag j. Of scores that are noise
each pair of bags is so counted twice, and a nat of their likelihood is worth half a nat. How much
of the scores is noise, the models of the folds tell by how far they are apart; see `unsteadiness`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from unbag._arrays import sum_by
from unbag.bags import Bags, Kind
from unbag.learners._folds import mean_report
from unbag.likelihood import count_likelihood
from unbag.metrics import Estimate
from unbag.recalibration import level_design, newton

SLOPE, APART = 0.4, 0.35
"""Standard deviations of the prior: of the sum of the weights around 1, and of the weights among
themselves around their expected shares. The second is small, as few bags say hardly anything of
which learner is the better one."""
HOPE = 1.0
"""Logarithm of the odds that bags teach something, before any report: tables that teach nothing are
rare. Some 15 bags say little of it: of Adult no more than of labels that no column tells."""
LEVEL = 10.0
"""Standard deviation of the prior of a level, around that of the mean report: noisy reports whose
mean is above 1 would send it to infinity."""
SMALLER, ENOUGH = 0.8, 0.02
"""By which factor a slope is made smaller at a time, and how exactly the best one is wanted."""
LONGEST = 1.0
LEAST = 1e-9
NUMBERS = ("weights", "level", "centre", "prior")
"""Arrays of a combination."""


@dataclass(frozen=True)
class Combination:
    """How the scores of several learners become one.

    Parameters
    ----------
    names : tuple of str
        Of the learners.
    weights : numpy.ndarray
        Of each learner; all 0 is the prior.
    level : numpy.ndarray
        The score where all learners say their mean; for class scores one for each class.
    centre : numpy.ndarray
        The mean score of each learner, (learners,) or (learners, classes).
    prior : numpy.ndarray
        The score of the mean report alone, to compare with; `level` is another one, as scores that
        vary around it give another mean.
    kind : {"binary", "total", "histogram"}
        What the scores mean.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    level: np.ndarray
    centre: np.ndarray
    prior: np.ndarray
    kind: Kind = "binary"

    def __str__(self) -> str:
        parts = [f"{w:.2f} {name}" for w, name in zip(self.weights, self.names, strict=True)]
        return " + ".join(parts)

    def apply(self, scores: np.ndarray) -> np.ndarray:
        """The combined score of rows, from the scores of each learner: (learners, rows, ...)."""
        away = np.asarray(scores, float) - self.centre[:, None]
        return self.level + np.einsum("l,l...->...", self.weights, away)

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The combination as arrays and settings, for the model file."""
        arrays = {name: np.asarray(getattr(self, name)) for name in NUMBERS}
        return arrays, {"names": list(self.names), "kind": self.kind}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> Combination:
        """The combination that `arrays` described; see `Model.restore`."""
        return cls(
            tuple(settings["names"]),
            *(np.asarray(arrays[name]) for name in NUMBERS),
            kind=settings["kind"],
        )


class _Belief(NamedTuple):
    """What is believed before the reports are looked at: the share of each learner in the weights,
    and how many nats of the likelihood are worth one."""

    share: np.ndarray
    nats: float = 1.0

    def of(self, used: np.ndarray) -> _Belief:
        """The same where only some learners are used."""
        return self._replace(share=self.share[used] / self.share[used].sum())


LEVEL_ALONE = _Belief(np.zeros(0))


def unsteadiness(scores: np.ndarray) -> float:
    """The variance of scores by what their models happened to learn from, as a share of all.

    The jackknife's: of a model that learns nothing but noise about 1, of one that hardly changes
    when other bags teach it 0. More than 1 have learners that leap from one answer to another.

    Parameters
    ----------
    scores : numpy.ndarray
        By each learner and each fold's model, (learners, folds, rows) or with classes.

    >>> rng = np.random.default_rng(0)
    >>> signal, noise = rng.normal(size=1000), rng.normal(size=(1, 5, 1000))
    >>> unsteadiness(signal + 0.1 * noise) < 0.1 < 1 < unsteadiness(noise)
    True
    """
    together = scores.mean(axis=0)
    away = together - together.mean(axis=1, keepdims=True)
    middle = away.mean(axis=0)
    # fold models share most of their bags, so that they differ less than models of other bags
    # would; the jackknife's factor, folds - 1, makes up for it
    apart = np.mean((away - middle) ** 2) * (len(away) - 1)
    return float(apart / max(np.mean(middle**2), LEAST**2))


def combine(
    names: tuple[str, ...],
    scores: np.ndarray,
    bags: Bags,
    *,
    unsteady: float = 0.0,
    share: np.ndarray | None = None,
) -> Combination:
    """The combination of learners under which the reports are most likely, given the prior above.

    Parameters
    ----------
    names : tuple of str
        Of the learners.
    scores : numpy.ndarray
        Of each learner and row, by models that never learned from the row's bag, without offset:
        (learners, rows) or (learners, rows, classes).
    bags : Bags
        The bags of these rows, with observed reports.
    unsteady : float
        The `unsteadiness` of the scores: up to 1 the share of them that is noise, of which pairs of
        bags are counted twice.
    share : numpy.ndarray, optional
        What is expected of each learner before any report, as a share of the weights; by default
        the same of all.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20_000)
    >>> from unbag import random_bags
    >>> y = rng.uniform(size=20_000) < 1 / (1 + np.exp(1 - x))
    >>> bags = random_bags(None, y, size=10, seed=0)
    >>> noise = rng.normal(size=20_000)
    >>> print(combine(("half", "noise"), np.stack([x / 2, noise])[:, bags.rows], bags))
    1.78 half + 0.09 noise
    """
    centre = scores.mean(axis=1)
    away = scores - centre[:, None]
    prior = _solve(away[:0], bags)[0]
    start = Combination(names, np.zeros(len(names)), prior, centre, prior, bags.kind)
    kept = np.array([np.ptp(one) > LEAST for one in away])
    if not kept.any():
        return start
    expected = kept * (np.ones(len(names)) if share is None else share)
    expected = expected / expected.sum()
    plain = replace(start, level=_solve(away, bags, fixed=expected)[0], weights=expected)
    dispersion = min(_dispersion(one.apply(scores), bags) for one in (start, plain))
    belief = _Belief(expected, (1 + min(unsteady, 1.0)) * dispersion)
    level, weights = _not_negative(away, kept, bags, belief)
    best = _likeliest(replace(start, level=level, weights=weights), away, scores, bags, belief.nats)
    gain = _log_likelihood(best, scores, bags) - _log_likelihood(start, scores, bags)
    # the posterior probability that the scores teach something, against the prior alone; HOPE are
    # the log odds before any report. The mean of both answers is their weights times that
    trust = special.expit(gain / belief.nats - _charge(best, away, bags, belief) + HOPE)
    weights = trust * best.weights
    return replace(start, level=_solve(away, bags, fixed=weights)[0], weights=weights)


def _likeliest(
    best: Combination, away: np.ndarray, scores: np.ndarray, bags: Bags, nats: float
) -> Combination:
    """The combination, with a smaller slope where the counts are likelier under it."""

    def at(factor: float) -> Combination:
        weights = factor * best.weights
        return replace(best, weights=weights, level=_solve(away, bags, fixed=weights)[0])

    def value(factor: float) -> float:
        surplus = (factor * best.weights.sum() - 1) / SLOPE
        return _log_likelihood(at(factor), scores, bags) / nats - surplus**2 / 2

    return at(_likeliest_factor(value, bags.kind))


def _likeliest_factor(log_likelihood: Callable[[float], float], kind: Kind) -> float:
    """By how much to make the slope of Newton's method smaller, so that counts are most likely.

    Newton's method solves for the means of the counts and takes their variances as they are. Where
    counts vary more than the model says, as in bags drawn by label, a larger slope makes the
    variances smaller and asks for a larger slope still, past the most likely one. In random bags
    the first factor wins.
    """
    if kind != "binary":  # the dispersion of totals says it; classes were never seen to do so
        return 1.0
    factor, value = 1.0, log_likelihood(1.0)
    while factor > LEAST and (lower := log_likelihood(factor * SMALLER)) > value:
        factor, value = factor * SMALLER, lower
    if factor == 1.0:
        return factor
    from scipy.optimize import minimize_scalar  # takes a while to import

    best = minimize_scalar(
        lambda other: -log_likelihood(other),
        bounds=(factor * SMALLER, factor / SMALLER),
        method="bounded",
        options={"xatol": factor * ENOUGH},
    )
    return float(best.x)


def _charge(best: Combination, away: np.ndarray, bags: Bags, belief: _Belief) -> float:
    """What the freedom of the weights costs in nats: their prior at the best ones, and how much
    narrower the reports have made it (Laplace's approximation of the evidence)."""
    used = best.weights > 0
    if not used.any():
        return np.inf
    level = np.ravel(best.level)
    if bags.kind == "histogram":
        level = level[:-1]  # the last class has none
    theta, levels = np.append(level, best.weights[used]), len(level)
    middle, precision = _prior(belief.of(used).share, levels)
    _, H = _derivatives(_design(away[used], bags), _offset(bags), theta, bags)
    own, cross = H[levels:, levels:], H[:levels, levels:]
    # the level is free in both models: of the weights counts what is left once it follows them
    known = (own - cross.T @ np.linalg.pinv(H[:levels, :levels]) @ cross) / belief.nats
    P, apart = precision[levels:, levels:], (theta - middle)[levels:]
    narrower = np.linalg.slogdet(known + P)[1] - np.linalg.slogdet(P)[1]
    return float(apart @ P @ apart + narrower) / 2


def _dispersion(score: np.ndarray, bags: Bags) -> float:
    """How much more totals vary than Poisson counts do, at least 1 (Pearson's statistic).

    A nat of the Poisson likelihood is worth as much less. Labels cannot vary more than they do.
    """
    if bags.kind != "total":
        return 1.0
    rate = np.exp(np.clip(score + offset_of(bags), -30, 30))
    mean = np.bincount(bags.bag, weights=rate, minlength=len(bags))
    noise = bags.noise_or_zero
    squares = (bags.report * bags.size - mean) ** 2 / np.maximum(mean + noise, LEAST)
    return max(1.0, float(squares.sum() / max(len(bags) - 1, 1)))


def _not_negative(
    away: np.ndarray, kept: np.ndarray, bags: Bags, belief: _Belief
) -> tuple[np.ndarray, np.ndarray]:
    """Level and weights; a learner that would be subtracted is left out instead."""
    weights = np.zeros(len(away))
    while True:
        level, best_weights = _solve(away[kept], bags, belief=belief.of(kept))
        if best_weights.min() >= 0 or kept.sum() == 1:
            weights[kept] = np.maximum(best_weights, 0)
            return level, weights
        kept = kept.copy()
        kept[np.flatnonzero(kept)[np.argmin(best_weights)]] = False


def _solve(
    away: np.ndarray, bags: Bags, *, fixed: np.ndarray | None = None, belief: _Belief = LEVEL_ALONE
) -> tuple[np.ndarray, np.ndarray]:
    """Level and weights by Newton's method, the covariance of the counts updated but not
    differentiated; with weights that are fixed, the level alone."""
    design = _design(away if fixed is None else away[:0], bags)
    free = _offset(bags)
    if fixed is not None:
        free = free + np.einsum("l,l...->...", fixed, away).reshape(free.shape)
    levels = design.shape[2] - len(belief.share)
    theta, precision = _prior(belief.share, levels)
    theta[:levels] = _start(bags)
    theta = _newton(design, free, theta, bags, belief.nats * precision)
    if bags.kind == "histogram":
        return np.append(theta[:levels], 0.0), theta[levels:]
    return theta[0], theta[levels:]


def _newton(
    design: np.ndarray, free: np.ndarray, start: np.ndarray, bags: Bags, precision: Any = 0.0
) -> np.ndarray:
    """The most likely parameters, with a normal prior around the start."""

    def derivatives(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope, curvature = _derivatives(design, free, theta, bags)
        return np.dot(precision, theta - start) - slope, curvature + precision

    return newton(derivatives, start, longest=LONGEST, enough=1e-8)


def trivial_level(bags: Bags) -> np.ndarray:
    """The one score for all rows, beside their offset, under which the reports are most likely."""
    rows = (0, len(bags.bag), *bags.report.shape[1:])
    return _solve(np.zeros(rows), bags)[0]


def slope_of(
    score: np.ndarray, bags: Bags, *, unsteady: float = 0.0, level: float = 0.95
) -> Estimate:
    """By how much scores should be stretched: 1 is right, below 1 they are too sure.

    Parameters
    ----------
    score : numpy.ndarray
        Of each row, by models that never learned from its bag, without offset.
    bags : Bags
        The bags of these rows, with observed reports; they need not be random.
    unsteady : float
        The `unsteadiness` of scores by models of folds: pairs of bags count twice in what is noise
        of them, so that the slope is as much less certain.
    level : float
        Of the interval.
    """
    away = (score - score.mean(axis=0))[None]
    if np.ptp(away) < LEAST:
        return Estimate(1.0, np.inf, -np.inf, np.inf)
    design, free = _design(away, bags), _offset(bags)
    theta = _newton(design, free, np.append(np.atleast_1d(_start(bags)), 1.0), bags)
    steep, levels = theta[-1:], len(theta) - 1

    def log_likelihood(factor: float) -> float:
        own = _solve(away, bags, fixed=factor * steep)[0]
        return -float(
            log_likelihood_loss((free[:, 0] + own) + factor * steep * away[0], bags).sum()
        )

    theta[-1] *= _likeliest_factor(log_likelihood, bags.kind)
    theta[:levels] = np.atleast_1d(_solve(away, bags, fixed=theta[-1:])[0])[:levels]
    error = float(
        np.sqrt((1 + min(unsteady, 1.0)) * _covariance(design, free, theta, bags)[-1, -1])
    )
    value, reach = float(theta[-1]), float(special.ndtri((1 + level) / 2)) * error
    if bags.kind == "total":  # their variance is estimated as well
        reach = float(special.stdtrit(max(len(bags) - 2, 1), (1 + level) / 2)) * error
    return Estimate(value, error, value - reach, value + reach)


def _covariance(design: np.ndarray, free: np.ndarray, theta: np.ndarray, bags: Bags) -> np.ndarray:
    """Of the most likely parameters. Nobody knows how much totals vary, and large ones may vary
    more than in proportion, so it is made of the residuals: the sandwich, each residual as it would
    be had its bag no part in the fit (HC3, MacKinnon and White 1985)."""
    weighted, J, residual = _of_bags(design, free, theta, bags)
    bread = np.linalg.pinv(np.einsum("bdp,bdq->pq", weighted, J))
    if bags.kind != "total":
        return bread
    leverage = np.einsum("bdp,pq,bdq->b", weighted, bread, J)
    part = np.einsum("bdp,bd->bp", weighted, residual) / np.maximum(1 - leverage, LEAST)[:, None]
    return bread @ (part.T @ part) @ bread


def _prior(share: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean, from which to start, and precision of the parameters."""
    learners = len(share)
    middle, precision = np.append(np.zeros(levels), share), np.eye(levels + learners) / LEVEL**2
    if learners:
        even = np.full((learners, learners), 1 / learners)
        together = np.ones((learners, learners)) / SLOPE**2
        precision[levels:, levels:] = together + (np.eye(learners) - even) / APART**2
    return middle, precision


def _start(bags: Bags) -> np.ndarray:
    """The level of the mean report."""
    mean = mean_report(bags)
    if bags.kind == "histogram":
        return np.log(mean[:-1] / mean[-1])
    if bags.kind == "total":
        return np.log(mean / np.exp(_offset(bags)).mean())
    return special.logit(mean)


def offset_of(bags: Bags) -> Any:
    """The offset of each row, in the shape of scores."""
    if bags.offset is None:
        return 0.0
    return bags.offset[:, None] if bags.kind == "histogram" else bags.offset


def _offset(bags: Bags) -> np.ndarray:
    """(instances, components)"""
    own = np.reshape(offset_of(bags), (-1, 1))
    return np.broadcast_to(own, (len(bags.bag), bags.report.size // len(bags)))


def _design(away: np.ndarray, bags: Bags) -> np.ndarray:
    """See `level_design`."""
    components = bags.report.size // len(bags)
    return level_design(away.reshape(len(away), len(bags.bag), components), bags.kind)


def _derivatives(
    design: np.ndarray, free: np.ndarray, theta: np.ndarray, bags: Bags
) -> tuple[np.ndarray, np.ndarray]:
    """Slope and curvature of the log likelihood of Gaussian counts of the right mean and
    covariance."""
    weighted, J, residual = _of_bags(design, free, theta, bags)
    return np.einsum("bdp,bd->p", weighted, residual), np.einsum("bdp,bdq->pq", weighted, J)


def _of_bags(
    design: np.ndarray, free: np.ndarray, theta: np.ndarray, bags: Bags
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each bag V^-1 J, J and the counts less their means."""
    eta = np.clip(free + design @ theta, -30, 30)
    count = bags.report.reshape(len(bags), -1) * bags.size[:, None]
    noise = bags.noise_or_zero

    def total(values: np.ndarray) -> np.ndarray:
        return sum_by(bags.bag, values, len(bags))

    if bags.kind == "histogram":
        h = special.softmax(eta, axis=1)
        moved = h[:, :, None] * (design - np.einsum("nc,ncp->np", h, design)[:, None, :])
        identity = np.eye(h.shape[1])
        V = (total(h) + noise[:, None])[:, :, None] * identity
        V = V - total(h[:, :, None] * h[:, None, :])
        # counts of a bag add up to its size, which leaves V one direction without variance
        inverse = np.linalg.pinv(V, rcond=1e-9, hermitian=True)
    else:
        h = special.expit(eta) if bags.kind == "binary" else np.exp(eta)
        slope = h * (1 - h) if bags.kind == "binary" else h
        moved = slope[:, :, None] * design
        inverse = 1 / np.maximum(total(slope) + noise[:, None], LEAST)[:, :, None]
    J, residual = total(moved), count - total(h)
    return np.einsum("bcp,bcd->bdp", J, inverse), J, residual


def _log_likelihood(combination: Combination, scores: np.ndarray, bags: Bags) -> float:
    return -float(log_likelihood_loss(combination.apply(scores) + offset_of(bags), bags).sum())


def log_likelihood_loss(score: np.ndarray, bags: Bags) -> np.ndarray:
    """Minus the log likelihood of each bag's report, by scores that have their offset."""
    report = bags.components().report
    return count_likelihood(score, bags.bag, bags.size, report, kind=bags.kind, noise=bags.noise)
