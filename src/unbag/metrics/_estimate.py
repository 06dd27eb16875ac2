"""Expectations from sums per bag, and intervals from what each bag contributes to the error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbag._arrays import sum_by
from unbag._rules import broken, two_reports
from unbag.bags import Bags
from unbag.losses import Loss
from unbag.metrics._sums import BagSums, components_of, empty_sums, loss_sums
from unbag.weights import noise_weights


class Estimate(NamedTuple):
    """A value with its standard error and interval.

    Parameters
    ----------
    value, error : float
        The estimate and its standard error.
    low, high : float
        The interval.
    worth : float or None
        How many labelled rows would give an interval of the same width; None where that has no
        meaning, and where the reference leaves no doubt about any label.
    """

    value: float
    error: float
    low: float
    high: float
    worth: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


class Estimated(NamedTuple):
    """A value, and the share of each bag in its error: error ~ sum of psi, bags independent.

    Parameters
    ----------
    value : float
        The estimate.
    psi : array (bags,)
        What each bag contributes to its error.
    sized : array (bags,) or float
        What of psi a bag contributes by its size; the rest it contributes by its weight.
    """

    value: float
    psi: np.ndarray
    sized: np.ndarray | float = 0.0

    def __sub__(self, other: Estimated) -> Estimated:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Estimated(self.value - other.value, self.psi - other.psi, self.sized - other.sized)

    def parts(self) -> np.ndarray:
        """psi and what of it is sized, to reckon with both at once."""
        return np.stack([self.psi, np.broadcast_to(self.sized, self.psi.shape)])


class Judge:
    """What held-out bags know of a reference: residuals, means and weights, one row per bag.

    Parameters
    ----------
    sums : BagSums
        Sums per bag, with the sums of the reference.
    """

    def __init__(self, sums: BagSums) -> None:
        observed, (self.names, s) = sums.observed, np.unique(sums.stratum, return_inverse=True)
        self.strata = len(self.names)
        self.k, self.s, self.observed = sums.size, s, observed
        two_reports(s if self.strata > 1 else None, observed, names=self.names)
        self.count = np.bincount(s, weights=observed)
        self.instances = self.by_stratum(self.k)[s]
        self.share = self.instances / self.k.sum()
        self.e = np.where(observed[:, None], sums.report - sums.reference / self.k[:, None], 0.0)
        reported = np.where(observed, self.k, 0.0)
        self.reported = reported / self.by_stratum(reported)[s]
        self.residual = self.by_stratum(self.reported[:, None] * self.e)[s]
        self.centred = np.where(observed[:, None], self.e - self.residual, 0.0)
        self.w = self._weights(sums)
        self.by_weight, self.by_report, self.by_size = (
            self._freed(share) for share in (self.w, self.reported, self.k / self.instances)
        )

    def by_stratum(self, values: np.ndarray) -> np.ndarray:
        """Sums over the bags of each stratum."""
        return sum_by(self.s, values, self.strata)

    def _weights(self, sums: BagSums) -> np.ndarray:
        """Weights of the observed bags, smaller for those with much noise."""
        n, where = self.k.sum(), self.observed
        # Var y rather than Var(y - g): a model that is sure of itself would leave all weight to the
        # bags without noise
        variance = float(sums.square.sum() / n - np.mean((sums.reference.sum(axis=0) / n) ** 2))
        w = np.zeros(len(self.k))
        w[where] = noise_weights(
            self.k[where], sums.noise[where], variance=max(variance, 1e-9), stratum=self.s[where]
        )
        return w

    def _freed(self, share: np.ndarray) -> np.ndarray:
        """What makes up for it that a bag is itself a share of the mean that it is centred by.

        A share h of a mean leaves 1 - h of a bag's variance; `interval` divides by 1 - 1 / B, which
        is right for even shares only.
        """
        return np.sqrt((1 - 1 / self.count[self.s]) / np.maximum(1 - share, 1e-9))

    def expectation(
        self, T: np.ndarray, S: np.ndarray, drift: np.ndarray | float = 0.0
    ) -> Estimated:
        """E[f1 + y f2] from sums over each bag.

            mean T  +  sum_j w_j [(e_j - e)(S_j - k_j m) / (1 - r_j) + e m_j]

        e_j is the mean residual of bag j, e that of all observed bags, r_j the share of bag j in e,
        m the mean of f2 over all bags and m_j that over the others. Where all bags are observed,
        (S_j - k_j m) / (1 - r_j) is S_j - k_j m_j; in general its product with e_j - e has the mean
        Cov(y - g, f2), for any of the bags observed.

        Parameters
        ----------
        T : array (bags,)
            Sums of f1 + g f2.
        S : array (bags, components)
            Sums of f2.
        drift : array (bags,) or float
            Variance that folds add by sharing bags: see `unbag.metrics._folds`.
        """
        k, s, n = self.k[:, None], self.s, self.instances[:, None]
        total = self.by_stratum(S)[s]
        mean, m = total / n, (total - S) / np.where(n > k, n - k, 1.0)
        co = np.sum(self.centred * (S - k * mean), axis=1) / (1 - self.reported)
        own = self.share * self.w * (co + np.sum(self.residual * m, axis=1))
        value = float(T.sum() / self.k.sum() + own.sum())
        mean_T = self.by_stratum(T)[s] / self.instances
        about = self.by_stratum(self.w * co)[s]
        moved = T - self.k * mean_T + np.sum(self.residual * (S - k * mean), axis=1)
        heard = self.by_report * self.reported * np.sum(self.centred * mean, axis=1)
        sized = heard + self.by_size * moved / self.instances
        psi = self.by_weight * self.w * (co - about) + sized
        psi = np.where(psi < 0, -1.0, 1.0) * np.sqrt(psi**2 + self.w**2 * drift)
        return Estimated(value, self.share * psi, self.share * sized)

    def mean_label(self, sums: BagSums) -> Estimated:
        """E[y]: the mean reference and the mean residual; without pending bags, the size-weighted
        mean report."""
        return self.expectation(sums.reference[:, 0], self.k[:, None])


def check_level(level: float) -> None:
    """Refuse a level that no interval can have."""
    if not 0 < level < 1:
        raise broken(
            "A level must lie between 0 and 1", f"{level} given", "Use 0.95 for intervals of 95%."
        )


def interval(
    estimated: Estimated, judge: Judge, *, level: float = 0.95, variance_of_one: float | None = None
) -> Estimate:
    """Student's t interval from the spread between bags.

    The variance is that of a sum of independent shares, sum_s B_s / (B_s - 1) sum psi^2, and the
    degrees of freedom are Satterthwaite's over bags and strata: with one stratum of even bags, the
    number of bags - 1.

    Parameters
    ----------
    estimated : Estimated
        A value, and what each bag contributes to its error.
    judge : Judge
        The bags.
    level : float
        Of the interval.
    variance_of_one : float, optional
        Variance of the metric's value for one labelled row, to tell what the bags are worth.
    """
    from scipy.special import stdtrit

    check_level(level)
    count = np.where(judge.count > 1, judge.count, 2.0)
    by_stratum = judge.by_stratum(estimated.psi**2) * count / (count - 1)
    variance = float(by_stratum.sum())
    error, worth, freedom = float(np.sqrt(variance)), None, float(count.sum())
    if variance > 0:
        freedom = variance**2 / np.sum(by_stratum**2 / _freedom(estimated, judge))
    if variance_of_one and error > 1e-12:  # below, it is rounding
        worth = variance_of_one / variance
    reach = float(stdtrit(freedom, (1 + level) / 2)) * error
    return Estimate(estimated.value, error, estimated.value - reach, estimated.value + reach, worth)


def _freedom(estimated: Estimated, judge: Judge) -> np.ndarray:
    """Satterthwaite's degrees of freedom of each stratum, 2 mean^2 / variance of the sum of psi^2
    of normal bags.

    With q_j the share of a bag in the variance and g = q / (1 - q): 1 / (sum q^2 + (sum q g)^2 -
    sum (q g)^2). Even shares give the number of bags - 1; one bag with nearly all of the variance
    gives about 1.
    """
    psi, sized = estimated.parts()
    by_size, by_weight = judge.by_stratum(sized**2), judge.by_stratum((psi - sized) ** 2)
    mix = (by_size / np.maximum(by_size + by_weight, 1e-300))[judge.s]
    q = mix * judge.reported + (1 - mix) * judge.w
    g = q / np.maximum(1 - q, 1e-9)
    add = judge.by_stratum
    return 1 / (add(q**2) + add(q * g) ** 2 - add((q * g) ** 2))


class PairedLosses(NamedTuple):
    """The losses of candidates.

    Parameters
    ----------
    value : array (candidates,)
        Estimated losses.
    error : array (candidates,)
        Standard errors of their differences to the consensus.
    estimated : list of Estimated
        What each bag contributes to their errors.
    judge : Judge
        The bags.
    """

    value: np.ndarray
    error: np.ndarray
    estimated: list[Estimated]
    judge: Judge

    def cautious(self, errors: float = 1.0) -> np.ndarray:
        """The loss plus so many standard errors: what a careful chooser takes the lowest of."""
        return self.value + errors * self.error

    def loss(self, number: int, *, level: float) -> Estimate:
        """A candidate's loss with its interval.

        Parameters
        ----------
        number : int
            Of the candidate.
        level : float
            Of the interval.
        """
        return interval(self.estimated[number], self.judge, level=level)

    def difference(self, number: int, other: int, *, level: float) -> Estimate:
        """The paired difference between two candidates with its interval.

        Parameters
        ----------
        number, other : int
            Of the candidates.
        level : float
            Of the interval.
        """
        both = self.estimated[number] - self.estimated[other]
        return interval(both, self.judge, level=level)


def judge_all(
    scores: Sequence[np.ndarray], bags: Bags, consensus: np.ndarray, loss: Loss
) -> PairedLosses:
    """Judge candidates by their paired differences to a consensus.

    An estimate from bags is a bad judge of many candidates when it stands alone: the lowest of many
    estimates belongs to the wildest model, whose estimate has the largest variance. Two things
    help. All candidates are centred by one reference, the consensus of their predictions, which a
    wild model does not spoil. And each is judged by its paired difference to the consensus: what
    all have in common cancels, and how far a candidate strays shows in its standard error.

    Parameters
    ----------
    scores : sequence of array
        Of each candidate, one row per instance.
    bags : Bags
        Held-out bags.
    consensus : array (instances, components)
        Prediction per instance, made without the labels of these bags: the mean or median of what
        candidates predict.
    loss : Loss
        What is estimated.
    """
    judge, kind = Judge(empty_sums(bags, consensus)), bags.kind
    middle, *estimated = (
        judge.expectation(*loss_sums(f, consensus, np.zeros_like(consensus), bags)[:2])
        for f in (
            components_of(consensus, loss, kind),
            *(loss.components(np.asarray(score, float), kind=kind) for score in scores),
        )
    )
    value = [one.value for one in estimated]
    error = [np.sqrt(np.sum((one.psi - middle.psi) ** 2)) for one in estimated]
    return PairedLosses(np.array(value), np.array(error), estimated, judge)
